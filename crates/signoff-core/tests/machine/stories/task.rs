//! Stories of the task preset.

use signoff_core::machine::Policy;
use signoff_core::workflow::preset;

use crate::machine::builders::reviewed;
use crate::machine::story::Story;

#[test]
fn three_cycles_to_approval() {
    let story = Story::new(reviewed("task")).works();
    let story = story.objects("general", &["input.rs"]).works();
    let story = story.objects("general", &["rate.rs"]).works().approves("general");
    insta::assert_snapshot!(story.transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general objects to input.rs        → a3 fix 1 (input.rs) [review]
    the agent completes its work       → a4 review 2 of c2 by general [review]
    general objects to rate.rs         → a5 fix 2 (input.rs rate.rs) [review]
    the agent completes its work       → a6 review 3 of c3 by general [review]
    general approves                   → END approved, APPROVED
    ");
}

#[test]
fn three_reviews_without_approval_need_attention() {
    let story = Story::new(reviewed("task")).works();
    let story = story.objects("general", &["a.rs"]).works().objects("general", &["a.rs"]).works();
    insta::assert_snapshot!(story.objects("general", &["a.rs"]).transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general objects to a.rs            → a3 fix 1 (a.rs) [review]
    the agent completes its work       → a4 review 2 of c2 by general [review]
    general objects to a.rs            → a5 fix 2 (a.rs) [review]
    the agent completes its work       → a6 review 3 of c3 by general [review]
    general objects to a.rs            → END exhausted (cycles_exhausted), MAX_CYCLES_REACHED
    ");
}

#[test]
fn a_discussion_stops_the_loop_at_once() {
    insta::assert_snapshot!(Story::new(reviewed("task")).works().discusses("general").transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general wants to discuss           → END discussion (discussion), NEEDS_DISCUSSION
    ");
}

#[test]
fn an_unclear_review_after_a_readable_one_goes_to_the_fixer_unchanged() {
    let story = Story::new(reviewed("task")).works().objects("general", &["a.rs"]).works();
    let story = story.unreadable("general").unreadable("general").works().approves("general");
    insta::assert_snapshot!(story.transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general objects to a.rs            → a3 fix 1 (a.rs) [review]
    the agent completes its work       → a4 review 2 of c2 by general [review]
    general is not understood          → a5 review 2 of c2 by general [review]
    general is not understood          → a6 fix 2 (a.rs what general wrote) [review]
    the agent completes its work       → a7 review 3 of c3 by general [review]
    general approves                   → END approved, APPROVED
    ");
}

#[test]
fn a_failed_fix_keeps_its_progress_and_retry_resumes_it() {
    let story = Story::new(reviewed("task")).works().objects("general", &["a.rs"]).writer_fails();
    insta::assert_snapshot!(story.retry().works().approves("general").transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general objects to a.rs            → a3 fix 1 (a.rs) [review]
    the agent fails                    → END failed (fixer_failed), CHANGES_REQUESTED
    a person retries                   → a4 fix 1 (a.rs) [review]
    the agent completes its work       → a5 review 2 of c2 by general [review]
    general approves                   → END approved, APPROVED
    ");
}

#[test]
fn a_review_that_times_out_fails_and_retry_runs_only_the_review() {
    let story = Story::new(reviewed("task")).works().times_out("general").retry();
    insta::assert_snapshot!(story.approves("general").transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general times out                  → END failed (reviewer_failed), CHANGES_REQUESTED
    a person retries                   → a3 review 1 of c1 by general [review]
    general approves                   → END approved, APPROVED
    ");
}

#[test]
fn a_failed_implementation_has_no_verdict() {
    insta::assert_snapshot!(Story::new(reviewed("task")).writer_fails().retry().works().transcript(), @"
    started                            → a1 implement [implement]
    the agent fails                    → END failed (implementer_failed), no verdict
    a person retries                   → a2 implement [implement]
    the agent completes its work       → a3 review 1 of c1 by general [review]
    ");
}

#[test]
fn without_auto_review_nothing_is_called_approved() {
    let unreviewed = Policy::new(preset("task").expect("shipped"));
    insta::assert_snapshot!(Story::new(unreviewed).works().transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → END unreviewed, no verdict
    ");
}
