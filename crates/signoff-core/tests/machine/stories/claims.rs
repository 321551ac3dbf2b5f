//! A fixer's claims about findings are recorded and do not change their state.

use signoff_core::ids::AttemptId;
use signoff_core::ledger::{ClaimKind, FindingState, FixClaim};
use signoff_core::machine::Event;

use crate::machine::builders::{UNKNOWN_ATTEMPT, reviewed};
use crate::machine::story::Story;

fn claims(story: &Story, kind: ClaimKind) -> Vec<FixClaim> {
    let entries = story.state.ledger.entries().iter();
    entries.map(|entry| FixClaim { finding: entry.finding.id.clone(), kind, evidence: "see the test".into() }).collect()
}

fn claimed(story: Story, attempt: AttemptId, kind: ClaimKind) -> Story {
    let event = Event::FindingsClaimed { attempt, commit: "c2".into(), claims: claims(&story, kind) };
    story.then("the fixer accounts for them", event)
}

#[test]
fn only_a_reviewer_closes_a_finding_that_a_fixer_refuted() {
    let story = Story::new(reviewed("task")).works().objects("general", &["a.rs"]);
    let fixer = story.writer();
    let story = claimed(story, fixer, ClaimKind::Refuted);
    let entry = &story.state.ledger.entries()[0];
    assert_eq!((entry.state, entry.claims.len()), (FindingState::Open, 1));
    assert_eq!((entry.claims[0].attempt, entry.claims[0].kind), (fixer, ClaimKind::Refuted));
    let story = story.works();
    assert_eq!(story.state.ledger.entries()[0].state, FindingState::Open);
    let story = story.approves("general");
    assert_eq!(story.state.ledger.entries()[0].state, FindingState::Fixed);
}

#[test]
fn claims_from_attempts_other_than_a_fix_are_ignored() {
    let story = Story::new(reviewed("task")).works().objects("general", &["a.rs"]).works();
    let reviewer = story.reviewer("general");
    let story = claimed(claimed(story, reviewer, ClaimKind::Fixed), UNKNOWN_ATTEMPT, ClaimKind::Fixed);
    assert!(story.state.ledger.entries()[0].claims.is_empty());
}
