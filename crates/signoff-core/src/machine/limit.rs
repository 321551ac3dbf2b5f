//! Providers that refuse an agent for now: waited out or handed to another agent. Not the work's fault, and bounded
//! all the same.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::event::{Event, LimitPlan, Turn};
use super::failure::Failure;
use super::state::{Hold, Loop, Slot, Stage};
use super::{Policy, Reason};
use crate::heard::Trouble;
use crate::ids::{AttemptId, ReviewerName};
use crate::limited::{Backoff, LONGEST_WAIT, Refused};

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

/// What kept a job from being done, in a row.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Limited {
    pub duty: Duty,
    /// Which agent has its turn: 0 is the one that was assigned, then those that fall in for it.
    pub turn: usize,
    /// Those of them that were refused, by their turn.
    pub agents: BTreeMap<usize, Busy>,
    /// How often a session to go on with was gone.
    pub gone: u32,
}

/// An agent that its provider refuses for now.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Busy {
    /// The last time.
    pub refusal: Refusal,
    pub times: u32,
    /// Since when it may be asked again; none is later than anybody waits.
    pub free: Option<Timestamp>,
    /// Whether it was since the last wait.
    pub lately: bool,
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
    /// Who is waited for, then the others that could have been asked.
    pub refused: Vec<&'a Refusal>,
}

/// Who can be asked, and how long agents wait.
#[derive(Debug, Clone, Copy)]
pub struct Chain {
    /// How many agents can fall in for the assigned one.
    pub stand_ins: usize,
    pub now: Timestamp,
    pub backoff: Backoff,
    /// Any number: it spreads those apart who were refused together.
    pub chance: u32,
}

/// What follows when an agent's provider refuses it: whoever is free falls in, in the order of the chain, each once.
/// Then the one that is free first is waited for.
pub fn refused(this: &Loop, attempt: AttemptId, refused: Refused, chain: &Chain, policy: &Policy) -> Event {
    let most = policy.workflow.limits.max_rate_limits;
    let mut known =
        duty(this, attempt).and_then(|duty| entry(this, &duty)).cloned().unwrap_or_else(Limited::new);
    let times = known.agents.get(&known.turn).map_or(0, |one| one.times);
    let waits = refused.told.is_none_or(|told| told <= LONGEST_WAIT);
    let free = waits.then(|| chain.backoff.until(chain.now, times, refused.told, chain.chance));
    let why = refused.why;
    known.refuse(Refusal { attempt, why: why.clone() }, free);
    let next = known.stand_in(chain, most).map(|next| (next, LimitPlan::FallBack));
    let next = next.or_else(|| {
        let (until, next) = known.first_free(chain, most)?;
        Some((next, LimitPlan::WaitUntil(until)))
    });
    match next {
        Some((next, plan)) => Event::RateLimited { attempt, plan, why, turn: Some(Turn { free, next }) },
        None => {
            let too_long = known.agents.values().all(|one| one.free.is_none());
            let failure = Failure::RateLimited { times: known.times(), why, too_long };
            Event::AttemptFailed { attempt, failure }
        }
    }
}

impl Limited {
    fn new() -> Self {
        Self { duty: Duty::Program, turn: 0, agents: BTreeMap::new(), gone: 0 }
    }

    /// Whoever has its turn was refused.
    fn refuse(&mut self, refusal: Refusal, free: Option<Timestamp>) {
        let times = self.agents.get(&self.turn).map_or(0, |one| one.times).saturating_add(1);
        self.agents.insert(self.turn, Busy { refusal, times, free, lately: true });
    }

    /// The first one that can be asked now, and was not since the last wait.
    fn stand_in(&self, chain: &Chain, most: u32) -> Option<usize> {
        let is_free = |turn: &usize| match self.agents.get(turn) {
            Some(one) => !one.lately && one.times <= most && one.free.is_some_and(|free| free <= chain.now),
            None => true,
        };
        (0..=chain.stand_ins).find(is_free)
    }

    /// Who can be asked again first, and when. Who was refused once too often is not asked again.
    fn first_free(&self, chain: &Chain, most: u32) -> Option<(Timestamp, usize)> {
        let all = self.agents.iter().filter(|(turn, one)| **turn <= chain.stand_ins && one.times <= most);
        all.filter_map(|(turn, one)| Some((one.free?.max(chain.now), *turn))).min()
    }

    fn times(&self) -> u32 {
        self.agents.values().fold(0, |sum, one| sum.saturating_add(one.times))
    }
}

/// Takes a refusal in. Whether it was one too many.
pub(super) fn count(
    this: &mut Loop,
    attempt: AttemptId,
    (plan, turn, why): (LimitPlan, Option<Turn>, Option<Trouble>),
    policy: &Policy,
) -> bool {
    let Some(one) = entry_mut(this, attempt) else { return false };
    let next = match (plan, turn) {
        (_, Some(turn)) => turn.next,
        // Who recorded no more than that asked one after the other, and waited for the first.
        (LimitPlan::FallBack, None) => one.turn + 1,
        (LimitPlan::WaitUntil(_), None) => 0,
    };
    let free = match (plan, turn) {
        (_, Some(turn)) => turn.free,
        (LimitPlan::WaitUntil(until), None) => Some(until),
        (LimitPlan::FallBack, None) => Some(Timestamp::MIN),
    };
    one.refuse(Refusal { attempt, why }, free);
    one.turn = next;
    if let LimitPlan::WaitUntil(_) = plan {
        one.agents.values_mut().for_each(|one| one.lately = false);
    }
    let most = policy.workflow.limits.max_rate_limits;
    let is_over = one.agents.get(&next).is_some_and(|one| one.times > most);
    is_over && forget_attempt(this, attempt)
}

/// Counts a session that was gone. Whether it was one too many: no agent's mistake goes on for ever.
pub(super) fn count_gone(this: &mut Loop, attempt: AttemptId, policy: &Policy) -> bool {
    let Some(one) = entry_mut(this, attempt) else { return false };
    one.gone += 1;
    one.gone > policy.workflow.limits.max_recoveries && forget_attempt(this, attempt)
}

fn entry_mut(this: &mut Loop, attempt: AttemptId) -> Option<&mut Limited> {
    let duty = duty(this, attempt)?;
    let limited = &mut this.tally.limited;
    let place = limited.iter().position(|one| one.duty == duty).unwrap_or_else(|| {
        limited.push(Limited { duty, ..Limited::new() });
        limited.len() - 1
    });
    limited.get_mut(place)
}

fn forget_attempt(this: &mut Loop, attempt: AttemptId) -> bool {
    let duty = duty(this, attempt);
    this.tally.limited.retain(|one| Some(&one.duty) != duty.as_ref());
    true
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
        let refused = |duty: &Duty| {
            let Some(one) = entry(self, duty) else { return Vec::new() };
            let others = one.agents.iter().filter(|(turn, _)| **turn != one.turn).map(|(_, other)| other);
            let all = one.agents.get(&one.turn).into_iter().chain(others);
            all.map(|one| &one.refusal).collect()
        };
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
