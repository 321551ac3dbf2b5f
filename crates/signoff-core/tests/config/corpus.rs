//! `testdata/config/invalid`: one mistake each. The message names the file, the line and what to write.
//!
//! The first comment of a file says what is wrong with it. The line of the mistake ends with `# <-- here`, or is
//! named in a comment where none can stand.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use signoff_core::settings::{Layer, read, schema};

/// A file of the corpus.
struct Case {
    name: String,
    text: String,
}

/// The comment of files that the schema refuses as well.
const REFUSED: &str = "# The schema refuses it too.";

impl Case {
    /// Where the mistake is, as the file says itself.
    fn line(&self) -> usize {
        let marked = self.text.lines().position(|line| line.ends_with("# <-- here")).map(|at| at + 1);
        let named = self.text.lines().find_map(|line| line.strip_prefix("# The mistake is in line "));
        let named = named.and_then(|rest| rest.trim_end_matches('.').parse().ok());
        marked.xor(named).unwrap_or_else(|| panic!("{} should say once where its mistake is", self.name))
    }

    /// The message that is printed.
    fn message(&self) -> String {
        match read(&[Layer::repository(&self.name, &self.text)], &[], &[]) {
            Ok(_) => panic!("{} is read", self.name),
            Err(error) => error.to_string(),
        }
    }
}

fn cases() -> Vec<Case> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/config/invalid");
    let entries = fs::read_dir(directory).expect("the corpus");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable file").path()).collect();
    paths.sort();
    let case = |path: PathBuf| Case {
        name: path.file_name().expect("a name").to_string_lossy().into_owned(),
        text: fs::read_to_string(path).expect("text"),
    };
    paths.into_iter().map(case).collect()
}

/// How it is said what to write instead.
const INSTEAD: [&str; 3] = ["expected ", "did you mean ", "write "];

#[test]
fn every_mistake_is_reported_with_file_line_and_correct_form() {
    let cases = cases();
    assert!(cases.len() >= 150, "{} files", cases.len());
    let mut out = String::new();
    for case in cases {
        let about = case.text.lines().next().and_then(|line| line.strip_prefix("# ")).expect("a comment");
        let message = case.message();
        let place = format!("{}:{}: ", case.name, case.line());
        assert!(message.starts_with(&place), "expected {place}\n{message}");
        assert!(INSTEAD.iter().any(|words| message.contains(words)), "what to write instead?\n{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        writeln!(out, "{about}\n    {message}").unwrap();
    }
    insta::assert_snapshot!(out);
}

/// The schema refuses what one file alone tells, and no more.
#[test]
fn the_schema_refuses_what_it_can_know() {
    let validator = jsonschema::validator_for(&schema()).expect("a schema");
    for case in cases() {
        let marked = case.text.lines().any(|line| line == REFUSED);
        // What is no TOML has no shape that could be looked at.
        let Ok(value) = toml::from_str::<toml::Value>(&case.text) else {
            assert!(!marked, "{} is no TOML", case.name);
            continue;
        };
        let json = serde_json::to_value(value).expect("plain data");
        assert_eq!(validator.is_valid(&json), !marked, "{}", case.name);
    }
}

/// Nothing in a file is as good as no file: what is built in holds.
#[test]
fn an_empty_file_is_no_mistake() {
    let built_in = read(&[], &[], &[]).unwrap().origins();
    for text in ["", "\n\n", "# nothing yet\n", "\u{feff}", "\u{feff}\r\n# nothing\r\n"] {
        let settings = read(&[Layer::repository("signoff.toml", text)], &[], &[]).unwrap();
        assert_eq!(settings.origins(), built_in, "{text:?}");
    }
}

/// Editors put a mark before the text and carriage returns behind its lines: neither shifts a line.
#[test]
fn marks_of_editors_do_not_shift_lines() {
    for case in cases() {
        let marked = format!("\u{feff}{}", case.text);
        let error = read(&[Layer::repository(&case.name, marked)], &[], &[]).unwrap_err();
        assert_eq!(error.to_string(), case.message());
        let windows = case.text.replace('\n', "\r\n");
        let error = read(&[Layer::repository(&case.name, windows)], &[], &[]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{}:{}: ", case.name, case.line())), "{error}");
    }
}
