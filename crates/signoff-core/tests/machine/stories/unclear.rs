//! Unreadable reviews alone do not lead to a fix.

use signoff_core::machine::{Choice, Policy};
use signoff_core::policy::Effort;

use crate::machine::builders::reviewed;
use crate::machine::story::Story;

fn loops() -> Policy {
    let policy = reviewed("loops");
    Policy { workflow: policy.workflow.with_effort(Effort::Low), ..policy }
}

#[test]
fn a_task_repeats_the_review_once_and_then_stops() {
    let story = Story::new(reviewed("task")).works().unreadable("general").unreadable("general");
    insta::assert_snapshot!(story.retry().approves("general").transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general is not understood          → a3 review 1 of c1 by general [review]
    general is not understood          → END exhausted (unclear_review), no verdict
    a person retries                   → a4 review 1 of c1 by general [review]
    general approves                   → END approved, APPROVED
    ");
}

#[test]
fn a_second_answer_that_can_be_read_counts() {
    let story = Story::new(reviewed("task")).works().unreadable("general").approves("general");
    insta::assert_snapshot!(story.transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general is not understood          → a3 review 1 of c1 by general [review]
    general approves                   → END approved, APPROVED
    ");
}

#[test]
fn a_slot_fails_at_once_without_a_verdict() {
    insta::assert_snapshot!(Story::new(reviewed("slots")).works().unreadable("general").transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general is not understood          → END failed (unclear_review), no verdict
    ");
}

#[test]
fn a_plan_that_may_not_ask_fails_with_the_reason_unclear_review() {
    let policy = Policy { no_ask: true, ..reviewed("plan") };
    let story = Story::new(policy).works().unreadable("spec").unreadable("spec").unreadable("code").unreadable("code");
    insta::assert_snapshot!(story.transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a3 review 1 of c1 by code [review]; a2 review 1 of c1 by spec [review]
    spec is not understood             → a4 review 1 of c1 by spec [review]
    spec is not understood             → –
    code is not understood             → a5 review 1 of c1 by code [review]
    code is not understood             → END failed (unclear_review), no verdict
    ");
}

#[test]
fn one_readable_review_of_a_plan_is_a_partial_result() {
    let story = Story::new(reviewed("plan")).works().approves("spec").unreadable("code").unreadable("code");
    insta::assert_snapshot!(story.answer(Choice::Stop).transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a3 review 1 of c1 by code [review]; a2 review 1 of c1 by spec [review]
    spec approves                      → –
    code is not understood             → a4 review 1 of c1 by code [review]
    code is not understood             → q1 partial_review: retry|proceed|stop|restart
    a person answers stop              → END failed (stopped_by_person), CHANGES_REQUESTED
    ");
}

#[test]
fn a_loop_repeats_the_review_until_its_cycles_are_exhausted() {
    let mut story = Story::new(loops()).works();
    for _ in 0..3 {
        story = story.unreadable("general").unreadable("general");
    }
    insta::assert_snapshot!(story.transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general is not understood          → a3 review 1 of c1 by general [review]
    general is not understood          → a4 review 2 of c1 by general [review]
    general is not understood          → a5 review 2 of c1 by general [review]
    general is not understood          → a6 review 3 of c1 by general [review]
    general is not understood          → a7 review 3 of c1 by general [review]
    general is not understood          → END stuck (unclear_review), no verdict
    ");
}

#[test]
fn phases_stop_without_a_verdict() {
    let mut policy = reviewed("phases");
    policy.workflow.phases.retain(|phase| ["implement", "code_review"].contains(&phase.name.as_str()));
    insta::assert_snapshot!(Story::new(policy).works().unreadable("code").unreadable("code").transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by code [code_review]
    code is not understood             → a3 review 1 of c1 by code [code_review]
    code is not understood             → END failed (unclear_review), no verdict
    ");
}

#[test]
fn logs_of_older_versions_keep_their_fixes() {
    let policy = Policy { fix_needs_review: false, ..reviewed("task") };
    let story = Story::new(policy).works().unreadable("general").unreadable("general").works().approves("general");
    insta::assert_snapshot!(story.transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general is not understood          → a3 review 1 of c1 by general [review]
    general is not understood          → a4 fix 1 (what general wrote) [review]
    the agent completes its work       → a5 review 2 of c2 by general [review]
    general approves                   → END approved, APPROVED
    ");
}
