//! Reviews made from the output of the project's checks.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fmt::Write;

use signoff_core::checks::{CheckRun, MAX_PER_COMMAND, compare_with_base, findings, review, review_against_base};
use signoff_core::ids::ReviewerName;
use signoff_core::review::{Inconclusive, Review, ReviewerKind, Severity, Verdict};

fn checks(ran: &[CheckRun]) -> Review {
    review(&ReviewerName::from("checks"), ReviewerKind::Tests, ran)
}

fn ran(name: &str, code: i32, output: &str) -> CheckRun {
    let command = format!("make {name}");
    CheckRun { name: name.to_owned(), command, code: Some(code), output: output.to_owned() }
}

/// Parses a file of the corpus: `$ command`, `exit CODE` or `ended`, a blank line, the output.
fn case(text: &str) -> CheckRun {
    let mut lines = text.splitn(4, '\n');
    let command = lines.next().unwrap().strip_prefix("$ ").unwrap().to_owned();
    let ended = lines.next().unwrap();
    let code = ended.strip_prefix("exit ").map(|code| code.parse().unwrap());
    assert!(code.is_some() || ended == "ended");
    assert_eq!(lines.next(), Some(""));
    CheckRun { name: "check".to_owned(), command, code, output: lines.next().unwrap_or_default().to_owned() }
}

/// The review as readable text.
fn described(review: &Review) -> String {
    let mut out = format!("{}: {}\n", review.verdict.into_str(), review.summary);
    for finding in &review.findings {
        let location = location(finding.file.as_deref(), finding.line);
        writeln!(out, "\n[{}] {location}\n  {}", finding.severity.into_str(), indented(&finding.description)).unwrap();
        if let Some(suggestion) = &finding.suggestion {
            writeln!(out, "  Suggestion: {}", indented(suggestion)).unwrap();
        }
    }
    for note in &review.minor {
        let location = location(note.file.as_deref(), note.line);
        writeln!(out, "\n(note) {location}\n  {}", indented(&note.description)).unwrap();
    }
    out
}

fn location(file: Option<&str>, line: Option<u32>) -> String {
    let line = line.map_or(String::new(), |line| format!(":{line}"));
    format!("{}{line}", file.unwrap_or("-"))
}

fn indented(text: &str) -> String {
    text.replace('\n', "\n  | ")
}

#[test]
fn what_each_tool_prints() {
    insta::glob!("../../../testdata/checks", "*.txt", |path| {
        let ran = case(&std::fs::read_to_string(path).unwrap());
        insta::assert_snapshot!(described(&checks(&[ran])));
    });
}

#[test]
fn one_failing_check_is_enough() {
    let review = checks(&[ran("test", 0, "fine\n"), ran("lint", 2, "src/a.c:3:5: error: bad\n")]);
    insta::assert_snapshot!(described(&review), @r"
    changes_requested: 1 of 2 checks passed; `lint` (`make lint`) exited with 2.

    [critical] src/a.c:3
      bad
    ");
    insta::assert_snapshot!(review.checked.join("\n"), @r"
    `test` (`make test`) exited with 0
    `lint` (`make lint`) exited with 2
    ");
    insta::assert_snapshot!(review.findings[0].requirement.as_deref().unwrap(), @"`make lint` exits with 0");
}

#[test]
fn without_checks_the_review_is_inconclusive() {
    let review = checks(&[]);
    assert_eq!(review.verdict, Verdict::Inconclusive(Inconclusive::Missing("no check was run".to_owned())));
}

#[test]
fn equal_findings_of_two_checks_are_reported_once_and_both_checks_fail() {
    let output = "src/a.c:3:5: error: bad\n";
    let review = checks(&[ran("build", 2, output), ran("test", 2, output)]);
    insta::assert_snapshot!(described(&review), @r"
    changes_requested: 0 of 2 checks passed; `build` (`make build`) exited with 2; `test` (`make test`) exited with 2.

    [critical] src/a.c:3
      bad
    ");
}

#[test]
fn excess_findings_are_counted_and_errors_come_first() {
    let mut output: String = (0..MAX_PER_COMMAND + 20).map(|line| format!("a.c:{line}: warning: unused\n")).collect();
    output += "b.c:1: error: this one\n";
    let found = findings(&ReviewerName::from("checks"), &[ran("build", 2, &output)]);
    assert_eq!(found.len(), MAX_PER_COMMAND + 1);
    assert_eq!((found[0].severity, found[0].description.as_str()), (Severity::Critical, "this one"));
    insta::assert_snapshot!(found[MAX_PER_COMMAND].description, @"`build` reports 21 more like these.");
}

#[test]
fn numbers_and_times_in_the_output_do_not_change_the_finding_id() {
    let id = |output| findings(&ReviewerName::from("checks"), &[ran("test", 1, output)])[0].id.clone();
    assert_eq!(id("2 failed in 0.31 s"), id("2 failed in 0.29 s, see /tmp/log.8861"));
}

#[test]
fn equal_messages_on_different_lines_have_different_ids() {
    let output = "a.c:9: error: unused\na.c:3: error: unused\n";
    let found = findings(&ReviewerName::from("checks"), &[ran("build", 2, output)]);
    assert_ne!(found[0].id, found[1].id);
}

/// Properties of any output of a check.
mod properties {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    /// Parts of every tool's output, valid and broken.
    const PIECES: &[&str] = &[
        "\n",
        "\n\n",
        "\r\n",
        "\r",
        " ",
        "\t",
        "E   ",
        "E     File \"a.py\", line 3\n",
        "src/a.rs:3:5",
        "src/a.rs:3",
        ": ",
        ":",
        "a.py:7: in f\n",
        "a.py:7: ValueError\n",
        "error",
        "error[E0308]: bad\n",
        "warning: odd\n",
        "note: so\n",
        "help: try\n",
        "  --> src/a.rs:3:5\n",
        " = help: do\n",
        "thread 't' panicked at src/a.rs:3:5:\n",
        "---- t stdout ----\n",
        "Error: no\n",
        "Traceback (most recent call last):\n",
        "  File \"a.py\", line 3, in f\n",
        "ValueError: x\n",
        "____ test_x ____\n",
        "====\n",
        "FAILED a.py::t - x\n",
        "src/a.ts(3,5): error TS1: x\n",
        "src/a.js\n",
        "  3:5  error  bad  rule\n",
        "--- FAIL: TestX (0.00s)\n",
        "    a_test.go:3: bad\n",
        "panic: x\n",
        "\ta.go:3 +0x1d\n",
        "FAIL\n",
        "not ok 1 - t\n",
        "  ---\n",
        "  location: 'a.js:3:5'\n",
        "  error: |-\n",
        "  ...\n",
        "    at f (a.js:3:5)\n",
        "● t\n",
        "{",
        "}",
        "[",
        "]",
        "\"runs\"",
        "{\"version\":\"2.1.0\",\"runs\":[",
        "{}",
        "]}",
        "\u{1b}[31m",
        "\u{1b}",
        "\u{1b}]0;",
        "\u{7}",
        "é",
        "…",
        "\u{0}",
        "99999999999",
        "(",
        ")",
        "%",
    ];

    fn outputs() -> impl Strategy<Value = String> {
        prop_oneof![vec(select(PIECES), 0..40).prop_map(|pieces| pieces.concat()), any::<String>()]
    }

    proptest! {
        #[test]
        fn any_output_gives_a_review(outputs in vec((outputs(), any::<Option<i32>>()), 1..4)) {
            let ran: Vec<_> = outputs
                .into_iter()
                .map(|(output, code)| CheckRun { code, ..ran("test", 0, &output) })
                .collect();
            let review = checks(&ran);
            let failed = ran.iter().any(|ran| ran.code != Some(0));
            prop_assert_eq!(review.verdict == Verdict::ChangesRequested, failed);
            prop_assert_eq!(review.verdict == Verdict::Approved, !failed);
            prop_assert_eq!(review.findings.iter().any(|finding| finding.severity == Severity::Critical), failed);
            prop_assert!(review.findings.len() <= ran.len() * (MAX_PER_COMMAND + 2));
            prop_assert!(review.minor.len() <= ran.len() * (MAX_PER_COMMAND + 1));
            prop_assert!(review.findings.iter().all(|finding| !finding.description.trim().is_empty()));
            let ids: std::collections::BTreeSet<_> = review.findings.iter().map(|finding| &finding.id).collect();
            prop_assert_eq!(ids.len(), review.findings.len());
        }
    }

    /// Long output made of one repeated piece. A quadratic parser would not finish in time.
    #[test]
    fn long_output_is_parsed_in_linear_time() {
        for piece in PIECES {
            let flood = format!("\"runs\"\n{}", piece.repeat(100_000 / piece.len()));
            let found = findings(&ReviewerName::from("checks"), &[ran("test", 1, &flood)]);
            assert!((1..=MAX_PER_COMMAND + 2).contains(&found.len()), "{piece:?} gives {}", found.len());
        }
    }
}

/// The review of `head` compared with the checks on `base`, in one line.
fn against(head: &[CheckRun], base: &[CheckRun]) -> String {
    let (review, sorted) = review_against_base(&ReviewerName::from("checks"), ReviewerKind::Tests, head, base);
    assert_eq!(compare_with_base(&ReviewerName::from("checks"), head, base), sorted);
    let descriptions = |all: Vec<String>| all.join(" | ");
    format!(
        "{}; new: {}; on the base: {}",
        review.verdict.into_str(),
        descriptions(review.findings.iter().map(|one| one.description.clone()).collect()),
        descriptions(sorted.on_base.iter().map(|one| one.description.clone()).collect()),
    )
}

#[test]
fn failures_that_exist_on_the_base_do_not_block() {
    let old = "src/a.rs:3: error: unused";
    let base = [ran("lint", 1, old)];
    // Line numbers change when lines are added above.
    assert_eq!(
        against(&[ran("lint", 1, "src/a.rs:9: error: unused")], &base),
        "approved_with_minor; new: ; on the base: unused"
    );
    // Equal messages on different lines are different findings.
    let twice = |first: u32| format!("src/a.rs:{first}: error: unused\nsrc/a.rs:{}: error: unused", first + 1);
    assert_eq!(
        against(&[ran("lint", 1, &twice(7))], &[ran("lint", 1, &twice(3))]),
        "approved_with_minor; new: ; on the base: unused | unused"
    );
    assert_eq!(against(&[ran("lint", 1, &twice(7))], &base), "changes_requested; new: unused; on the base: unused");
    // Another failure of the same check.
    assert_eq!(
        against(&[ran("lint", 1, &format!("{old}\nsrc/b.rs:1: error: shadowed"))], &base),
        "changes_requested; new: shadowed; on the base: unused"
    );
    // The same message from another command.
    assert_eq!(against(&[ran("test", 1, old)], &base), "changes_requested; new: unused; on the base: ");
    assert_eq!(against(&[ran("lint", 0, "")], &base), "approved; new: ; on the base: ");
    assert_eq!(against(&[ran("lint", 1, old)], &[]), "changes_requested; new: unused; on the base: ");
    assert_eq!(against(&[ran("lint", 1, old)], &[ran("lint", 0, "")]), "changes_requested; new: unused; on the base: ");
}

#[test]
fn a_failure_without_a_location_is_identified_by_its_output() {
    let same = |head: &str, base: &str| {
        let line = against(&[ran("test", 1, head)], &[ran("test", 1, base)]);
        line.starts_with("approved_with_minor; new: ; on the base: `test`")
    };
    assert!(same("", ""));
    assert!(same("boom after 13 ms in /tmp/x81\n", "boom after 9 ms in /tmp/y7\n"));
    assert!(!same("boom\n", "crash\n"));
    assert!(!same("boom\nand crash\n", "boom\n"));
    let otherwise = against(&[ran("test", 2, "boom")], &[ran("test", 1, "boom")]);
    assert!(otherwise.starts_with("changes_requested"), "{otherwise}");
}

#[test]
fn a_report_with_unreadable_results_is_shown_as_text() {
    let readable = r#"{"results":[{"level":"error","message":{"text":"broken"}}]}"#;
    let output = format!(r#"{{"version":"2.1.0","runs":[{readable},{{"results":{{"message":"hidden"}}}}]}}"#);
    let review = checks(&[ran("lint", 1, &output)]);
    assert_eq!(review.verdict, Verdict::ChangesRequested);
    assert!(review.findings.iter().any(|finding| finding.description.contains("hidden")), "{review:?}");
}
