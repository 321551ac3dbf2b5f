//! Stories of the loops preset.

use signoff_core::ledger::FindingState;
use signoff_core::machine::{Event, FinalVerdict, Policy, Stage};
use signoff_core::policy::Effort;

use crate::machine::builders::reviewed;
use crate::machine::story::{Story, from};

fn effort(effort: Effort) -> Policy {
    let policy = reviewed("loops");
    Policy { workflow: policy.workflow.with_effort(effort), ..policy }
}

#[test]
fn attempts_follow_until_the_agent_says_it_is_done() {
    let story = Story::new(effort(Effort::Low)).goes_on().goes_on().works().approves("general");
    insta::assert_snapshot!(story.may_land().lands().transcript(), @"
    started                            → a1 implement [implement]
    the agent is not done yet          → a2 implement [implement]
    the agent is not done yet          → a3 implement [implement]
    the agent completes its work       → a4 review 1 of c3 by general [review]
    general approves                   → wait for the group
    the group lets it land             → a5 land
    it lands                           → END approved, APPROVED
    ");
}

#[test]
fn an_agent_that_gives_up_makes_the_loop_stuck() {
    insta::assert_snapshot!(Story::new(effort(Effort::Low)).gives_up().transcript(), @"
    started                            → a1 implement [implement]
    the agent gives up                 → END stuck (task_stuck), no verdict
    ");
}

#[test]
fn a_failed_attempt_counts_and_the_next_one_follows() {
    insta::assert_snapshot!(Story::new(effort(Effort::Low)).writer_fails().works().transcript(), @"
    started                            → a1 implement [implement]
    the agent fails                    → a2 implement [implement]
    the agent completes its work       → a3 review 1 of c1 by general [review]
    ");
}

#[test]
fn two_fixes_at_low_effort_then_stuck() {
    let mut story = Story::new(effort(Effort::Low)).works();
    for _ in 0..2 {
        story = story.objects("general", &["a.rs"]).works();
    }
    insta::assert_snapshot!(story.objects("general", &["a.rs"]).transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general objects to a.rs            → a3 fix 1 (a.rs) [review]
    the agent completes its work       → a4 review 2 of c2 by general [review]
    general objects to a.rs            → a5 fix 2 (a.rs) [review]
    the agent completes its work       → a6 review 3 of c3 by general [review]
    general objects to a.rs            → END stuck (cycles_exhausted), CHANGES_REQUESTED
    ");
}

#[test]
fn two_unreadable_reviews_cost_a_cycle() {
    let story = Story::new(effort(Effort::Low)).works().unreadable("general").unreadable("general");
    insta::assert_snapshot!(story.approves("general").transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general is not understood          → a3 review 1 of c1 by general [review]
    general is not understood          → a4 review 2 of c1 by general [review]
    general approves                   → wait for the group
    ");
}

#[test]
fn a_checkpoint_review_goes_into_the_next_attempt() {
    let story = Story::new(effort(Effort::High)).goes_on().goes_on().goes_on();
    insta::assert_snapshot!(story.checkpoint_ends(&["a.rs"]).goes_on().transcript(), @"
    started                            → a1 implement [implement]
    the agent is not done yet          → a2 implement [implement]
    the agent is not done yet          → a3 implement [implement]
    the agent is not done yet          → wait (checkpoint)
    the checkpoint review is in        → a4 implement [implement] with notes on a.rs
    the agent is not done yet          → a5 implement [implement]
    ");
}

#[test]
fn at_most_fifty_attempts() {
    let mut story = Story::new(effort(Effort::Low));
    for _ in 0..50 {
        story = story.goes_on();
    }
    let transcript = story.transcript();
    insta::assert_snapshot!(transcript.lines().last().unwrap_or_default(), @"the agent is not done yet          → END stuck (attempts_exhausted), no verdict");
}

#[test]
fn a_checkpoint_finding_is_in_the_ledger_and_the_fixers_prompt() {
    let story = Story::new(effort(Effort::High)).goes_on().checkpoint_starts().checkpoint_ends(&["a.rs"]).works();
    let machine = story.objects("general", &["b.rs"]).state;
    let entry = machine.ledger.entries().iter().find(|entry| entry.finding.file.as_deref() == Some("a.rs"));
    let entry = entry.expect("a.rs is in the ledger");
    assert_eq!((entry.state, entry.finding.sources.len()), (FindingState::Open, 1));
    assert_eq!((entry.seen[0].checkpoint, entry.seen[0].phase, entry.seen[0].cycle), (Some(1), 1, 0));
    let Stage::Fixing { fixes, .. } = &machine.stage else { panic!("{:?}", machine.stage) };
    assert!(fixes[0].findings.contains(&entry.finding.id), "{fixes:?}");
}

#[test]
fn a_checkpoint_finding_during_the_completion_review_blocks_the_gate() {
    let story = Story::new(effort(Effort::High)).goes_on().checkpoint_starts().works();
    let story = story.checkpoint_ends(&["a.rs"]).approves("general").works().approves("general");
    insta::assert_snapshot!(story.transcript(), @"
    started                            → a1 implement [implement]
    the agent is not done yet          → a2 implement [implement]
    a checkpoint review starts         → –
    the agent completes its work       → a3 review 1 of c2 by general [review]
    the checkpoint review is in        → –
    general approves                   → a4 fix 1 (a.rs) [review]
    the agent completes its work       → a5 review 2 of c3 by general [review]
    general approves                   → wait for the group
    ");
}

#[test]
fn a_checkpoint_finding_after_the_completion_review_reopens_the_loop() {
    let story = Story::new(effort(Effort::High)).goes_on().checkpoint_starts().works().approves("general");
    let story = story.checkpoint_ends(&["a.rs"]).works().approves("general");
    insta::assert_snapshot!(story.transcript(), @"
    started                            → a1 implement [implement]
    the agent is not done yet          → a2 implement [implement]
    a checkpoint review starts         → –
    the agent completes its work       → a3 review 1 of c2 by general [review]
    general approves                   → wait (checkpoint)
    the checkpoint review is in        → a4 fix 1 (a.rs) [review]
    the agent completes its work       → a5 review 2 of c3 by general [review]
    general approves                   → wait for the group
    ");
}

#[test]
fn an_approved_loop_waits_for_the_running_checkpoint_review() {
    let story = Story::new(effort(Effort::High)).goes_on().checkpoint_starts().works().approves("general");
    insta::assert_snapshot!(story.checkpoint_ends(&[]).transcript(), @"
    started                            → a1 implement [implement]
    the agent is not done yet          → a2 implement [implement]
    a checkpoint review starts         → –
    the agent completes its work       → a3 review 1 of c2 by general [review]
    general approves                   → wait (checkpoint)
    the checkpoint review is in        → wait for the group
    ");
}

#[test]
fn repeated_checkpoint_findings_are_bounded_by_the_fixes_of_the_gate() {
    let mut story = Story::new(effort(Effort::Low)).works().approves("general");
    for file in ["a.rs", "b.rs"] {
        story = story.checkpoint_ends(&[file]).works().approves("general");
    }
    insta::assert_snapshot!(story.checkpoint_ends(&["c.rs"]).transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general approves                   → wait for the group
    the checkpoint review is in        → a3 fix 1 (a.rs) [review]
    the agent completes its work       → a4 review 2 of c2 by general [review]
    general approves                   → wait for the group
    the checkpoint review is in        → a5 fix 2 (b.rs) [review]
    the agent completes its work       → a6 review 3 of c3 by general [review]
    general approves                   → wait for the group
    the checkpoint review is in        → END stuck (cycles_exhausted), CHANGES_REQUESTED
    ");
}

#[test]
fn checkpoint_findings_in_older_logs_do_not_change_the_outcome() {
    let story = Story::new(effort(Effort::High)).goes_on();
    let story = story.then("an older checkpoint review is in", older("a.rs")).works();
    let story = story.then("an older checkpoint review is in", older("b.rs")).approves("general");
    insta::assert_snapshot!(story.transcript(), @"
    started                            → a1 implement [implement]
    the agent is not done yet          → a2 implement [implement]
    an older checkpoint review is in   → –
    the agent completes its work       → a3 review 1 of c2 by general [review]
    an older checkpoint review is in   → –
    general approves                   → wait for the group
    ");
}

fn older(file: &str) -> Event {
    let body = serde_json::json!({"checkpoint_ended": {"findings": [from("general", file)]}});
    serde_json::from_value(body).expect("older logs have no number")
}

/// A person refuses work that waits for its group. `retry` fixes and reviews it again.
#[test]
fn refused_work_that_waits_for_its_group_is_fixed_on_retry() {
    let story = Story::new(effort(Effort::Low)).works().approves("general");
    let story = story.edit(FinalVerdict::ChangesRequested).retry().works().approves("general");
    insta::assert_snapshot!(story.transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general approves                   → wait for the group
    a person sets CHANGES_REQUESTED    → END failed (edited_by_person), CHANGES_REQUESTED
    a person retries                   → a3 fix 1 () [review]
    the agent completes its work       → a4 review 2 of c2 by general [review]
    general approves                   → wait for the group
    ");
}
