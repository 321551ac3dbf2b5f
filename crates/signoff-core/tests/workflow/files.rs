//! The files of `testdata/workflows`: the valid ones are parsed, the invalid ones refused with the right line.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use signoff_core::settings::ConfigError;
use signoff_core::workflow::{Workflow, parse};

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/workflows");

/// The files of one directory with their texts, by name.
pub fn all(directory: &str) -> Vec<(String, String)> {
    let list = fs::read_dir(Path::new(CORPUS).join(directory)).expect("the corpus");
    let mut paths: Vec<PathBuf> = list.map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), fs::read_to_string(path).expect("text"))).collect()
}

/// The workflows of all good files.
pub fn good() -> Vec<Workflow> {
    let read = |(name, text): (String, String)| parse(&name, &text).unwrap_or_else(|error| panic!("{error}"));
    all("good").into_iter().flat_map(read).collect()
}

/// Reads a file with a mistake: the line of the mistake, and the message.
pub fn mistake(name: &str, text: &str) -> (usize, String) {
    match parse(name, text) {
        Err(ConfigError::File { line, message, .. }) => (line, message),
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn good_files_are_read() {
    let mut out = String::new();
    for workflow in good() {
        let phases: Vec<_> = workflow.phases.iter().map(|phase| phase.name.as_str()).collect();
        let mut reviewers: Vec<_> = workflow.reviewers.keys().map(|name| name.as_str()).collect();
        reviewers.extend(reviewers.is_empty().then_some("none"));
        writeln!(out, "{}: {} | {}", workflow.name, phases.join(" → "), reviewers.join(", ")).expect("written");
    }
    insta::assert_snapshot!(out, @r#"
    dotted_and_quoted: implement → review | code, the "other" one
    every_key: implement → tests → review | security, spec
    mine: implement → review | code, tests
    modes_and_restarts: brainstorm → implement → review → tests | code
    one_reviewer: implement → review | code
    review_only: review | code
    mine: implement → review | code, spec
    quick: implement | none
    checked: implement → tests | none
    unnamed: implement | none
    unlimited_fixes: implement → review | code
    windows_line_ends: implement → review | code
    "#);
}

/// Each message is printed above its line, so that a reader can check it.
#[test]
fn bad_files_are_refused_with_their_line() {
    let mut out = String::new();
    for (name, text) in all("bad") {
        let error = parse(&name, &text).expect_err(&name);
        let line = text.lines().nth(mistake(&name, &text).0 - 1).unwrap_or("");
        writeln!(out, "{error}\n    | {line}").expect("written");
    }
    insta::assert_snapshot!(out);
}

#[test]
fn no_message_names_serde_types() {
    let jargon =
        ["untagged", "variant", "expected a sequence", "expected a map", "invalid type", "missing field", "u32", "i64"];
    for (name, text) in all("bad") {
        let (_, message) = mistake(&name, &text);
        for word in jargon {
            assert!(!message.contains(word), "{name}: {message}");
        }
    }
}

#[test]
fn too_many_phases_are_refused() {
    let phases = |count: usize| -> String {
        (0..count).map(|n| format!("[[phases]]\nname = \"p{n}\"\nkind = \"agent\"\n")).collect()
    };
    assert!(parse("w.toml", &phases(1000)).is_ok());
    let error = parse("w.toml", &phases(100_000)).expect_err("too many");
    insta::assert_snapshot!(error, @"w.toml:3002: `phases` has 100000 phases: expected at most 1000");
    let nameless = "[[phases]]\nname = 1\n".repeat(1000);
    insta::assert_snapshot!(
        parse("w.toml", &nameless).expect_err("no names"),
        @"w.toml:2: `name` is 1: expected text in quotes"
    );
}
