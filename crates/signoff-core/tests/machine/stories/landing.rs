//! Landing, conflicts and voided approvals.

use signoff_core::machine::{Event, Policy};
use signoff_core::policy::Effort;

use crate::say::{head, reviewed};
use crate::story::Story;

fn story() -> Story {
    let policy = reviewed("loops");
    let policy = Policy { workflow: policy.workflow.with_effort(Effort::Low), ..policy };
    Story::of(policy).works().approves("general")
}

#[test]
fn a_conflict_is_fixed_reviewed_and_landed_again() {
    let story = story().may_land().conflicts().works().approves("general");
    insta::assert_snapshot!(story.may_land().lands().told(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general approves                   → wait for the group
    the group lets it land             → a3 land
    landing meets a conflict           → a4 fix 0 (shared.rs) [review]
    the agent completes its work       → a5 review 1 of c3 by general [review]
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
    let told = story.may_land().conflicts().told();
    insta::assert_snapshot!(told.lines().last().unwrap_or_default(), @"landing meets a conflict           → END stuck (conflict_unresolved), CHANGES_REQUESTED");
}

#[test]
fn a_commit_after_the_approval_voids_it() {
    let story = story().then("somebody commits", Event::HeadMoved { head: head(40) });
    insta::assert_snapshot!(story.approves("general").told(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general approves                   → wait for the group
    somebody commits                   → a3 review 1 of c40 by general [review]
    general approves                   → wait for the group
    ");
}

#[test]
fn a_commit_during_the_review_starts_it_again() {
    let story = Story::of(reviewed("plan")).works().approves("spec");
    insta::assert_snapshot!(story.then("somebody commits", Event::HeadMoved { head: head(40) }).told(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a3 review 1 of c1 by code [review]; a2 review 1 of c1 by spec [review]
    spec approves                      → –
    somebody commits                   → kill a3; a5 review 1 of c40 by code [review]; a4 review 1 of c40 by spec [review]
    ");
}
