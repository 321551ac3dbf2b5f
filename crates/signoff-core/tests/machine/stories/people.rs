//! What people decide.

use signoff_core::machine::{Choice, Event, FinalWord};
use signoff_core::policy::{Ladder, Rung};

use crate::say::reviewed;
use crate::story::Story;

#[test]
fn forcing_approval_is_recorded_as_a_persons() {
    let story = Story::of(reviewed("task")).works();
    let story = story.objects("general", &["a.rs"]).edit(FinalWord::Approved);
    insta::assert_snapshot!(story.told(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general objects to a.rs            → a3 fix 1 (a.rs) [review]
    a person sets APPROVED             → kill a3; END accepted (edited_by_person), APPROVED
    ");
}

#[test]
fn cancelling_kills_and_is_final() {
    let story = Story::of(reviewed("plan")).works();
    let story = story.then("a person cancels", Event::Cancelled { by: "ann".into() });
    insta::assert_snapshot!(story.retry().told(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a3 review 1 of c1 by code [review]; a2 review 1 of c1 by spec [review]
    a person cancels                   → kill a3; kill a2; END cancelled (cancelled_by_person), no verdict
    a person retries                   → –
    ");
}

#[test]
fn retry_of_an_exhausted_loop_grants_one_more_fix_and_review() {
    let story = Story::of(reviewed("task")).works();
    let story = story.objects("general", &["a.rs"]).works().objects("general", &["a.rs"]).works();
    let told = story.objects("general", &["a.rs"]).retry().works().approves("general").told();
    insta::assert_snapshot!(told.lines().skip(6).collect::<Vec<_>>().join("\n"), @"
    general objects to a.rs            → END exhausted (cycles_exhausted), MAX_CYCLES_REACHED
    a person retries                   → a7 fix 3 (a.rs) [review]
    the agent completes its work       → a8 review 4 of c4 by general [review]
    general approves                   → END approved, APPROVED
    ");
}

#[test]
fn a_discussion_can_be_tried_again_before_somebody_is_asked() {
    let mut policy = reviewed("task");
    for judge in policy.workflow.phases.iter_mut().filter_map(|phase| phase.judge_mut()) {
        judge.gate.on_discussion = Ladder::of(&[Rung::Retry, Rung::Ask]);
    }
    let story = Story::of(policy).works().discusses("general").discusses("general");
    insta::assert_snapshot!(story.answer(Choice::Fix).told(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general wants to discuss           → a3 review 1 of c1 by general [review]
    general wants to discuss           → q1 discussion: fix|proceed|stop|restart
    a person answers fix               → a4 fix 1 (what general wrote) [review]
    ");
}
