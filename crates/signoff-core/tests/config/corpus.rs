//! `testdata/config/invalid`: one error each. The message names the file, the line and the fix.
//!
//! The first comment of a file describes its error. The line of the error ends with `# <-- here`, or is named in the
//! first comment if the line cannot have one.

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
    /// The line of the error, from the file's comments.
    fn line(&self) -> usize {
        let marked = self.text.lines().position(|line| line.ends_with("# <-- here")).map(|at| at + 1);
        let named = self.text.lines().find_map(|line| line.strip_prefix("# The mistake is in line "));
        let named = named.and_then(|rest| rest.trim_end_matches('.').parse().ok());
        marked.xor(named).unwrap_or_else(|| panic!("{} must name the line of its error once", self.name))
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

/// Every message contains one of these.
const FIXES: [&str; 3] = ["expected ", "did you mean ", "write "];

#[test]
fn every_error_names_file_line_and_fix() {
    let cases = cases();
    assert!(cases.len() >= 150, "{} files", cases.len());
    let mut out = String::new();
    for case in cases {
        let about = case.text.lines().next().and_then(|line| line.strip_prefix("# ")).expect("a comment");
        let message = case.message();
        let location = format!("{}:{}: ", case.name, case.line());
        assert!(message.starts_with(&location), "expected {location}\n{message}");
        assert!(FIXES.iter().any(|words| message.contains(words)), "no fix:\n{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        writeln!(out, "{about}\n    {message}").unwrap();
    }
    insta::assert_snapshot!(out);
}

/// The schema refuses errors that one file shows, and no others.
#[test]
fn the_schema_refuses_the_marked_files() {
    let validator = jsonschema::validator_for(&schema()).expect("a schema");
    for case in cases() {
        let marked = case.text.lines().any(|line| line == REFUSED);
        // Invalid TOML cannot be checked against the schema.
        let Ok(value) = toml::from_str::<toml::Value>(&case.text) else {
            assert!(!marked, "{} is not TOML", case.name);
            continue;
        };
        let json = serde_json::to_value(value).expect("plain data");
        assert_eq!(validator.is_valid(&json), !marked, "{}", case.name);
    }
}

/// An empty file gives the defaults.
#[test]
fn an_empty_file_gives_the_defaults() {
    let built_in = read(&[], &[], &[]).unwrap().origins();
    for text in ["", "\n\n", "# nothing yet\n", "\u{feff}", "\u{feff}\r\n# nothing\r\n"] {
        let settings = read(&[Layer::repository("signoff.toml", text)], &[], &[]).unwrap();
        assert_eq!(settings.origins(), built_in, "{text:?}");
    }
}

/// A byte order mark and CRLF do not shift lines.
#[test]
fn byte_order_marks_and_line_endings_do_not_shift_lines() {
    for case in cases() {
        let marked = format!("\u{feff}{}", case.text);
        let error = read(&[Layer::repository(&case.name, marked)], &[], &[]).unwrap_err();
        assert_eq!(error.to_string(), case.message());
        let windows = case.text.replace('\n', "\r\n");
        let error = read(&[Layer::repository(&case.name, windows)], &[], &[]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{}:{}: ", case.name, case.line())), "{error}");
    }
}
