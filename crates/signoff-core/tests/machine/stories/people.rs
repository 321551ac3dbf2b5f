//! Decisions of people.

use signoff_core::machine::{Choice, Event, FinalVerdict, ImportedProgress, Position};
use signoff_core::policy::{EscalationPolicy, FailureAction};

use crate::machine::builders::reviewed;
use crate::machine::story::Story;

#[test]
fn a_forced_approval_is_recorded_as_a_decision_of_a_person() {
    let story = Story::new(reviewed("task")).works();
    let story = story.objects("general", &["a.rs"]).edit(FinalVerdict::Approved);
    insta::assert_snapshot!(story.transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general objects to a.rs            → a3 fix 1 (a.rs) [review]
    a person sets APPROVED             → kill a3; END accepted (edited_by_person), APPROVED
    ");
}

#[test]
fn cancelling_kills_and_is_final() {
    let story = Story::new(reviewed("plan")).works();
    let story = story.then("a person cancels", Event::Cancelled { by: "ann".into() });
    insta::assert_snapshot!(story.retry().transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a3 review 1 of c1 by code [review]; a2 review 1 of c1 by spec [review]
    a person cancels                   → kill a3; kill a2; END cancelled (cancelled_by_person), no verdict
    a person retries                   → –
    ");
}

#[test]
fn retry_of_an_exhausted_loop_grants_one_more_fix_and_review() {
    let story = Story::new(reviewed("task")).works();
    let story = story.objects("general", &["a.rs"]).works().objects("general", &["a.rs"]).works();
    let transcript = story.objects("general", &["a.rs"]).retry().works().approves("general").transcript();
    insta::assert_snapshot!(transcript.lines().skip(6).collect::<Vec<_>>().join("\n"), @"
    general objects to a.rs            → END exhausted (cycles_exhausted), MAX_CYCLES_REACHED
    a person retries                   → a7 fix 3 (a.rs) [review]
    the agent completes its work       → a8 review 4 of c4 by general [review]
    general approves                   → END approved, APPROVED
    ");
}

#[test]
fn a_discussion_can_be_retried_before_a_person_is_asked() {
    let mut policy = reviewed("task");
    for gate_policy in policy.workflow.phases.iter_mut().filter_map(|phase| phase.policy_mut()) {
        gate_policy.gate.on_discussion = EscalationPolicy::new(&[FailureAction::Retry, FailureAction::Ask]);
    }
    let story = Story::new(policy).works().discusses("general").discusses("general");
    insta::assert_snapshot!(story.answer(Choice::Fix).transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general wants to discuss           → a3 review 1 of c1 by general [review]
    general wants to discuss           → q1 discussion: fix|proceed|stop|restart
    a person answers fix               → a4 fix 1 (what general wrote) [review]
    ");
}

#[test]
fn any_verdict_except_approved_stops_the_work_and_retry_resumes_it() {
    let story = Story::new(reviewed("loops")).works().objects("general", &["a.rs"]);
    let story = story.edit(FinalVerdict::ChangesRequested).retry();
    insta::assert_snapshot!(story.transcript(), @"
    started                            → a1 implement [implement]
    the agent completes its work       → a2 review 1 of c1 by general [review]
    general objects to a.rs            → a3 fix 1 (a.rs) [review]
    a person sets CHANGES_REQUESTED    → kill a3; END failed (edited_by_person), CHANGES_REQUESTED
    a person retries                   → a4 fix 1 (a.rs) [review]
    ");
}

#[test]
fn a_granted_fix_gets_the_unreadable_review() {
    let story = Story::new(reviewed("task")).works().objects("general", &["a.rs"]).works();
    let story = story.unreadable("general").unreadable("general").works();
    let transcript = story.unreadable("general").unreadable("general").retry().transcript();
    insta::assert_snapshot!(transcript.lines().skip(6).collect::<Vec<_>>().join("\n"), @"
    the agent completes its work       → a7 review 3 of c3 by general [review]
    general is not understood          → a8 review 3 of c3 by general [review]
    general is not understood          → END exhausted (cycles_exhausted), MAX_CYCLES_REACHED
    a person retries                   → a9 fix 3 (a.rs what general wrote) [review]
    ");
}

#[test]
fn without_a_person_to_ask_retry_grants_one_more_fix() {
    let mut policy = reviewed("plan");
    policy.no_ask = true;
    let mut story = Story::new(policy).works();
    for _ in 0..2 {
        story = story.objects("spec", &["a.rs"]).approves("code").works();
    }
    let transcript = story.objects("spec", &["a.rs"]).approves("code").retry().transcript();
    insta::assert_snapshot!(transcript.lines().skip(9).collect::<Vec<_>>().join("\n"), @"
    code approves                      → END failed (no_one_to_ask), CHANGES_REQUESTED
    a person retries                   → a10 fix 3 (a.rs) [review]
    ");
}

#[test]
fn findings_are_kept_when_one_reviewer_is_missing() {
    let story = Story::new(reviewed("plan")).works().objects("spec", &["a.rs"]);
    let story = story.times_out("code").times_out("code").answer(Choice::Restart);
    assert_eq!(story.state.ledger.entries().len(), 1);
}

#[test]
fn a_review_that_was_skipped_once_is_not_forgotten_by_a_restart() {
    let mut policy = reviewed("phases");
    for phase in &mut policy.workflow.phases {
        if let signoff_core::workflow::PhaseKind::Agent { researchers, .. } = &mut phase.kind {
            *researchers = 0;
        }
        if phase.name == "plan_review" {
            phase.once = true;
            phase.policy_mut().expect("a gate").gate.on_reviewer_failure = EscalationPolicy::new(&[FailureAction::Ask]);
        }
    }
    let story = Story::new(policy).works().works().times_out("plan").answer(Choice::Skip);
    let story = story.works().approves("code").approves("code").check_fails();
    let story = story.works().works().works().approves("code").approves("code").check_passes().works();
    let transcript = story.approves("final").approves("codex").transcript();
    insta::assert_snapshot!(transcript.lines().last().unwrap_or_default(), @"codex approves                     → END completed_with_issues (review_skipped), no verdict");
}

#[test]
fn an_imported_loop_resumes_at_its_position() {
    let policy = reviewed("phases");
    let at = policy.workflow.phases.iter().position(|phase| phase.name == "code_review").expect("a phase");
    let story = Story::queued(policy).then(
        "imported at the code review",
        Event::Imported {
            head: crate::machine::builders::head(9),
            position: Position { pass: 2, phase: at, item: 0 },
            progress: ImportedProgress {
                fixes: 10,
                findings: vec![crate::machine::builders::finding("old.rs", signoff_core::review::Severity::Important)],
                ..ImportedProgress::default()
            },
        },
    );
    let transcript = story.objects("code", &["a.rs"]).transcript();
    insta::assert_snapshot!(transcript, @"
    imported at the code review        → a1 review 11 of c9 by code [code_review pass 2]
    code objects to a.rs               → END failed (cycles_exhausted), CHANGES_REQUESTED
    ");
}
