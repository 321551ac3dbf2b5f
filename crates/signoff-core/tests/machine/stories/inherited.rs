//! A loop on an existing branch starts with the open findings of earlier tasks on that branch.

use signoff_core::ids::{FindingId, TaskId};
use signoff_core::ledger::{DecidedBy, FindingDecision, FindingState, Ledger};
use signoff_core::machine::{Event, Stage};

use crate::machine::builders::{self, reviewed};
use crate::machine::story::Story;

/// A task that ends with two open findings of the general reviewer, in `a.rs` and `b.rs`.
fn earlier() -> Story {
    Story::new(reviewed("task")).works().objects("general", &["a.rs", "b.rs"])
}

fn id(ledger: &Ledger, file: &str) -> FindingId {
    let found = ledger.entries().iter().find(|entry| entry.finding.file.as_deref() == Some(file));
    found.expect(file).finding.id.clone()
}

fn dispute(story: Story, file: &str) -> Story {
    let (by, evidence) = (DecidedBy::Person("ann".into()), "it is wanted".to_owned());
    let decision = FindingDecision { state: FindingState::Refuted, by, commit: None, evidence };
    let finding = id(&story.state.ledger, file);
    story.then("disputed", Event::FindingDecided { finding, decision })
}

fn after(left: Ledger) -> Story {
    let story = Story::queued(reviewed("task"));
    let story = story.then("the base is known", Event::BaseSet { tree: builders::head(0).tree });
    let story = story.then("inherits", Event::FindingsInherited { ledger: left });
    story.then("started", Event::Started { head: builders::head(0) })
}

fn states(story: &Story) -> Vec<(FindingId, FindingState)> {
    let entries = story.state.ledger.entries().iter();
    entries.map(|entry| (entry.finding.id.clone(), entry.state)).collect()
}

#[test]
fn open_and_disputed_findings_keep_their_ids_and_states() {
    let before = dispute(earlier(), "b.rs");
    let story = after(Ledger::from_earlier_tasks([(TaskId(1), &*before.state.ledger)]));
    assert_eq!(states(&story), states(&before));
    let seen = &*story.state.ledger.entries()[0].seen;
    assert_eq!(seen.iter().map(|round| round.task).collect::<Vec<_>>(), [Some(TaskId(1))]);
}

#[test]
fn fixed_findings_and_claims_are_not_inherited() {
    let before = earlier().works().approves("general");
    assert!(Ledger::from_earlier_tasks([(TaskId(1), &*before.state.ledger)]).is_empty());
}

#[test]
fn an_approval_closes_inherited_findings_and_a_repeated_one_blocks_the_gate() {
    let left = || Ledger::from_earlier_tasks([(TaskId(1), &*earlier().state.ledger)]);
    let story = after(left()).works().approves("general");
    assert!(matches!(story.state.stage, Stage::Done(_)));
    assert!(states(&story).iter().all(|(_, state)| *state == FindingState::Fixed));
    let story = after(left()).works().objects("general", &["a.rs"]);
    assert!(matches!(story.state.stage, Stage::Fixing { .. }));
    assert_eq!(states(&story).len(), 2, "the same finding is not counted twice");
    assert!(states(&story).iter().all(|(_, state)| *state == FindingState::Open));
}

#[test]
fn another_finding_does_not_hide_an_inherited_one() {
    let story = after(Ledger::from_earlier_tasks([(TaskId(1), &*earlier().state.ledger)]));
    let story = story.works().objects("general", &["c.rs"]).works().objects("general", &["c.rs"]);
    let open = states(&story).iter().filter(|(_, state)| *state == FindingState::Open).count();
    assert_eq!(open, 3);
}

#[test]
fn another_reviewer_closes_a_finding_of_a_removed_reviewer() {
    let mut left = serde_json::to_value(Ledger::from_earlier_tasks([(TaskId(1), &*earlier().state.ledger)])).unwrap();
    left["entries"][0]["finding"]["sources"] = serde_json::json!(["gone"]);
    let story = after(serde_json::from_value(left).unwrap()).works();
    assert!(states(&story).iter().all(|(_, state)| *state == FindingState::Open));
    let story = story.approves("general");
    assert!(states(&story).iter().all(|(_, state)| *state == FindingState::Fixed));
}

#[test]
fn a_disputed_finding_that_is_reported_again_does_not_block_the_gate() {
    let before = dispute(dispute(earlier(), "a.rs"), "b.rs");
    let story = after(Ledger::from_earlier_tasks([(TaskId(1), &*before.state.ledger)]));
    let story = story.works().objects("general", &["a.rs"]);
    assert!(matches!(story.state.stage, Stage::Done(_)), "{:?}", story.state.stage);
    assert!(states(&story).iter().all(|(_, state)| *state == FindingState::Refuted));
}

#[test]
fn the_last_task_that_has_a_finding_decides_its_state() {
    let first = earlier();
    let second = after(Ledger::from_earlier_tasks([(TaskId(1), &*first.state.ledger)])).works().approves("general");
    let ledgers = [(TaskId(1), &*first.state.ledger), (TaskId(2), &*second.state.ledger)];
    assert!(Ledger::from_earlier_tasks(ledgers).is_empty());
    let disputed = dispute(after(Ledger::from_earlier_tasks([(TaskId(1), &*first.state.ledger)])), "a.rs");
    let left = Ledger::from_earlier_tasks([(TaskId(1), &*first.state.ledger), (TaskId(2), &*disputed.state.ledger)]);
    assert_eq!(left.get(&id(&left, "a.rs")).unwrap().state, FindingState::Refuted);
    assert_eq!(left.entries()[0].seen[0].task, Some(TaskId(1)), "where it was reported");
}

#[test]
fn a_loop_that_has_begun_inherits_nothing() {
    let left = Ledger::from_earlier_tasks([(TaskId(1), &*earlier().state.ledger)]);
    let story = Story::new(reviewed("task")).then("too late", Event::FindingsInherited { ledger: left });
    assert!(story.state.ledger.is_empty());
}
