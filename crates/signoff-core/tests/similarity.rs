//! Text similarity and fingerprints of findings, as examples and as properties.

use proptest::prelude::*;
use signoff_core::ids::{FindingId, ReviewerName};
use signoff_core::review::{Finding, Severity};
use signoff_core::similarity::{Signature, assign_ids, fingerprint};

/// Whether two descriptions describe the same issue, by their words alone.
fn alike(a: &str, b: &str) -> bool {
    Signature::new(a).alike(&Signature::new(b))
}

const PAIRS: [(&str, &str); 16] = [
    (
        "`load_config` swallows the parse error and returns the default, so a typo in the file goes unnoticed",
        "A broken config file is silently ignored: load_config() falls back to defaults when parsing fails",
    ),
    (
        "The lock is released before the counter is written, two workers can take the same slot",
        "Race: two workers may claim one slot because the counter is updated after the lock is released",
    ),
    (
        "User input is concatenated into the SQL string in `find_orders`, which allows injection",
        "SQL injection in find_orders: the query string is built from unescaped user input",
    ),
    ("Missing test for the empty basket", "There is no test that covers an empty basket"),
    (
        "parse_date panics on an empty string because it indexes the first byte without checking the length",
        "Indexing bytes[0] in `parseDate` panics when the string is empty",
    ),
    (
        "The retry loop never sleeps, so a failing server is hammered",
        "No back-off between retries: the loop hammers the failing server",
    ),
    ("Typo in the public name `recieveAll`, should be `receiveAll`", "recieveAll is misspelled (receiveAll)"),
    (
        "Requirement 3 asks for a dry-run flag; the command has none",
        "The dry-run flag of requirement 3 is not implemented in the command",
    ),
    // Different findings with similar words. Three count as equal, so the location must match too.
    (
        "`load_config` swallows the parse error and returns the default, so a typo in the file goes unnoticed",
        "load_config reads the file on every call; cache it",
    ),
    (
        "The lock is released before the counter is written, two workers can take the same slot",
        "Log lines of workers are interleaved because each line is written in two calls",
    ),
    (
        "User input is concatenated into the SQL string in `find_orders`, which allows injection",
        "find_orders returns archived orders too, the filter on the state is missing",
    ),
    ("Missing test for the empty basket", "Missing documentation of the exit codes"),
    (
        "The timeout was lowered from 30 to 10 seconds for uploads",
        "The timeout was lowered from 60 to 20 seconds for downloads",
    ),
    (
        "The retry loop never sleeps, so a failing server is hammered",
        "The response body is not closed when the status is not 200",
    ),
    ("Typo in the public name `recieveAll`, should be `receiveAll`", "sendAll drops the last message of a batch"),
    ("Requirement 3 asks for a dry-run flag; the command has none", "Errors are printed to stdout instead of stderr"),
];

#[test]
fn similarity_scores_of_equal_and_different_findings() {
    let lines: Vec<String> = PAIRS
        .iter()
        .map(|(a, b)| {
            let score = Signature::new(a).score(&Signature::new(b));
            let word = if alike(a, b) { "same " } else { "other" };
            format!("{word} {score:>3}  {a:.42} | {b:.42}")
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    same  148  `load_config` swallows the parse error and | A broken config file is silently ignored: 
    same  374  The lock is released before the counter is | Race: two workers may claim one slot becau
    same  385  User input is concatenated into the SQL st | SQL injection in find_orders: the query st
    same  386  Missing test for the empty basket | There is no test that covers an empty bask
    same  347  parse_date panics on an empty string becau | Indexing bytes[0] in `parseDate` panics wh
    same  296  The retry loop never sleeps, so a failing  | No back-off between retries: the loop hamm
    same  262  Typo in the public name `recieveAll`, shou | recieveAll is misspelled (receiveAll)
    same  461  Requirement 3 asks for a dry-run flag; the | The dry-run flag of requirement 3 is not i
    same  177  `load_config` swallows the parse error and | load_config reads the file on every call; 
    same  158  The lock is released before the counter is | Log lines of workers are interleaved becau
    other 102  User input is concatenated into the SQL st | find_orders returns archived orders too, t
    other 134  Missing test for the empty basket | Missing documentation of the exit codes
    other   0  The timeout was lowered from 30 to 10 seco | The timeout was lowered from 60 to 20 seco
    other  13  The retry loop never sleeps, so a failing  | The response body is not closed when the s
    other   5  Typo in the public name `recieveAll`, shou | sendAll drops the last message of a batch
    other   0  Requirement 3 asks for a dry-run flag; the | Errors are printed to stdout instead of st
    ");
}

#[test]
fn a_fingerprint_depends_on_words_file_and_kind_only() {
    let variants = [
        ("first report", Some("src/a.rs"), "bug", "Index out of bounds in `parse_date`"),
        ("case and quotes", Some("src/a.rs"), "Bug", "index out of bounds in 'PARSE_DATE'!"),
        ("another order", Some("./src/a.rs"), "bug", "In parse_date: out of bounds index"),
        ("with its line", Some("src/a.rs"), "bug", "line 45: Index out of bounds in `parse_date` (src/a.rs:45)"),
        ("a range of lines", Some("src/a.rs"), "bug", "Lines 45-47, 50 and 52: index out of bounds in parse_date"),
        ("another file", Some("src/b.rs"), "bug", "Index out of bounds in `parse_date`"),
        ("another kind", Some("src/a.rs"), "style", "Index out of bounds in `parse_date`"),
        ("another word", Some("src/a.rs"), "bug", "Index out of bounds in `parse_time`"),
        ("an amount", Some("src/a.rs"), "bug", "Index 45 out of bounds in `parse_date`"),
        ("no file", None, "bug", "Index out of bounds in `parse_date`"),
        ("signs only", None, "bug", "???"),
        ("other signs", None, "bug", "!!!"),
    ];
    let lines: Vec<String> = variants
        .iter()
        .map(|(name, file, kind, text)| format!("{name:<17} {}", fingerprint(*file, kind, text)))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    first report      f-bdb7c85743
    case and quotes   f-bdb7c85743
    another order     f-bdb7c85743
    with its line     f-bdb7c85743
    a range of lines  f-bdb7c85743
    another file      f-17d7fb4e76
    another kind      f-c38f8e2720
    another word      f-31e41fe43e
    an amount         f-ccfe9238aa
    no file           f-fb31f72b4d
    signs only        f-c833ac425f
    other signs       f-8aac8716a8
    ");
}

#[test]
fn the_same_words_in_one_review_are_numbered_by_line() {
    let mut findings = vec![
        finding(Some(90), "unwrap may panic"),
        finding(None, "unwrap may panic"),
        finding(Some(10), "unwrap may panic"),
        finding(Some(50), "something else"),
    ];
    assign_ids(&mut findings);
    let lines: Vec<String> = findings.iter().map(|f| format!("{:?} {}", f.line, f.id)).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    Some(90) f-f0d86e365a-2
    None f-f0d86e365a-3
    Some(10) f-f0d86e365a
    Some(50) f-30a74a7915
    ");
}

fn finding(line: Option<u32>, description: &str) -> Finding {
    Finding {
        id: FindingId::new(""),
        sources: vec![ReviewerName::new("code")],
        kind: "bug".into(),
        severity: Severity::Important,
        file: Some("src/a.rs".into()),
        line,
        description: description.into(),
        requirement: None,
        suggestion: None,
    }
}

proptest! {
    #[test]
    fn similarity_is_symmetric(a in "\\PC{0,80}", b in "\\PC{0,80}") {
        prop_assert_eq!(alike(&a, &b), alike(&b, &a));
        prop_assert_eq!(Signature::new(&a).score(&Signature::new(&b)), Signature::new(&b).score(&Signature::new(&a)));
    }

    #[test]
    fn every_text_is_similar_to_itself(text in any::<String>()) {
        prop_assert_eq!(alike(&text, &text), !text.trim().is_empty());
    }

    #[test]
    fn a_score_is_at_most_1000(a in any::<String>(), b in any::<String>()) {
        prop_assert!(Signature::new(&a).score(&Signature::new(&b)) <= 1000);
    }

    #[test]
    fn a_fingerprint_has_one_shape(file in proptest::option::of(any::<String>()), kind in any::<String>(), text in any::<String>()) {
        let id = fingerprint(file.as_deref(), &kind, &text);
        let digits = id.as_str().strip_prefix("f-").unwrap();
        prop_assert!(digits.len() == 10 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }

    #[test]
    fn lines_named_in_the_text_do_not_matter(words in "[a-z]{3,8}( [a-z]{3,8}){2,6}", line in 1u32..9999, other in 1u32..9999) {
        let id = |line: u32| fingerprint(Some("a.rs"), "bug", &format!("{words} at src/a.rs:{line}, see line {line}"));
        prop_assert_eq!(id(line), id(other));
    }

    #[test]
    fn numbering_does_not_depend_on_the_order(lines in proptest::collection::btree_set(1u32..500, 1..12).prop_map(Vec::from_iter).prop_shuffle()) {
        let mut findings: Vec<Finding> = lines.iter().map(|line| finding(Some(*line), "unwrap may panic")).collect();
        assign_ids(&mut findings);
        let mut sorted = findings.clone();
        sorted.sort_by_key(|finding| finding.line);
        let mut again = sorted.clone();
        assign_ids(&mut again);
        prop_assert_eq!(sorted, again);
    }
}
