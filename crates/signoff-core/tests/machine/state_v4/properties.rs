//! Properties of state files: every exported state can be imported and is exported unchanged.

use jiff::Timestamp;
use proptest::prelude::*;
use signoff_core::machine::{CheckReport, Effect, Job, JobKind, Stage, outstanding};
use signoff_core::state_v4::{
    AgentPhase, FINAL_PHASE, IssueSeverity, Iteration, IterationMode, IterationState, PhaseStates, PhaseStatus,
    ReviewIssue, StateError, VERSION, read,
};
use strum::VariantArray as _;

use super::{imported, policy, state};
use crate::machine::story::Story;

/// Whether all phases are done.
fn is_finished(state: &IterationState) -> bool {
    (1..=FINAL_PHASE).all(|number| state.status(number).is_some_and(PhaseStatus::is_over))
}

/// Applies one more event, chosen by a number.
fn happens(story: Story, choice: u8) -> Story {
    if let Stage::Waiting { question, .. } = &story.state.stage {
        let answer = question.choices[usize::from(choice) % question.choices.len()];
        return story.answer(answer);
    }
    let mut jobs = outstanding(&story.state, &story.policy).into_iter();
    let job = jobs.find_map(|effect| if let Effect::Spawn(job) = effect { Some(job) } else { None });
    match job {
        Some(job) => ends(story, &job, choice),
        None if choice.is_multiple_of(3) => story.retry(),
        None => story,
    }
}

fn ends(story: Story, job: &Job, choice: u8) -> Story {
    match &job.kind {
        JobKind::Work { .. } | JobKind::Research { .. } | JobKind::Fix { .. } => match choice % 8 {
            0 => story.writer_fails(),
            _ => story.works(),
        },
        JobKind::Review { reviewer, .. } => match choice % 8 {
            0 => story.unreadable(reviewer.as_str()),
            1 => story.objects(reviewer.as_str(), &["a.rs"]),
            2 => story.objects(reviewer.as_str(), &["a.rs", "b.rs"]),
            3 => story.discusses(reviewer.as_str()),
            _ => story.approves(reviewer.as_str()),
        },
        JobKind::Check => match choice % 4 {
            0 => story.check_fails(),
            1 => {
                let report = CheckReport::NothingToCheck;
                story.then("", signoff_core::machine::Event::CheckEnded { attempt: job.attempt, report })
            }
            _ => story.check_passes(),
        },
        JobKind::Combine { .. } => match choice % 4 {
            0 => story.overlaps(&[0]),
            _ => story.combines(),
        },
        JobKind::Land => story.lands(),
    }
}

/// The same state, with its current phase in progress.
fn settled(mut state: IterationState) -> IterationState {
    let place = match state.current_phase {
        FINAL_PHASE => Some(&mut state.phase9.status),
        number => state.iterations.last_mut().and_then(|last| last.phases.status_mut(number)),
    };
    if let Some(status) = place {
        *status = PhaseStatus::InProgress;
    }
    state
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_state_can_be_exported_and_imported(lite: bool, choices in proptest::collection::vec(any::<u8>(), 0..60)) {
        let mode = if lite { IterationMode::Lite } else { IterationMode::Full };
        let mut story = Story::new(policy(mode));
        for choice in choices {
            story = happens(story, choice);
            let exported = state(&story.policy, &story.events);
            match read(exported.to_json().as_bytes()) {
                Ok(file) => {
                    prop_assert_eq!(&file, &settled(exported));
                    prop_assert_eq!(&imported(&file), &file);
                }
                Err(StateError::Finished) => prop_assert!(is_finished(&exported) && story.state.is_done()),
                Err(error) => prop_assert!(false, "{}\n{}", error, exported.to_json()),
            }
        }
    }

    #[test]
    fn an_imported_state_is_exported_unchanged(state in a_state()) {
        prop_assert_eq!(&read(state.to_json().as_bytes()), &Ok(state.clone()));
        prop_assert_eq!(imported(&state), state);
    }

    #[test]
    fn any_bytes_can_be_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        read(&bytes).ok();
    }

    #[test]
    fn a_truncated_state_is_refused(state in a_state(), cut in any::<prop::sample::Index>()) {
        let json = state.to_json();
        let whole = json.trim_end().len();
        prop_assert!(read(&json.as_bytes()[..cut.index(whole)]).is_err());
    }
}

fn a_time() -> impl Strategy<Value = Timestamp> {
    (0_i64..4_000_000_000).prop_map(|second| Timestamp::from_second(second).expect("a time"))
}

fn issues() -> impl Strategy<Value = Vec<ReviewIssue>> {
    let level = prop::sample::select(IssueSeverity::VARIANTS.to_vec());
    let issue = (level, any::<String>(), any::<String>());
    let issue = issue.prop_map(|(severity, message, location)| ReviewIssue { severity, message, location });
    proptest::collection::vec(issue, 0..3)
}

fn phases() -> impl Strategy<Value = PhaseStates> {
    let status = prop::sample::select(PhaseStatus::VARIANTS.to_vec());
    let count = || 0_u32..=1_000_000;
    let counts = [count(), count(), count(), count()];
    (proptest::collection::vec(status, 8), counts, [issues(), issues(), issues()]).prop_map(
        |(statuses, [three, five, six, eight], [plan, code, whole])| {
            let mut phases = PhaseStates::default();
            for (number, status) in (1..).zip(statuses) {
                *phases.status_mut(number).expect("a phase") = status;
            }
            (phases.plan_review.retry_count, phases.plan_review.last_issues) = (three, plan);
            (phases.code_review.retry_count, phases.code_review.last_issues) = (five, code);
            (phases.final_review.retry_count, phases.final_review.last_issues) = (eight, whole);
            phases.test.retry_count = six;
            phases
        },
    )
}

/// A state that can be resumed: in the current iteration, earlier phases are over and later ones are pending.
fn a_state() -> impl Strategy<Value = IterationState> {
    let iterations = proptest::collection::vec((a_time(), phases()), 1..4);
    (any::<bool>(), "[a-z][ -~]{0,20}", a_time(), iterations, 1..=FINAL_PHASE, 0_u32..5).prop_map(
        |(lite, task, started_at, iterations, phase, more)| {
            let current_phase = if lite { phase.min(FINAL_PHASE - 1) } else { phase };
            let number = (1..).zip(iterations);
            let iterations: Vec<Iteration> =
                number.map(|(iteration, (started_at, phases))| Iteration { iteration, started_at, phases }).collect();
            let current_iteration = u32::try_from(iterations.len()).expect("few");
            let mut state = IterationState {
                version: VERSION,
                task,
                mode: if lite { IterationMode::Lite } else { IterationMode::Full },
                max_iterations: current_iteration + more,
                current_iteration,
                current_phase,
                started_at,
                iterations,
                phase9: AgentPhase { status: if lite { PhaseStatus::Skipped } else { PhaseStatus::Pending } },
            };
            let phases = &mut state.iterations.last_mut().expect("one at least").phases;
            for number in 1..FINAL_PHASE {
                let status = phases.status_mut(number).expect("a phase");
                let over = if status.is_over() { *status } else { PhaseStatus::Completed };
                *status = if number < current_phase { over } else { PhaseStatus::Pending };
            }
            settled(state)
        },
    )
}
