//! What agents, people and the world can do to one loop.

use jiff::Timestamp;
use signoff_core::machine::{
    CheckReport, Choice, Effect, Event, Failure, Head, Hold, Job, JobKind, LandReport, LimitPlan, Loop, Loss,
    Policy, Stage, WorkReport, outstanding,
};
use signoff_core::review::Verdict;
use signoff_core::workflow::Completion;

use crate::say;

pub fn next_head(this: &Loop) -> Head {
    let number: u32 = this.head.commit.as_str().trim_start_matches('c').parse().unwrap_or(0);
    say::head(number + 1)
}

/// Everything that a loop's own wishes can lead to.
pub fn answers(this: &Loop, policy: &Policy) -> Vec<Event> {
    let answer = |wish| match wish {
        Effect::Spawn(job) => reports(this, &job, policy),
        Effect::Ask(question) => {
            let answered =
                |choice: Choice| Event::PersonAnswered { question: question.id, choice, by: "ann".into() };
            question.choices.iter().map(|choice| answered(*choice)).collect()
        }
        Effect::Wait { hold: Hold::Checkpoint } | Effect::AwaitLanding => Vec::new(),
        Effect::Wait { hold } => vec![Event::Resumed { hold }],
        Effect::Kill { .. } | Effect::Finish(_) => unreachable!("never outstanding"),
    };
    outstanding(this, policy).into_iter().flat_map(answer).collect()
}

pub fn reports(this: &Loop, job: &Job, policy: &Policy) -> Vec<Event> {
    let attempt = job.attempt;
    let (same, changed) = (this.head.clone(), next_head(this));
    let work = |report| Event::WorkEnded { attempt, report };
    let failed = Event::AttemptFailed { attempt, failure: Failure::TimedOut };
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
            check(CheckReport::Failed { findings: vec![say::finding("test.rs")] }),
            check(CheckReport::NothingToCheck),
            failed,
        ],
        JobKind::Review { reviewer, .. } => {
            let name = reviewer.as_str();
            let said = [
                say::review(name, Verdict::Approved),
                say::review(name, Verdict::NeedsDiscussion),
                say::objects(name, "x.rs"),
                say::objects(name, "y.rs"),
                say::mumbles(name),
            ];
            let arrived = |review| Event::ReviewArrived { attempt, review: Box::new(review) };
            said.into_iter().map(arrived).chain([failed]).collect()
        }
        JobKind::Combine { .. } => vec![
            Event::FixesCombined { attempt, head: changed.clone() },
            Event::FixesOverlapped { attempt, kept: vec![0], head: changed },
        ],
        JobKind::Land => vec![
            land(LandReport::Landed { commit: "m".into() }),
            land(LandReport::SentBack { head: changed, findings: vec![say::finding("z.rs")] }),
            failed,
        ],
    }
}

/// What goes wrong around it.
pub fn disturbances(this: &Loop, policy: &Policy) -> Vec<Event> {
    let mut all = vec![Event::HeadMoved { head: next_head(this) }, Event::BudgetReached];
    for wish in outstanding(this, policy) {
        if let Effect::Spawn(Job { attempt, .. }) = wish {
            all.push(Event::AttemptLost { attempt, loss: Loss::Crashed });
            all.push(Event::RateLimited {
                attempt,
                plan: LimitPlan::WaitUntil(Timestamp::UNIX_EPOCH),
                why: None,
                turn: None,
            });
        }
    }
    all
}

/// The way from outside: it begins, waits for its turn to land, or for a checkpoint review.
pub fn granted(this: &Loop) -> Option<Event> {
    match &this.stage {
        Stage::Queued => Some(Event::Started { head: say::head(0) }),
        Stage::AwaitingLanding { .. } => Some(Event::LandingGranted),
        Stage::Working { .. } | Stage::Fixing { .. } if this.holds().contains(&Hold::Checkpoint) => {
            Some(Event::CheckpointEnded { findings: vec![say::finding("x.rs")], number: Some(1) })
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
