//! Which session an agent goes on with, told from the facts of its loop.
//!
//! An agent that was cut off in the middle of a job knows more about it than any prompt can tell. One that is asked
//! about something else is better off without what it thought before.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::ids::AttemptId;
use crate::machine::{Duty, Event, Failure, Loop, Loss, Position, Stage};
use crate::wire::LoopFact;

/// When an agent goes on with a session that it had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Resuming {
    /// Never.
    Fresh,
    /// Where it was cut off, and is at the same job once more.
    Retry,
    /// Also where it fixes what it wrote itself.
    Fix,
}

/// The session that an attempt goes on with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    /// Whose it was.
    pub attempt: AttemptId,
    /// As the agent calls it.
    pub session: String,
}

/// The sessions of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sessions {
    agents: BTreeMap<AttemptId, String>,
    known: BTreeMap<AttemptId, String>,
    /// The jobs whose last attempt was cut off.
    cut_off: Vec<(Job, AttemptId)>,
    /// Whoever changed the work last.
    wrote: Option<AttemptId>,
}

/// The same through all attempts at it.
type Job = (Position, u32, Duty);

/// What an event means for the session of the attempt that it ends.
enum Means {
    CutOff,
    /// It was not its turn yet.
    Nothing,
    Over,
}

impl Sessions {
    /// Takes a fact in; `this` is the loop before it.
    pub fn take(&mut self, fact: &LoopFact, this: &Loop) {
        match fact {
            LoopFact::AttemptStarted { attempt, launch } => {
                self.agents.insert(*attempt, launch.agent.clone());
            }
            LoopFact::Session { attempt, session } => {
                self.known.insert(*attempt, session.clone());
            }
            LoopFact::Moved(event) => self.moved(event, this),
            LoopFact::Added { .. }
            | LoopFact::Governed { .. }
            | LoopFact::Placed { .. }
            | LoopFact::CheckpointReviewed { .. }
            | LoopFact::Answered { .. }
            | LoopFact::Used { .. }
            | LoopFact::Said { .. }
            | LoopFact::Noted { .. } => {}
        }
    }

    fn moved(&mut self, event: &Event, this: &Loop) {
        let ended = event.ends_attempt().and_then(|attempt| Some((attempt, job(this, attempt)?)));
        let Some((attempt, job)) = ended else { return };
        match means(event) {
            Means::Nothing => {}
            // One that did not come to say anything leaves the session that it was to go on with.
            Means::CutOff if !self.known.contains_key(&attempt) => {}
            Means::CutOff => {
                self.forget(&job);
                self.cut_off.push((job, attempt));
            }
            Means::Over => self.forget(&job),
        }
        if let (Event::WorkEnded { .. }, Stage::Working { .. } | Stage::Fixing { .. }) = (event, &this.stage)
        {
            self.wrote = Some(attempt);
        }
    }

    fn forget(&mut self, job: &Job) {
        self.cut_off.retain(|(other, _)| other != job);
    }

    /// What a running attempt of `this` goes on with, made by `agent`.
    pub fn resumed(&self, by: Resuming, this: &Loop, attempt: AttemptId, agent: &str) -> Option<Resumed> {
        let earlier = match by {
            Resuming::Fresh => None,
            Resuming::Retry => self.cut_off_before(this, attempt),
            Resuming::Fix => {
                self.cut_off_before(this, attempt).or_else(|| self.written_before(this, attempt))
            }
        }?;
        // A session is no use to anybody else.
        self.agents.get(&earlier).filter(|known| *known == agent)?;
        Some(Resumed { attempt: earlier, session: self.known.get(&earlier)?.clone() })
    }

    fn cut_off_before(&self, this: &Loop, attempt: AttemptId) -> Option<AttemptId> {
        let job = job(this, attempt)?;
        self.cut_off.iter().find(|(other, _)| *other == job).map(|(_, earlier)| *earlier)
    }

    /// Fixers side by side cannot share what they go on with.
    fn written_before(&self, this: &Loop, attempt: AttemptId) -> Option<AttemptId> {
        let alone = matches!(&this.stage, Stage::Fixing { fixes, .. } if fixes.len() == 1);
        self.wrote.filter(|earlier| alone && *earlier < attempt)
    }
}

fn job(this: &Loop, attempt: AttemptId) -> Option<Job> {
    Some((this.at, this.tally.cycle, this.duty(attempt)?))
}

fn means(event: &Event) -> Means {
    match event {
        Event::AttemptFailed { failure: Failure::TimedOut | Failure::Silent, .. }
        | Event::AttemptLost { loss: Loss::Crashed | Loss::Interrupted, .. } => Means::CutOff,
        Event::RateLimited { .. } | Event::BudgetRefused { .. } => Means::Nothing,
        Event::AttemptFailed { .. }
        | Event::AttemptLost { loss: Loss::SessionGone, .. }
        | Event::WorkEnded { .. }
        | Event::CheckEnded { .. }
        | Event::ReviewArrived { .. }
        | Event::FixesCombined { .. }
        | Event::FixesOverlapped { .. }
        | Event::LandingEnded { .. }
        | Event::Started { .. }
        | Event::Imported { .. }
        | Event::ItemsPlanned { .. }
        | Event::BudgetReached
        | Event::Resumed { .. }
        | Event::CheckpointEnded { .. }
        | Event::LandingGranted
        | Event::HeadMoved { .. }
        | Event::PersonAnswered { .. }
        | Event::PersonRetried { .. }
        | Event::PersonEdited { .. }
        | Event::FindingDecided { .. }
        | Event::Cancelled { .. } => Means::Over,
    }
}
