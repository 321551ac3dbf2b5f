//! The plan preset: each row of its error table.

use signoff_core::machine::Choice;

use crate::machine::builders::reviewed;
use crate::machine::story::Story;

fn story() -> Story {
    Story::new(reviewed("plan")).works()
}

#[test]
fn both_review_at_once_and_both_again_after_a_fix() {
    let story = story().objects("spec", &["a.rs"]).approves("code").works();
    insta::assert_snapshot!(story.approves("code").approves("spec").transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a3 review 1 of c1 by code [review]; a2 review 1 of c1 by spec [review]
    spec objects to a.rs               → –
    code approves                      → a4 fix 1 (a.rs) [review]
    the agent completes its work       → a6 review 2 of c2 by code [review]; a5 review 2 of c2 by spec [review]
    code approves                      → –
    spec approves                      → END approved, APPROVED
    ");
}

#[test]
fn one_review_times_out_retry_once_then_ask() {
    let story = story().approves("spec").times_out("code").times_out("code");
    insta::assert_snapshot!(story.answer(Choice::Retry).approves("code").transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a3 review 1 of c1 by code [review]; a2 review 1 of c1 by spec [review]
    spec approves                      → –
    code times out                     → a4 review 1 of c1 by code [review]
    code times out                     → q1 partial_review: retry|proceed|stop|restart
    a person answers retry             → a5 review 1 of c1 by code [review]
    code approves                      → END approved, APPROVED
    ");
}

#[test]
fn invalid_output_retry_once_then_ask() {
    let story = story().approves("spec").unreadable("code").unreadable("code");
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
fn both_reviews_fail_ask_to_retry_skip_or_stop() {
    let story = story().times_out("spec").times_out("spec").times_out("code").times_out("code");
    insta::assert_snapshot!(story.answer(Choice::Skip).transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a3 review 1 of c1 by code [review]; a2 review 1 of c1 by spec [review]
    spec times out                     → a4 review 1 of c1 by spec [review]
    spec times out                     → –
    code times out                     → a5 review 1 of c1 by code [review]
    code times out                     → q1 no_review: retry|skip|stop|restart
    a person answers skip              → END completed_with_issues (review_skipped), no verdict
    ");
}

#[test]
fn proceeding_with_partial_results_is_never_an_approval() {
    let story = story().approves("spec").times_out("code").times_out("code");
    insta::assert_snapshot!(story.answer(Choice::Proceed).transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a3 review 1 of c1 by code [review]; a2 review 1 of c1 by spec [review]
    spec approves                      → –
    code times out                     → a4 review 1 of c1 by code [review]
    code times out                     → q1 partial_review: retry|proceed|stop|restart
    a person answers proceed           → END completed_with_issues (review_skipped), no verdict
    ");
}

#[test]
fn partial_results_with_findings_are_fixed_and_all_reviewers_review_again() {
    let story = story().objects("spec", &["a.rs"]).times_out("code").times_out("code");
    let story = story.answer(Choice::Proceed).works();
    insta::assert_snapshot!(story.approves("spec").approves("code").transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a3 review 1 of c1 by code [review]; a2 review 1 of c1 by spec [review]
    spec objects to a.rs               → –
    code times out                     → a4 review 1 of c1 by code [review]
    code times out                     → q1 partial_review: retry|proceed|stop|restart
    a person answers proceed           → a5 fix 1 (a.rs) [review]
    the agent completes its work       → a7 review 2 of c2 by code [review]; a6 review 2 of c2 by spec [review]
    spec approves                      → –
    code approves                      → END approved, APPROVED
    ");
}

#[test]
fn three_reviews_without_approval_ask() {
    let story = || {
        let story = story().objects("spec", &["a.rs"]).approves("code").works();
        let story = story.objects("spec", &["a.rs"]).approves("code").works();
        story.objects("spec", &["a.rs"]).approves("code")
    };
    let last = |story: Story| {
        let transcript = story.transcript();
        transcript.lines().skip(9).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(last(story().answer(Choice::Continue).works().approves("spec").approves("code")), @"
    code approves                      → q1 exhausted: continue|proceed|stop|restart
    a person answers continue          → a10 fix 3 (a.rs) [review]
    the agent completes its work       → a12 review 4 of c4 by code [review]; a11 review 4 of c4 by spec [review]
    spec approves                      → –
    code approves                      → END approved, APPROVED
    ");
    insta::assert_snapshot!(last(story().answer(Choice::Proceed)), @"
    code approves                      → q1 exhausted: continue|proceed|stop|restart
    a person answers proceed           → END completed_with_issues (cycles_exhausted), MAX_CYCLES_REACHED
    ");
    insta::assert_snapshot!(last(story().answer(Choice::Stop)), @"
    code approves                      → q1 exhausted: continue|proceed|stop|restart
    a person answers stop              → END failed (cycles_exhausted), CHANGES_REQUESTED
    ");
    insta::assert_snapshot!(last(story().answer(Choice::Restart)), @"
    code approves                      → q1 exhausted: continue|proceed|stop|restart
    a person answers restart           → a10 implement [implement pass 2]
    ");
}

#[test]
fn a_failed_implementer_asks_a_person() {
    let story = Story::new(reviewed("plan")).writer_fails();
    insta::assert_snapshot!(story.answer(Choice::Retry).works().transcript(), @"
    started                            → a1 implement [implement]
    the agent fails                    → q1 implementer_failed: retry|stop
    a person answers retry             → a2 implement [implement]
    the agent completes its work       → a4 review 1 of c1 by code [review]; a3 review 1 of c1 by spec [review]
    ");
}

#[test]
fn without_a_person_to_ask_the_loop_stops() {
    let mut policy = reviewed("plan");
    policy.no_ask = true;
    let story = Story::new(policy).works().times_out("spec").times_out("spec").approves("code");
    insta::assert_snapshot!(story.transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a3 review 1 of c1 by code [review]; a2 review 1 of c1 by spec [review]
    spec times out                     → a4 review 1 of c1 by spec [review]
    spec times out                     → –
    code approves                      → END failed (no_one_to_ask), CHANGES_REQUESTED
    ");
}
