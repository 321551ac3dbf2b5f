//! The ledger over several rounds, as examples and as properties.

mod settled;

use proptest::prelude::*;
use signoff_core::ids::{AttemptId, Commit, FindingId, ReviewerName};
use signoff_core::ledger::{ClaimKind, DecidedBy, FindingDecision, FindingState, FixClaim, Ledger, Round, RoundChange};
use signoff_core::merge::merge;
use signoff_core::review::{FailThreshold, Finding, Inconclusive, Note, Review, ReviewerKind, Severity, Verdict};
use signoff_core::similarity::assign_ids;

const OVERFLOW: &str = "The sum of the cart overflows for large quantities";
const OVERFLOW_REWORDED: &str = "For large quantities the cart's sum still overflows, use checked_add";
const NO_TEST: &str = "There is no test for an empty cart";
const UNUSED: &str = "The import of HashMap is unused";
const LEAK: &str = "The session token is written to the debug log";

#[test]
fn three_cycles_of_one_loop() {
    let mut ledger = Ledger::default();
    let mut story = Vec::new();

    let code = review("code", changes(), [at(10, OVERFLOW), at(3, UNUSED)]);
    let spec = review("spec", changes(), [at(80, NO_TEST)]);
    story.push(describe("1: both find something", &ledger.record(&round(1), &[code, spec]), &ledger));

    let unused = ledger.entries().iter().find(|entry| entry.finding.description == UNUSED).unwrap().finding.id.clone();
    assert!(ledger.decide(&unused, refuted("a macro uses it")));
    let code = review("code", changes(), [at(14, OVERFLOW_REWORDED), at(5, UNUSED), at(60, LEAK)]);
    let spec = review("spec", Verdict::Approved, []);
    story.push(describe("2: spec is content, a person refuted one", &ledger.record(&round(2), &[code, spec]), &ledger));

    let code = review("code", Verdict::Approved, []);
    let spec = review("spec", changes(), [at(90, NO_TEST)]);
    story.push(describe(
        "3: code is content, the test is gone again",
        &ledger.record(&round(3), &[code, spec]),
        &ledger,
    ));

    insta::assert_snapshot!(story.join("\n\n"), @r#"
    1: both find something (new 3)
      f-b25fd04ee7   Open      3 important cycles 1   The import of HashMap is unused (code)
      f-19b5e99c52   Open     10 important cycles 1   The sum of the cart overflows for large quantities (code)
      f-6e64e4bc93   Open     80 important cycles 1   There is no test for an empty cart (spec)

    2: spec is content, a person refuted one (new 1, carried 1, fixed 1, refuted 1)
      f-b25fd04ee7   Refuted   5 important cycles 1,2 The import of HashMap is unused (code)
         Refuted by Person("ada"): a macro uses it
      f-19b5e99c52   Open     14 important cycles 1,2 For large quantities the cart's sum still overflows, use checked_add (code)
      f-6e64e4bc93   Fixed    80 important cycles 1   There is no test for an empty cart (spec)
         Fixed by Reviewer(ReviewerName("spec")): approved without reporting it again in cycle 2 of pass 1
      f-a45c0a81cc   Open     60 important cycles 2   The session token is written to the debug log (code)

    3: code is content, the test is gone again (fixed 2, regressed 1)
      f-b25fd04ee7   Refuted   5 important cycles 1,2 The import of HashMap is unused (code)
         Refuted by Person("ada"): a macro uses it
      f-19b5e99c52   Fixed    14 important cycles 1,2 For large quantities the cart's sum still overflows, use checked_add (code)
         Fixed by Reviewer(ReviewerName("code")): approved without reporting it again in cycle 3 of pass 1
      f-6e64e4bc93   Open     90 important cycles 1,3 There is no test for an empty cart (spec)
         Fixed by Reviewer(ReviewerName("spec")): approved without reporting it again in cycle 2 of pass 1
         Open by Reviewer(ReviewerName("spec")): reported again in cycle 3 of pass 1
      f-a45c0a81cc   Fixed    60 important cycles 2   The session token is written to the debug log (code)
         Fixed by Reviewer(ReviewerName("code")): approved without reporting it again in cycle 3 of pass 1
    "#);
    assert_eq!(ledger.entries().iter().map(|entry| entry.seen.len()).max(), Some(2));
}

/// An approval that repeats an open finding as a note does not resolve the finding.
#[test]
fn a_note_that_repeats_a_finding_keeps_it_open() {
    for (verdict, severity) in [(Verdict::Approved, Severity::Important), (Verdict::ApprovedWithMinor, Severity::Minor)]
    {
        for lead in ["", "ID ", "**ID** (`src/cart.rs:12`): "] {
            let mut ledger = Ledger::default();
            ledger.record(&round(1), &[review("code", changes(), [at(10, OVERFLOW)])]);
            let [entry] = ledger.entries() else { panic!("{ledger:?}") };
            let description = format!("{lead}{OVERFLOW}").replace("ID", entry.finding.id.as_str());
            let mut second = review("code", verdict.clone(), []);
            second.minor.push(Note { file: Some("src/cart.rs".to_owned()), line: Some(12), description });
            let change = ledger.record(&round(2), &[second]);
            assert!(change.fixed.is_empty(), "{lead}: {change:?}");
            let [entry] = ledger.entries() else { panic!("{ledger:?}") };
            assert_eq!((entry.state, entry.finding.severity), (FindingState::Open, severity), "{lead}");
        }
    }
}

#[test]
fn a_note_that_says_a_finding_is_fixed_does_not_keep_it_open() {
    let mut ledger = Ledger::default();
    ledger.record(&round(1), &[review("code", changes(), [at(10, OVERFLOW)])]);
    let [entry] = ledger.entries() else { panic!("{ledger:?}") };
    let description = format!("{}: {OVERFLOW}: fixed", entry.finding.id.as_str());
    let mut second = review("code", Verdict::Approved, []);
    second.minor.push(Note { file: Some("src/cart.rs".to_owned()), line: Some(12), description });
    assert_eq!(ledger.record(&round(2), &[second]).fixed.len(), 1);
}

#[test]
fn the_same_finding_of_two_reviewers_is_one_entry() {
    let mut ledger = Ledger::default();
    let mut worse = at(12, OVERFLOW_REWORDED);
    worse.severity = Severity::Critical;
    let reviews = [review("code", changes(), [at(10, OVERFLOW)]), review("security", changes(), [worse])];
    let story = describe("one place, alike in words", &ledger.record(&round(1), &reviews), &ledger);
    insta::assert_snapshot!(story, @"
    one place, alike in words (new 1)
      f-19b5e99c52   Open     12 critical  cycles 1   For large quantities the cart's sum still overflows, use checked_add (code+security)
    ");
}

#[test]
fn equal_text_at_distant_lines_stays_two_entries() {
    let mut ledger = Ledger::default();
    let both = review("code", changes(), [at(10, LEAK), at(200, LEAK)]);
    let first = describe("two leaks", &ledger.record(&round(1), &[both]), &ledger);
    let one = review("code", changes(), [at(190, LEAK)]);
    let second = describe("one is reported again", &ledger.record(&round(2), &[one]), &ledger);
    insta::assert_snapshot!(format!("{first}\n\n{second}"), @"
    two leaks (new 2)
      f-a45c0a81cc   Open     10 important cycles 1   The session token is written to the debug log (code)
      f-a45c0a81cc-2 Open    200 important cycles 1   The session token is written to the debug log (code)

    one is reported again (carried 2)
      f-a45c0a81cc   Open     10 important cycles 1   The session token is written to the debug log (code)
      f-a45c0a81cc-2 Open    190 important cycles 1,2 The session token is written to the debug log (code)
    ");
}

#[test]
fn closing_a_finding() {
    let open_after = |reviews: &[Review]| {
        let mut ledger = Ledger::default();
        let found = [review("code", changes(), [at(10, LEAK)]), review("spec", changes(), [at(10, LEAK)])];
        ledger.record(&round(1), &found);
        ledger.record(&round(2), reviews);
        let entry = &ledger.entries()[0];
        format!("{:?} {}", entry.state, entry.decisions.iter().map(|d| d.evidence.as_str()).collect::<String>())
    };
    let approved = |name| review(name, Verdict::Approved, []);
    let missing = Verdict::Inconclusive(Inconclusive::Missing("timed out".into()));
    let lines = [
        ("no review", open_after(&[])),
        ("another reviewer approves", open_after(&[approved("tests")])),
        ("one of two reviews approves", open_after(&[approved("code")])),
        ("both approve", open_after(&[approved("code"), approved("spec")])),
        ("one requests another change", open_after(&[approved("code"), review("spec", changes(), [at(70, NO_TEST)])])),
        ("one review is missing", open_after(&[approved("code"), review("spec", missing, [])])),
        ("an approval that lists it", open_after(&[review("code", Verdict::ApprovedWithMinor, [at(10, LEAK)])])),
    ];
    let lines: Vec<String> = lines.iter().map(|(when, state)| format!("{when:<29} {}", state.trim_end())).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    no review                     Open
    another reviewer approves     Open
    one of two reviews approves   Fixed approved without reporting it again in cycle 2 of pass 1
    both approve                  Fixed approved without reporting it again in cycle 2 of pass 1
    one requests another change   Open
    one review is missing         Open
    an approval that lists it     Open
    ");
}

#[test]
fn refuted_and_deferred_findings_stay_settled_when_reported_again() {
    let mut lines = Vec::new();
    for state in [
        FindingState::Refuted,
        FindingState::Deferred,
        FindingState::OutOfScope,
        FindingState::Fixed,
        FindingState::Open,
    ] {
        let mut ledger = Ledger::default();
        ledger.record(&round(1), &[review("checks", changes(), [at(10, LEAK)])]);
        let id = ledger.entries()[0].finding.id.clone();
        ledger.decide(&id, FindingDecision { state, ..refuted("") });
        let change = ledger.record(&round(2), &[review("checks", changes(), [at(11, LEAK)])]);
        lines.push(format!("{state:?} -> {:?} ({})", ledger.entries()[0].state, lists(&change)));
    }
    insta::assert_snapshot!(lines.join("\n"), @"
    Refuted -> Refuted (refuted 1)
    Deferred -> Deferred (out of scope 1)
    OutOfScope -> OutOfScope (out of scope 1)
    Fixed -> Open (regressed 1)
    Open -> Open (carried 1)
    ");
    assert!(!Ledger::default().decide(&FindingId::new("f-unknown"), refuted("")));
}

#[test]
fn a_fixer_gets_the_most_severe_findings_first() {
    let mut ledger = Ledger::default();
    let severe = |line, text, severity| Finding { severity, ..at(line, text) };
    let findings = [
        severe(10, OVERFLOW, Severity::Minor),
        severe(90, NO_TEST, Severity::Important),
        severe(50, LEAK, Severity::Critical),
        severe(40, UNUSED, Severity::Important),
    ];
    ledger.record(&round(1), &[review("code", changes(), findings)]);
    let lines: Vec<String> = ledger
        .findings_for_fix(FailThreshold::Medium)
        .iter()
        .map(|entry| {
            format!("{} {:?} {}", entry.finding.severity.into_str(), entry.finding.line, entry.finding.description)
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    critical Some(50) The session token is written to the debug log
    important Some(40) The import of HashMap is unused
    important Some(90) There is no test for an empty cart
    ");
}

#[test]
fn a_thousand_findings_are_matched_with_a_thousand_entries() {
    let findings = |shift: u32| {
        let text = |n: u32| format!("The value number{n} of table{} is never read by step{}", n % 7, n % 31);
        review("code", changes(), (0..1000).map(|n| at(n * 3 + shift, &text(n))).collect::<Vec<_>>())
    };
    let mut ledger = Ledger::default();
    assert_eq!(ledger.record(&round(1), &[findings(0)]).new.len(), 1000);
    assert_eq!(ledger.record(&round(2), &[findings(40)]).carried.len(), 1000);
}

fn changes() -> Verdict {
    Verdict::ChangesRequested
}

fn round(cycle: u32) -> Round {
    let commit = Some(Commit::new(format!("c{cycle}")));
    Round { pass: 1, phase: 1, item: None, cycle, commit, checkpoint: None, task: None }
}

fn at(line: u32, description: &str) -> Finding {
    Finding {
        id: FindingId::new(""),
        sources: Vec::new(),
        kind: "bug".into(),
        severity: Severity::Important,
        file: Some("src/cart.rs".into()),
        line: Some(line),
        description: description.into(),
        requirement: None,
        suggestion: None,
    }
}

fn review(name: &str, verdict: Verdict, findings: impl Into<Vec<Finding>>) -> Review {
    let mut review = Review::new(ReviewerName::new(name), ReviewerKind::General, verdict);
    review.findings = findings.into();
    for finding in &mut review.findings {
        finding.sources = vec![review.reviewer.clone()];
    }
    assign_ids(&mut review.findings);
    review
}

fn refuted(evidence: &str) -> FindingDecision {
    FindingDecision {
        state: FindingState::Refuted,
        by: DecidedBy::Person("ada".into()),
        commit: None,
        evidence: evidence.into(),
    }
}

fn lists(change: &RoundChange) -> String {
    let lists = [
        ("new", &change.new),
        ("carried", &change.carried),
        ("fixed", &change.fixed),
        ("regressed", &change.regressed),
        ("refuted", &change.refuted),
        ("out of scope", &change.out_of_scope),
    ];
    let counts: Vec<String> =
        lists.iter().filter(|(_, ids)| !ids.is_empty()).map(|(name, ids)| format!("{name} {}", ids.len())).collect();
    counts.join(", ")
}

fn describe(title: &str, change: &RoundChange, ledger: &Ledger) -> String {
    let mut lines = vec![format!("{title} ({})", lists(change))];
    for entry in ledger.entries() {
        let finding = &entry.finding;
        let sources: Vec<&str> = finding.sources.iter().map(ReviewerName::as_str).collect();
        let cycles: Vec<String> = entry.seen.iter().map(|round| round.cycle.to_string()).collect();
        lines.push(format!(
            "  {:<14} {:<7} {:>3} {:<9} cycles {:<3} {} ({})",
            finding.id.as_str(),
            format!("{:?}", entry.state),
            finding.line.unwrap_or(0),
            finding.severity.into_str(),
            cycles.join(","),
            finding.description,
            sources.join("+"),
        ));
        for decision in &entry.decisions {
            lines.push(format!("     {:?} by {:?}: {}", decision.state, decision.by, decision.evidence));
        }
    }
    lines.join("\n")
}

const TEXTS: [&str; 8] = [
    OVERFLOW,
    OVERFLOW_REWORDED,
    NO_TEST,
    UNUSED,
    LEAK,
    "The session token ends up in the debug log",
    "An empty cart is not tested",
    "???",
];

prop_compose! {
    fn any_finding()(text in 0..TEXTS.len(), file in 0..3, line in proptest::option::weighted(0.9, 1u32..120), kind in 0..2, bad in 0..3) -> Finding {
        Finding {
            file: (file > 0).then(|| format!("src/{file}.rs")),
            line,
            kind: ["bug", "style"][kind as usize].into(),
            severity: [Severity::Minor, Severity::Important, Severity::Critical][bad as usize],
            ..at(0, TEXTS[text])
        }
    }
}

prop_compose! {
    fn any_review(name: &'static str)(verdict in 0..4, findings in proptest::collection::vec(any_finding(), 0..6)) -> Review {
        let verdict = match verdict {
            0 => Verdict::Approved,
            1 => Verdict::ApprovedWithMinor,
            2 => Verdict::ChangesRequested,
            _ => Verdict::Inconclusive(Inconclusive::Missing("silent".into())),
        };
        review(name, verdict, findings)
    }
}

/// Up to three reviewers; some may be absent.
fn any_panel() -> impl Strategy<Value = Vec<Review>> {
    let seat = |name| proptest::option::weighted(0.7, any_review(name));
    (seat("code"), seat("spec"), seat("tests"))
        .prop_map(|(code, spec, tests)| [code, spec, tests].into_iter().flatten().collect())
}

fn any_loop() -> impl Strategy<Value = Vec<Vec<Review>>> {
    proptest::collection::vec(any_panel(), 1..5)
}

fn recorded(panels: &[Vec<Review>]) -> Ledger {
    let mut ledger = Ledger::default();
    for (cycle, panel) in panels.iter().enumerate() {
        ledger.record(&round(u32::try_from(cycle).unwrap_or(u32::MAX)), panel);
    }
    ledger
}

fn shifted(panel: &[Review], by: u32) -> Vec<Review> {
    let mut panel = panel.to_vec();
    for finding in panel.iter_mut().flat_map(|review| &mut review.findings) {
        finding.line = finding.line.map(|line| line + by);
    }
    for review in &mut panel {
        assign_ids(&mut review.findings);
    }
    panel
}

/// The entry of each finding, identified by its last description.
fn identities(ledger: &Ledger, shift: u32) -> Vec<(FindingId, String, Option<u32>)> {
    let entries = ledger.entries().iter().filter(|entry| !entry.seen.is_empty());
    entries
        .map(|entry| {
            let finding = &entry.finding;
            (finding.id.clone(), finding.description.clone(), finding.line.map(|line| line - shift))
        })
        .collect()
}

proptest! {
    #[test]
    fn ids_are_stable_when_lines_move(panel in any_panel(), by in 0u32..100_000) {
        let mut ledger = recorded(std::slice::from_ref(&panel));
        let before = identities(&ledger, 0);
        let change = ledger.record(&round(9), &shifted(&panel, by));
        prop_assert!(change.new.is_empty(), "{change:?}");
        prop_assert_eq!(before, identities(&ledger, by));
    }

    #[test]
    fn the_order_of_reviews_does_not_matter(panels in any_loop(), turn in 0usize..3) {
        let turned: Vec<Vec<Review>> = panels.iter().map(|panel| {
            let mut panel = panel.clone();
            let turn = turn.min(panel.len());
            panel.rotate_left(turn);
            panel
        }).collect();
        prop_assert_eq!(recorded(&panels), recorded(&turned));
    }

    #[test]
    fn an_open_finding_is_closed_only_by_an_approval_of_its_reviewer(panels in any_loop(), last in any_panel()) {
        let mut ledger = recorded(&panels);
        let before = ledger.clone();
        ledger.record(&round(9), &last);
        for entry in before.open(FailThreshold::Low) {
            let approved = last.iter().any(|review| review.verdict.approves() && entry.finding.sources.contains(&review.reviewer));
            let now = ledger.get(&entry.finding.id).unwrap().state;
            prop_assert!(approved || now == FindingState::Open, "{entry:?}");
        }
    }

    #[test]
    fn a_claim_changes_nothing_but_the_list_of_claims(panels in any_loop(), more in any_loop(), kind in 0..3usize) {
        let mut ledger = recorded(&panels);
        let mut unclaimed = ledger.clone();
        let ids: Vec<FindingId> = ledger.entries().iter().map(|entry| entry.finding.id.clone()).collect();
        let claim = |finding: &FindingId| FixClaim {
            finding: finding.clone(),
            kind: ClaimKind::ALL[kind],
            evidence: "so says the fixer".into(),
        };
        let unknown = FixClaim { finding: "f-unknown".into(), ..claim(&"".into()) };
        ledger.claim(AttemptId(3), &Commit::new("c3"), ids.iter().map(claim).chain([unknown]).collect());
        for panel in &more {
            prop_assert_eq!(ledger.record(&round(9), panel), unclaimed.record(&round(9), panel));
        }
        for id in &ids {
            prop_assert_eq!(ledger.get(id).unwrap().claims.len(), 1);
        }
        let states = |ledger: &Ledger| -> Vec<_> {
            ledger.entries().iter().map(|entry| (entry.finding.clone(), entry.state, entry.decisions.clone())).collect()
        };
        prop_assert_eq!(states(&ledger), states(&unclaimed));
    }

    #[test]
    fn reviewers_never_reopen_refuted_findings(panels in any_loop(), more in any_loop()) {
        let mut ledger = recorded(&panels);
        let ids: Vec<FindingId> = ledger.entries().iter().map(|entry| entry.finding.id.clone()).collect();
        for id in &ids {
            ledger.decide(id, refuted("shown to be wrong"));
        }
        for panel in &more {
            ledger.record(&round(9), panel);
        }
        for id in &ids {
            prop_assert_eq!(ledger.get(id).unwrap().state, FindingState::Refuted);
        }
    }

    #[test]
    fn every_id_is_unique_and_changes_in_one_way(panels in any_loop(), last in any_panel()) {
        let mut ledger = recorded(&panels);
        let change = ledger.record(&round(9), &last);
        let mut ids: Vec<&FindingId> = ledger.entries().iter().map(|entry| &entry.finding.id).collect();
        let mut moved: Vec<&FindingId> = [&change.new, &change.carried, &change.fixed, &change.regressed, &change.refuted, &change.out_of_scope].into_iter().flatten().collect();
        for list in [&mut ids, &mut moved] {
            let count = list.len();
            list.sort();
            list.dedup();
            prop_assert_eq!(list.len(), count);
        }
    }

    #[test]
    fn nothing_reported_is_lost(panels in any_loop()) {
        let ledger = recorded(&panels);
        for finding in panels.iter().flatten().filter(|review| !matches!(review.verdict, Verdict::Inconclusive(_))).flat_map(|review| &review.findings) {
            let source = &finding.sources[0];
            prop_assert!(ledger.entries().iter().any(|entry| entry.finding.file == finding.file && entry.finding.sources.contains(source)));
        }
    }

    #[test]
    fn every_merged_issue_has_an_entry(panels in any_loop(), last in any_panel(), is_refuted: bool) {
        let mut ledger = recorded(&panels);
        let ids: Vec<FindingId> = ledger.entries().iter().map(|entry| entry.finding.id.clone()).collect();
        ids.iter().for_each(|id| { if is_refuted { ledger.decide(id, refuted("")); } });
        let answers: Vec<Review> = last.into_iter().filter(|review| !matches!(review.verdict, Verdict::Inconclusive(_))).collect();
        ledger.record(&round(9), &answers);
        let reported = ledger.entries().iter().filter(|entry| entry.seen.contains(&round(9))).count();
        prop_assert!(reported >= merge(&answers, FailThreshold::Low).issues.len());
    }

    #[test]
    fn a_ledger_round_trips_through_json(panels in any_loop()) {
        let ledger = recorded(&panels);
        let stored = serde_json::to_string(&ledger).unwrap();
        prop_assert_eq!(serde_json::from_str::<Ledger>(&stored).unwrap(), ledger);
    }
}
