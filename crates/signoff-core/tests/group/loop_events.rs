//! The events that agents, people and the environment can cause in one loop.

use jiff::Timestamp;
use signoff_core::machine::{
    AttemptFailure, AttemptLoss, CheckReport, Choice, Effect, Event, Head, Job, JobKind, LandingReport, LimitPlan,
    Loop, PauseReason, Policy, Stage, WorkReport, outstanding,
};
use signoff_core::review::Verdict;
use signoff_core::workflow::Completion;

use crate::group::builders;

pub fn next_head(machine: &Loop) -> Head {
    let number: u32 = machine.head.commit.as_str().trim_start_matches('c').parse().unwrap_or(0);
    builders::head(number + 1)
}

/// All events that the outstanding effects of a loop can lead to.
pub fn answers(machine: &Loop, policy: &Policy) -> Vec<Event> {
    let answer = |effect| match effect {
        Effect::Spawn(job) => reports(machine, &job, policy),
        Effect::Ask(question) => {
            let answered = |choice: Choice| Event::PersonAnswered { question: question.id, choice, by: "ann".into() };
            question.choices.iter().map(|choice| answered(*choice)).collect()
        }
        Effect::Wait { reason: PauseReason::Checkpoint } | Effect::AwaitLanding => Vec::new(),
        Effect::Wait { reason } => vec![Event::Resumed { reason }],
        Effect::Kill { .. } | Effect::Finish(_) => unreachable!("never outstanding"),
    };
    outstanding(machine, policy).into_iter().flat_map(answer).collect()
}

pub fn reports(machine: &Loop, job: &Job, policy: &Policy) -> Vec<Event> {
    let attempt = job.attempt;
    let (same, changed) = (machine.head.clone(), next_head(machine));
    let work = |report| Event::WorkEnded { attempt, report };
    let failed = Event::AttemptFailed { attempt, failure: AttemptFailure::TimedOut };
    let check = |report| Event::CheckEnded { attempt, report };
    let land = |report| Event::LandingEnded { attempt, report };
    let done = work(WorkReport::Complete { head: changed.clone() });
    match &job.kind {
        JobKind::Work { .. } if policy.workflow.completion == Completion::Marker => vec![
            done,
            work(WorkReport::Incomplete { head: changed.clone() }),
            work(WorkReport::Incomplete { head: changed }),
            work(WorkReport::Stuck { head: same, reason: "no way on".into() }),
            failed,
        ],
        JobKind::Work { .. } | JobKind::Research { .. } => vec![done, failed],
        JobKind::Fix { .. } => vec![done, work(WorkReport::Complete { head: same }), failed],
        JobKind::Check => vec![
            check(CheckReport::Passed),
            check(CheckReport::Failed { findings: vec![builders::finding("test.rs")] }),
            check(CheckReport::NothingToCheck),
            failed,
        ],
        JobKind::Review { reviewer, .. } => {
            let name = reviewer.as_str();
            let outcomes = [
                builders::review(name, Verdict::Approved),
                builders::review(name, Verdict::NeedsDiscussion),
                builders::objects(name, "x.rs"),
                builders::objects(name, "y.rs"),
                builders::unreadable(name),
            ];
            let arrived = |review| Event::ReviewArrived { attempt, review: Box::new(review) };
            outcomes.into_iter().map(arrived).chain([failed]).collect()
        }
        JobKind::Combine { .. } => vec![
            Event::FixesCombined { attempt, head: changed.clone() },
            Event::FixesOverlapped { attempt, kept: vec![0], head: changed },
        ],
        JobKind::Land => vec![
            land(LandingReport::Landed { commit: "m".into() }),
            land(LandingReport::SentBack { head: changed, findings: vec![builders::finding("z.rs")] }),
            failed,
        ],
    }
}

/// Events from outside that disturb a loop.
pub fn disturbances(machine: &Loop, policy: &Policy) -> Vec<Event> {
    let mut all = vec![Event::HeadMoved { head: next_head(machine) }, Event::BudgetReached];
    for effect in outstanding(machine, policy) {
        if let Effect::Spawn(Job { attempt, .. }) = effect {
            all.push(Event::AttemptLost { attempt, loss: AttemptLoss::Crashed });
            all.push(Event::RateLimited {
                attempt,
                plan: LimitPlan::WaitUntil(Timestamp::UNIX_EPOCH),
                error: None,
                next_agent: None,
            });
        }
    }
    all
}

/// The event from the run that the loop waits for: its start, the grant to land, or the end of a checkpoint review.
pub fn granted(machine: &Loop) -> Option<Event> {
    match &machine.stage {
        Stage::Queued => Some(Event::Started { head: builders::head(0) }),
        Stage::AwaitingLanding { .. } => Some(Event::LandingGranted),
        Stage::Working { .. } | Stage::Fixing { .. } if machine.pause_reasons().contains(&PauseReason::Checkpoint) => {
            Some(Event::CheckpointEnded { findings: vec![builders::finding("x.rs")], number: Some(1) })
        }
        Stage::Working { .. }
        | Stage::Researching { .. }
        | Stage::Checking { .. }
        | Stage::Reviewing(_)
        | Stage::Fixing { .. }
        | Stage::Combining { .. }
        | Stage::Landing { .. }
        | Stage::Waiting { .. }
        | Stage::Done(_) => None,
    }
}
