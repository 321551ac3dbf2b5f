//! Landing, conflicts and voided approvals.

use signoff_core::machine::{Event, Policy};
use signoff_core::policy::{Effort, EscalationPolicy, FailureAction};

use crate::machine::builders::{head, reviewed};
use crate::machine::story::Story;

fn story() -> Story {
    let policy = reviewed("loops");
    let policy = Policy { workflow: policy.workflow.with_effort(Effort::Low), ..policy };
    Story::new(policy).works().approves("general")
}

#[test]
fn a_conflict_is_fixed_reviewed_and_landed_again() {
    let story = story().may_land().conflicts().works().approves("general");
    insta::assert_snapshot!(story.may_land().lands().transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general approves                   → wait for the group
    the group lets it land             → a3 land
    landing meets a conflict           → a4 fix 1 (shared.rs) [review]
    the agent completes its work       → a5 review 2 of c3 by general [review]
    general approves                   → wait for the group
    the group lets it land             → a6 land
    it lands                           → END approved, APPROVED
    ");
}

#[test]
fn conflicts_are_bounded() {
    let mut story = story();
    for _ in 0..3 {
        story = story.may_land().conflicts().works().approves("general");
    }
    let transcript = story.may_land().conflicts().transcript();
    insta::assert_snapshot!(transcript.lines().last().unwrap_or_default(), @"landing meets a conflict           → END stuck (conflict_unresolved), CHANGES_REQUESTED");
}

#[test]
fn a_commit_after_the_approval_voids_it() {
    let story = story().then("a foreign commit", Event::HeadMoved { head: head(40) });
    insta::assert_snapshot!(story.approves("general").transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general approves                   → wait for the group
    a foreign commit                   → a3 review 2 of c40 by general [review]
    general approves                   → wait for the group
    ");
}

#[test]
fn a_commit_during_the_review_starts_it_again() {
    let story = Story::new(reviewed("plan")).works().approves("spec");
    insta::assert_snapshot!(story.then("a foreign commit", Event::HeadMoved { head: head(40) }).transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a3 review 1 of c1 by code [review]; a2 review 1 of c1 by spec [review]
    spec approves                      → –
    a foreign commit                   → kill a3; a5 review 1 of c40 by code [review]; a4 review 1 of c40 by spec [review]
    ");
}

#[test]
fn retrying_after_too_many_foreign_commits_reviews_the_current_commit() {
    let mut story = story();
    for number in 0..4 {
        story = story.then("a foreign commit", Event::HeadMoved { head: head(40 + number) });
        if number < 3 {
            story = story.approves("general");
        }
    }
    let transcript = story.retry().transcript();
    insta::assert_snapshot!(transcript.lines().skip(9).collect::<Vec<_>>().join("\n"), @"
    a foreign commit                   → END failed (changed_after_review), CHANGES_REQUESTED
    a person retries                   → a6 review 5 of c43 by general [review]
    ");
}

#[test]
fn failing_checks_at_landing_do_not_count_as_conflicts() {
    let mut story = story();
    for _ in 0..3 {
        story = story.may_land().landing_checks_fail().works().approves("general");
    }
    let transcript = story.may_land().landing_checks_fail().transcript();
    insta::assert_snapshot!(transcript.lines().last().unwrap_or_default(), @"the checks fail where it lands     → END stuck (landing_checks_failed), CHANGES_REQUESTED");
}

#[test]
fn retrying_an_unresolved_conflict_fixes_it_first() {
    let mut story = story();
    for _ in 0..3 {
        story = story.may_land().conflicts().works().approves("general");
    }
    let transcript = story.may_land().conflicts().retry().transcript();
    insta::assert_snapshot!(transcript.lines().skip(16).collect::<Vec<_>>().join("\n"), @"
    landing meets a conflict           → END stuck (conflict_unresolved), CHANGES_REQUESTED
    a person retries                   → a13 fix 4 (shared.rs) [review]
    ");
}

#[test]
fn without_a_gate_a_conflict_whose_fixer_fails_can_be_retried() {
    let mut policy = Policy::new(signoff_core::workflow::preset("slots").expect("shipped"));
    for gate_policy in policy.workflow.phases.iter_mut().filter_map(|phase| phase.policy_mut()) {
        gate_policy.gate.bound = signoff_core::policy::Bound::MaxFixes(1);
        gate_policy.gate.on_fixer_failure = EscalationPolicy::new(&[FailureAction::NextAttempt]);
    }
    let story = Story::new(policy).works().conflicts().writer_fails().writer_fails();
    insta::assert_snapshot!(story.retry().works().transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 land
    landing meets a conflict           → a3 fix 0 (shared.rs) [landing]
    the agent fails                    → a4 fix 0 (shared.rs) [landing]
    the agent fails                    → END failed (fixer_failed), no verdict
    a person retries                   → a5 fix 0 (shared.rs) [landing]
    the agent completes its work       → a6 land
    ");
}

#[test]
fn a_finished_task_can_be_landed_by_a_person() {
    let story = Story::new(reviewed("task")).works().approves("general").may_land().conflicts();
    insta::assert_snapshot!(story.works().approves("general").may_land().lands().transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general approves                   → END approved, APPROVED
    the group lets it land             → a3 land
    landing meets a conflict           → a4 fix 1 (shared.rs) [review]
    the agent completes its work       → a5 review 2 of c3 by general [review]
    general approves                   → END approved, APPROVED
    the group lets it land             → a6 land
    it lands                           → END approved, APPROVED
    ");
}
