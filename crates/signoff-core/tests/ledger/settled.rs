//! A decision about one finding does not apply to other findings.

use super::*;

/// Pairs of a decided finding and a different finding that is reported afterwards.
const OTHERS: [(SeverityAt, &str, SeverityAt, &str); 9] = [
    (
        (Some(9), Severity::Minor),
        "the variable `total` of checkout() is badly named",
        (Some(12), Severity::Critical),
        "the variable `total` of checkout() is charged twice to the customer",
    ),
    (
        (Some(40), Severity::Important),
        "`delete_user` has no docstring",
        (Some(44), Severity::Critical),
        "`delete_user` deletes all users when the id is empty",
    ),
    (
        (None, Severity::Critical),
        "error handling in the parser is missing for empty input",
        (None, Severity::Critical),
        "error handling in the parser swallows the payment exception",
    ),
    ((Some(9), Severity::Critical), "price may be negative", (Some(9), Severity::Critical), "price may be null"),
    (
        (Some(9), Severity::Critical),
        "the amount is not validated",
        (Some(9), Severity::Critical),
        "the name is not validated",
    ),
    (
        (Some(9), Severity::Critical),
        "missing test for refund()",
        (Some(9), Severity::Critical),
        "refund() pays the money out twice",
    ),
    // One word of a long text differs.
    (
        (Some(9), Severity::Important),
        "The handler of the route for refunds stores the reason of the refund without checking its length first",
        (Some(9), Severity::Important),
        "The handler of the route for refunds stores the amount of the refund without checking its length first",
    ),
    // Nearly the same text, but more severe.
    (
        (Some(9), Severity::Minor),
        "The handler of the route for refunds stores the reason of the refund without checking its length first",
        (Some(9), Severity::Critical),
        "The handlers of the routes for refunds stores the reason of the refund, not checking its length at first sight",
    ),
    ((Some(9), Severity::Minor), LEAK, (Some(10), Severity::Minor), "The session token ends up in the debug log"),
];

type SeverityAt = (Option<u32>, Severity);

fn found((line, severity): SeverityAt, description: &str) -> Finding {
    Finding { line, severity, ..at(0, description) }
}

fn settled(found: Finding, state: FindingState) -> (Ledger, FindingId) {
    let mut ledger = Ledger::default();
    ledger.record(&round(1), &[review("code", changes(), [found])]);
    let id = ledger.entries()[0].finding.id.clone();
    ledger.decide(&id, FindingDecision { state, ..refuted("it cannot be") });
    (ledger, id)
}

#[test]
fn another_finding_at_the_same_location_is_new_and_open() {
    for (at, decided, then, reported) in OTHERS {
        for state in [FindingState::Refuted, FindingState::Deferred, FindingState::OutOfScope] {
            for reviewer in ["code", "spec"] {
                let (mut ledger, id) = settled(found(at, decided), state);
                let review = review(reviewer, changes(), [found(then, reported)]);
                let change = ledger.record(&round(2), &[review]);
                let [new] = change.new.as_slice() else { panic!("{reported}: {change:?}") };
                let open: Vec<_> = ledger.open(FailThreshold::Low).map(|entry| &entry.finding).collect();
                assert_eq!((open[0].description.as_str(), open.len()), (reported, 1));
                assert_eq!(ledger.reported_as(new).map(|entry| entry.state), Some(FindingState::Open));
                let old = ledger.get(&id).unwrap();
                assert_eq!((old.finding.description.as_str(), old.state), (decided, state));
            }
        }
    }
}

#[test]
fn the_same_finding_stays_settled_and_keeps_its_text() {
    let again = [
        (Some(11), "The session token is written to the debug log."),
        (Some(300), LEAK),
        (Some(11), "the debug log: the **session token** is written to it"),
    ];
    for (line, text) in again {
        let (mut ledger, id) = settled(at(10, LEAK), FindingState::Refuted);
        let change = ledger.record(&round(2), &[review("code", changes(), [found((line, Severity::Critical), text)])]);
        assert_eq!(change.refuted, [id], "{text}");
        let [entry] = ledger.entries() else { panic!("{ledger:?}") };
        assert_eq!((entry.finding.description.as_str(), entry.finding.line), (LEAK, line));
        assert_eq!(entry.seen.len(), 2);
    }
}

/// A long text with a corrected typo or another kind is still the refuted finding.
#[test]
fn nearly_the_same_text_stays_settled() {
    let text = "The handler of the route for refunds stores the reason of the refund without chekcing its length first, so \
                that a customer can fill the table of refunds with a single request and nobody is able to pay";
    let (mut ledger, id) = settled(at(10, text), FindingState::Refuted);
    let mended = Finding { kind: "style".into(), ..at(12, &text.replace("chekcing", "checking")) };
    let change = ledger.record(&round(2), &[review("code", changes(), [mended])]);
    assert_eq!(change.refuted, [id], "{change:?}");
}

/// The decision applies to the last text of the finding, not to earlier texts.
#[test]
fn earlier_texts_of_a_settled_finding_are_not_settled() {
    let mut ledger = Ledger::default();
    ledger.record(&round(1), &[review("code", changes(), [at(10, OVERFLOW)])]);
    ledger.record(&round(2), &[review("code", changes(), [at(10, OVERFLOW_REWORDED)])]);
    let [entry] = ledger.entries() else { panic!("{ledger:?}") };
    let id = entry.finding.id.clone();
    ledger.decide(&id, refuted("it uses checked_add"));
    let change = ledger.record(&round(3), &[review("code", changes(), [at(10, OVERFLOW)])]);
    assert_eq!(change.new.len(), 1, "{change:?}");
    assert_eq!(ledger.reported_as(&id).map(|entry| entry.state), Some(FindingState::Open));
}

/// Two reviewers report different findings at one location that share a word.
#[test]
fn findings_that_the_merge_separates_are_two_entries() {
    let pairs = [
        ("the amount is not validated", "the name is not validated"),
        ("price may be negative", "price may be null"),
        ("missing validation of amount", "missing escaping of name"),
        ("users table is dropped without backup", "sql injection in the query string"),
    ];
    for (spec, code) in pairs {
        let reviews = [review("spec", changes(), [at(5, spec)]), review("code", changes(), [at(5, code)])];
        let mut ledger = Ledger::default();
        assert_eq!(ledger.record(&round(1), &reviews).new.len(), 2, "{spec} / {code}");
        // In the next round, each finding matches its own entry.
        let change = ledger.record(&round(2), &reviews);
        assert_eq!((change.new.len(), change.carried.len()), (0, 2), "{spec} / {code}");
        let mut ledger = Ledger::default();
        ledger.record(&round(1), &reviews[..1]);
        assert_eq!(ledger.record(&round(2), &reviews).new.len(), 1, "{spec} / {code}");
    }
}

/// One known finding, and two reviewers who report its text at two locations.
#[test]
fn one_entry_takes_one_finding_of_a_round() {
    let mut ledger = Ledger::default();
    ledger.record(&round(1), &[review("spec", changes(), [at(10, LEAK)])]);
    let reviews = [review("code", changes(), [at(100, LEAK)]), review("spec", changes(), [at(10, LEAK)])];
    ledger.record(&round(2), &reviews);
    let mut lines: Vec<_> = ledger.entries().iter().map(|entry| entry.finding.line).collect();
    lines.sort();
    assert_eq!(lines, [Some(10), Some(100)]);
}
