//! An empty diff is never an approval.

use signoff_core::ids::Commit;
use signoff_core::machine::{Event, FinalVerdict, Head, Outcome, Policy, Stage, WorkReport};
use signoff_core::policy::Effort;
use signoff_core::workflow::preset;

use crate::machine::builders::{self, reviewed};
use crate::machine::story::Story;

fn loops() -> Policy {
    let policy = reviewed("loops");
    Policy { workflow: policy.workflow.with_effort(Effort::Low), ..policy }
}

/// A workflow with only the gate, as for `signoff review` and tasks of type `review`.
fn only_the_gate() -> Policy {
    let mut policy = reviewed("task");
    policy.workflow.phases.retain(|phase| phase.policy().is_some());
    policy
}

#[test]
fn a_loop_that_completes_without_a_change_is_not_reviewed() {
    let story = Story::new(loops()).changes_nothing();
    insta::assert_snapshot!(story.transcript(), @"
    started                            → a1 implement [implement]
    the agent changes nothing          → END nothing_to_review (nothing_to_review), no verdict
    ");
}

#[test]
fn a_review_without_a_change_is_never_opened() {
    insta::assert_snapshot!(Story::new(only_the_gate()).transcript(), @"started                            → END nothing_to_review (nothing_to_review), no verdict");
}

#[test]
fn a_review_of_existing_work_is_opened() {
    let story = Story::queued(only_the_gate());
    let story = story.then("the base is known", Event::BaseSet { tree: "t8".into() });
    insta::assert_snapshot!(story.then("started", Event::Started { head: builders::head(9) }).transcript(), @"
    the base is known                  → –
    started                            → a1 review 1 of c9 by general [review]
    ");
}

#[test]
fn a_fix_that_reverts_everything_is_not_approved() {
    let story = Story::new(reviewed("task")).works().objects("general", &["a.rs"]).reverts();
    insta::assert_snapshot!(story.retry().works().approves("general").transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general objects to a.rs            → a3 fix 1 (a.rs) [review]
    the agent reverts everything       → END nothing_to_review (nothing_to_review), no verdict
    a person retries                   → a4 fix 1 (a.rs) [review]
    the agent completes its work       → a5 review 2 of c3 by general [review]
    general approves                   → END approved, APPROVED
    ");
}

#[test]
fn a_retry_goes_back_to_the_work() {
    let story = Story::new(loops()).changes_nothing().retry().works().approves("general");
    insta::assert_snapshot!(story.transcript(), @"
    started                            → a1 implement [implement]
    the agent changes nothing          → END nothing_to_review (nothing_to_review), no verdict
    a person retries                   → a2 implement [implement]
    the agent completes its work       → a3 review 1 of c1 by general [review]
    general approves                   → wait for the group
    ");
}

#[test]
fn a_simplification_that_reverts_everything_is_not_approved() {
    let mut policy = reviewed("phases");
    policy.workflow.phases.retain(|phase| ["implement", "code_review", "simplify"].contains(&phase.name.as_str()));
    let story = Story::new(policy).works().approves("code").reverts();
    insta::assert_snapshot!(story.transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by code [code_review]
    code approves                      → a3 simplify [simplify]
    the agent reverts everything       → END nothing_to_review (nothing_to_review), no verdict
    ");
}

#[test]
fn a_person_can_accept_it_and_it_does_not_land() {
    let story = Story::new(loops()).changes_nothing().edit(FinalVerdict::Approved).may_land();
    insta::assert_snapshot!(story.transcript(), @"
    started                            → a1 implement [implement]
    the agent changes nothing          → END nothing_to_review (nothing_to_review), no verdict
    a person sets APPROVED             → –
    the group lets it land             → –
    ");
}

#[test]
fn a_person_can_reject_or_cancel_it() {
    let rejected = Story::new(loops()).changes_nothing().edit(FinalVerdict::ChangesRequested);
    insta::assert_snapshot!(rejected.transcript(), @"
    started                            → a1 implement [implement]
    the agent changes nothing          → END nothing_to_review (nothing_to_review), no verdict
    a person sets CHANGES_REQUESTED    → –
    ");
    let story = Story::new(loops()).changes_nothing();
    let cancelled = story.then("a person cancels it", Event::Cancelled { by: "ann".into() });
    insta::assert_snapshot!(cancelled.transcript(), @"
    started                            → a1 implement [implement]
    the agent changes nothing          → END nothing_to_review (nothing_to_review), no verdict
    a person cancels it                → –
    ");
}

#[test]
fn an_agent_that_gives_up_without_a_change_is_stuck() {
    insta::assert_snapshot!(Story::new(loops()).gives_up().transcript(), @"
    started                            → a1 implement [implement]
    the agent gives up                 → END stuck (task_stuck), no verdict
    ");
}

#[test]
fn a_stop_marker_without_a_change_is_a_normal_end() {
    let story = Story::new(reviewed("slots"));
    let (attempt, head) = (story.writer(), story.state.head.clone());
    let event = Event::WorkEnded { attempt, report: WorkReport::NoWorkLeft { head } };
    insta::assert_snapshot!(story.then("the agent finds no work left", event).transcript(), @"
    started                            → a1 implement [implement]
    the agent finds no work left       → END cancelled (no_work_left), no verdict
    ");
}

#[test]
fn work_that_is_reverted_while_it_waits_does_not_land() {
    let story = Story::new(loops()).works().approves("general");
    let head = Head { commit: Commit::new("c9"), tree: builders::head(0).tree };
    insta::assert_snapshot!(story.then("a foreign revert", Event::HeadMoved { head }).transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general approves                   → wait for the group
    a foreign revert                   → END nothing_to_review (nothing_to_review), no verdict
    ");
}

#[test]
fn a_plan_is_reviewed_before_the_first_change() {
    let mut policy = reviewed("phases");
    policy.workflow.phases.retain(|phase| ["plan_review", "implement"].contains(&phase.name.as_str()));
    insta::assert_snapshot!(Story::new(policy).approves("plan").transcript(), @"
    started                            → a1 review 1 of c0 by plan [plan_review]
    plan approves                      → a2 implement [implement]
    ");
}

#[test]
fn after_a_conflict_the_diff_begins_at_what_landed_before() {
    let story = Story::new(loops()).works().approves("general").may_land();
    let base = builders::head(2).tree;
    let story = story.then("the target moved", Event::BaseSet { tree: base.clone() }).conflicts();
    let (attempt, head) = (story.writer(), Head { commit: Commit::new("c9"), tree: base });
    let event = Event::WorkEnded { attempt, report: WorkReport::Complete { head } };
    insta::assert_snapshot!(story.then("the fixer drops its own changes", event).transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general approves                   → wait for the group
    the group lets it land             → a3 land
    the target moved                   → –
    landing meets a conflict           → a4 fix 1 (shared.rs) [review]
    the fixer drops its own changes    → END nothing_to_review (nothing_to_review), no verdict
    ");
}

#[test]
fn logs_without_a_base_keep_their_outcome() {
    let story = Story::queued(Policy::new(preset("loops").expect("shipped")));
    let story = story.then("started", Event::Started { head: builders::head(0) }).changes_nothing();
    let Stage::Reviewing(panel) = &story.state.stage else { panic!("{:?}", story.state.stage) };
    assert_eq!(panel.commit, builders::head(0).commit);
    let story = story.approves("general");
    assert!(matches!(&story.state.stage, Stage::AwaitingLanding { outcome: Outcome::Approved { .. }, .. }));
}
