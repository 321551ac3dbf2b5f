//! Providers that refuse an agent for now: waited out or handed to another agent. Not the work's fault, and bounded
//! all the same.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::event::{Event, Failure, LimitPlan};
use super::state::{Hold, Loop, Slot, Stage};
use super::{Policy, Reason};
use crate::heard::Trouble;
use crate::ids::{AttemptId, ReviewerName};
use crate::limited::{LONGEST_WAIT, Refused};

/// Whose place in a stage it is: the same through all attempts of one job.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Duty {
    Work,
    Research(usize),
    Review(ReviewerName),
    Fix(usize),
    /// What the program does itself.
    Program,
}

/// How often a job was refused, in a row.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Limited {
    pub duty: Duty,
    /// Those that were refused one after the other, since the last wait: whose turn it is again, and who fell in.
    pub refused: Vec<Refusal>,
    pub times: u32,
    /// How many of them were waited out.
    pub waits: u32,
    /// Which agent has its turn: 0 is the one that was assigned, then those that fall in for it.
    pub turn: usize,
}

/// An attempt whose agent was refused, and why.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Refusal {
    pub attempt: AttemptId,
    /// In the agent's own words.
    pub why: Option<Trouble>,
}

/// A rate limit that is waited out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waited<'a> {
    pub until: Timestamp,
    pub refused: &'a [Refusal],
}

/// What follows when an agent's provider refuses it. `stand_ins` is how many agents can fall in for the assigned one;
/// `until` gives the end of a wait from the number of waits before it.
pub fn refused(
    this: &Loop,
    attempt: AttemptId,
    (refused, stand_ins): (Refused, usize),
    until: impl FnOnce(u32) -> Timestamp,
    policy: &Policy,
) -> Event {
    let known = duty(this, attempt).and_then(|duty| entry(this, &duty));
    let (times, waits, turn) = known.map_or((0, 0, 0), |one| (one.times, one.waits, one.turn));
    let too_long = refused.told.is_some_and(|told| told > LONGEST_WAIT) && turn >= stand_ins;
    let why = refused.why;
    if too_long || times >= policy.workflow.limits.max_rate_limits {
        let failure = Failure::RateLimited { times: times.saturating_add(1), why, too_long };
        return Event::AttemptFailed { attempt, failure };
    }
    let plan = if turn < stand_ins { LimitPlan::FallBack } else { LimitPlan::WaitUntil(until(waits)) };
    Event::RateLimited { attempt, plan, why }
}

/// Takes a refusal in. Whether it was one too many.
pub(super) fn count(
    this: &mut Loop,
    attempt: AttemptId,
    (plan, why): (LimitPlan, Option<Trouble>),
    policy: &Policy,
) -> bool {
    let Some(duty) = duty(this, attempt) else { return false };
    let times = entry(this, &duty).map_or(0, |one| one.times);
    if times >= policy.workflow.limits.max_rate_limits {
        this.tally.limited.retain(|one| one.duty != duty);
        return true;
    }
    let limited = &mut this.tally.limited;
    let place = limited.iter().position(|one| one.duty == duty).unwrap_or_else(|| {
        limited.push(Limited { duty, refused: Vec::new(), times: 0, waits: 0, turn: 0 });
        limited.len() - 1
    });
    let one = &mut limited[place];
    one.times += 1;
    if one.turn == 0 {
        one.refused.clear();
    }
    one.refused.push(Refusal { attempt, why });
    match plan {
        LimitPlan::FallBack => one.turn += 1,
        LimitPlan::WaitUntil(_) => (one.waits, one.turn) = (one.waits + 1, 0),
    }
    false
}

/// The job that an event may bring to an end of its own, so that its count begins anew.
pub(super) fn settled(this: &Loop, event: &Event) -> Option<(AttemptId, Duty)> {
    let goes_on =
        matches!(event, Event::RateLimited { .. } | Event::AttemptLost { .. } | Event::BudgetRefused { .. });
    let attempt = event.ends_attempt().filter(|_| !goes_on)?;
    Some((attempt, duty(this, attempt)?))
}

/// Forgets the counts of jobs that are over.
pub(super) fn forget(this: &mut Loop, settled: Option<(AttemptId, Duty)>) {
    if this.tally.limited.is_empty() {
        return;
    }
    let open: Vec<Duty> = places(&this.stage)
        .into_iter()
        .filter(|(_, slot)| **slot != Slot::Vacant)
        .map(|(duty, _)| duty)
        .collect();
    // A report that does not fit ends nothing.
    let over = settled.filter(|(attempt, _)| !this.runs(*attempt)).map(|(_, duty)| duty);
    this.tally.limited.retain(|one| open.contains(&one.duty) && Some(&one.duty) != over.as_ref());
}

impl Loop {
    /// Whose turn a running attempt is: 0 is the agent that was assigned, then those that fall in for it.
    pub fn turn(&self, attempt: AttemptId) -> usize {
        duty(self, attempt).and_then(|duty| entry(self, &duty)).map_or(0, |one| one.turn)
    }

    /// Whose place in its stage a running attempt has.
    pub fn duty(&self, attempt: AttemptId) -> Option<Duty> {
        duty(self, attempt)
    }

    /// The rate limits that are waited out.
    pub fn waits(&self) -> Vec<Waited<'_>> {
        let refused = |duty: &Duty| entry(self, duty).map_or(&[][..], |one| &one.refused);
        let wait = |(duty, slot): (Duty, &Slot)| match slot {
            Slot::Held(Hold::RateLimit { until }) => Some(Waited { until: *until, refused: refused(&duty) }),
            Slot::Held(Hold::Budget | Hold::Checkpoint) | Slot::Running(_) | Slot::Vacant => None,
        };
        places(&self.stage).into_iter().filter_map(wait).collect()
    }

    /// Why it is paused, if it is. What a person can change is said first.
    pub fn paused_for(&self) -> Option<Reason> {
        if !self.is_paused() {
            return None;
        }
        let short = self.holds().contains(&Hold::Budget);
        Some(if short { Reason::Budget } else { Reason::RateLimited })
    }
}

fn entry<'a>(this: &'a Loop, duty: &Duty) -> Option<&'a Limited> {
    this.tally.limited.iter().find(|one| one.duty == *duty)
}

fn duty(this: &Loop, attempt: AttemptId) -> Option<Duty> {
    let runs = |(_, slot): &(Duty, &Slot)| slot.attempt() == Some(attempt);
    places(&this.stage).into_iter().find(runs).map(|(duty, _)| duty)
}

fn places(stage: &Stage) -> Vec<(Duty, &Slot)> {
    match stage {
        Stage::Working { slot, .. } => vec![(Duty::Work, slot)],
        Stage::Checking { slot, .. } | Stage::Combining { slot, .. } | Stage::Landing { slot, .. } => {
            vec![(Duty::Program, slot)]
        }
        Stage::Researching { team } => {
            let out = team.iter().enumerate().filter_map(|(number, one)| Some((number, one.slot()?)));
            out.map(|(number, slot)| (Duty::Research(number), slot)).collect()
        }
        Stage::Reviewing(panel) => {
            let out = panel.seats.iter().filter_map(|(name, seat)| Some((name, seat.slot()?)));
            out.map(|(name, slot)| (Duty::Review(name.clone()), slot)).collect()
        }
        Stage::Fixing { fixes, .. } => {
            let out = fixes.iter().enumerate().filter_map(|(part, fix)| Some((part, fix.slot()?)));
            out.map(|(part, slot)| (Duty::Fix(part), slot)).collect()
        }
        Stage::Queued | Stage::AwaitingLanding { .. } | Stage::Waiting { .. } | Stage::Done(_) => Vec::new(),
    }
}
