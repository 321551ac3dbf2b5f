//! All events that can happen to a loop next.

use jiff::Timestamp;
use signoff_core::machine::{
    AttemptFailure, AttemptLoss, CheckReport, Effect, Event, FinalVerdict, Head, Job, JobKind, LandingReport,
    LimitPlan, Loop, PauseReason, Policy, Stage, WorkReport, outstanding,
};
use signoff_core::review::Severity::{Critical, Minor};
use signoff_core::review::{Review, Verdict, Violation, ViolationCode};

use crate::story::{finding, head, review};

/// All events that are possible now.
pub fn next_events(machine: &Loop, policy: &Policy) -> Vec<Event> {
    let by = || "ann\x1b[31m".to_owned();
    let mut all: Vec<_> =
        outstanding(machine, policy).into_iter().flat_map(|effect| events_of_effect(machine, effect)).collect();
    match &machine.stage {
        Stage::Queued => all.push(Event::Started { head: head(0) }),
        Stage::Done(_) => all.push(Event::PersonRetried { by: by() }),
        Stage::Working { .. }
        | Stage::Researching { .. }
        | Stage::Checking { .. }
        | Stage::Reviewing(_)
        | Stage::Fixing { .. }
        | Stage::Combining { .. }
        | Stage::AwaitingLanding { .. }
        | Stage::Landing { .. }
        | Stage::Waiting { .. } => {
            all.push(Event::BudgetReached);
            all.push(Event::HeadMoved { head: new_head(machine) });
            all.push(Event::ItemsPlanned { count: 2 });
        }
    }
    let verdict = FinalVerdict::ChangesRequested;
    all.push(Event::PersonEdited { verdict, by: by(), reason: "seen\nit".into(), head: None, findings: Vec::new() });
    all.push(Event::Cancelled { by: by() });
    all
}

fn new_head(machine: &Loop) -> Head {
    let number: u32 = machine.head.commit.as_str().trim_start_matches('c').parse().unwrap_or(0);
    head(number + 1)
}

fn events_of_effect(machine: &Loop, effect: Effect) -> Vec<Event> {
    match effect {
        Effect::Spawn(job) => events_of_job(machine, &job),
        Effect::Ask(question) => {
            let by = || "ann".to_owned();
            let choices = question.choices.into_iter();
            choices.map(|choice| Event::PersonAnswered { question: question.id, choice, by: by() }).collect()
        }
        Effect::Wait { reason: PauseReason::Checkpoint } => {
            let findings = vec![finding("general", Critical, "a.rs", "odd")];
            vec![Event::CheckpointEnded { findings, number: Some(1) }]
        }
        Effect::Wait { reason } => vec![Event::Resumed { reason }],
        Effect::AwaitLanding => vec![Event::LandingGranted],
        Effect::Kill { .. } | Effect::Finish(_) => Vec::new(),
    }
}

fn events_of_job(machine: &Loop, job: &Job) -> Vec<Event> {
    let (attempt, changed) = (job.attempt, new_head(machine));
    let failure = AttemptFailure::NotStarted { message: "no\x07 agent\n".into() };
    let mut all = vec![
        Event::AttemptFailed { attempt, failure },
        Event::AttemptLost { attempt, loss: AttemptLoss::Crashed },
        Event::RateLimited {
            attempt,
            plan: LimitPlan::WaitUntil(Timestamp::UNIX_EPOCH),
            error: None,
            next_agent: None,
        },
    ];
    let work = |report| Event::WorkEnded { attempt, report };
    let broken = || vec![finding("checks", Critical, "t.rs:1", "one\ntest \x1b[2J fails")];
    match &job.kind {
        JobKind::Work { .. } | JobKind::Research { .. } | JobKind::Fix { .. } => all.extend([
            work(WorkReport::Complete { head: changed.clone() }),
            work(WorkReport::Complete { head: machine.head.clone() }),
            work(WorkReport::Incomplete { head: changed.clone() }),
            work(WorkReport::Stuck { head: changed, reason: "no\nway".into() }),
        ]),
        JobKind::Check => all.extend(
            [CheckReport::Passed, CheckReport::NothingToCheck, CheckReport::Failed { findings: broken() }]
                .map(|report| Event::CheckEnded { attempt, report }),
        ),
        JobKind::Review { reviewer, .. } => {
            let reviews = reviews(reviewer.as_str());
            all.extend(reviews.map(|review| Event::ReviewArrived { attempt, review: Box::new(review) }));
        }
        JobKind::Combine { .. } => all.extend([
            Event::FixesCombined { attempt, head: changed.clone() },
            Event::FixesOverlapped { attempt, kept: vec![0], head: changed },
        ]),
        JobKind::Land => all.extend(
            [
                LandingReport::Landed { commit: "m1".into() },
                LandingReport::SentBack { head: changed, findings: broken() },
            ]
            .map(|report| Event::LandingEnded { attempt, report }),
        ),
    }
    all
}

fn reviews(name: &str) -> [Review; 7] {
    let violation = Violation::new(ViolationCode::NoVerdict, 0, "no\x1b verdict");
    let bad = (Critical, "a.rs:1", "wrong\x1b[31m\nindeed");
    [
        review(name, Verdict::Approved, &[]),
        review(name, Verdict::Approved, &[]),
        review(name, Verdict::ChangesRequested, &[bad, (Critical, "b.rs:9", "worse")]),
        review(name, Verdict::ChangesRequested, &[(Minor, "c.rs:2", "a typo")]),
        review(name, Verdict::ChangesRequested, &[]),
        review(name, Verdict::NeedsDiscussion, &[]),
        Review::inconclusive(name.into(), signoff_core::review::ReviewerKind::General, violation),
    ]
}
