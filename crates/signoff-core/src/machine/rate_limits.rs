//! Rate limits: wait, or switch to a fallback agent. They do not count as failures of the work, but they are bounded.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::event::{Event, LimitPlan, NextAgent};
use super::state::{AttemptSlot, Loop, PauseReason};
use super::{AttemptFailure, Policy, Reason};
use crate::agent_output::AgentError;
use crate::ids::{AttemptId, ReviewerName};
use crate::rate_limit::{Backoff, MAX_WAIT, RateLimited};

/// Identifies a job within a stage, across all its attempts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobKey {
    Work,
    Research(usize),
    Review(ReviewerName),
    Fix(usize),
    /// A step of the program itself.
    #[default]
    Program,
}

/// Consecutive rate limits and lost sessions of a job.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct RateLimitState {
    #[serde(rename = "duty")]
    pub job: JobKey,
    /// The index of the current agent: 0 is the assigned one, the others are its fallbacks.
    pub turn: usize,
    /// The rate-limited agents, by index.
    pub agents: BTreeMap<usize, LimitedAgent>,
    /// The number of lost sessions.
    #[serde(rename = "gone")]
    pub lost_sessions: u32,
}

/// An agent that is rate limited.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LimitedAgent {
    /// The last refusal.
    pub refusal: RateLimitRefusal,
    pub times: u32,
    /// When the agent may be tried again; none if that is later than the maximum wait.
    pub free: Option<Timestamp>,
    /// Whether it was refused since the last wait.
    #[serde(rename = "lately")]
    pub refused_since_wait: bool,
}

/// A rate-limited attempt.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RateLimitRefusal {
    pub attempt: AttemptId,
    /// The agent's own error message.
    pub why: Option<AgentError>,
}

/// A rate limit that the loop waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingRateLimit<'a> {
    pub until: Timestamp,
    /// The agent that is waited for, then the other limited ones.
    pub refused: Vec<&'a RateLimitRefusal>,
}

/// The agents for a job and the backoff between tries.
#[derive(Debug, Clone, Copy)]
pub struct FallbackChain {
    /// The number of fallback agents.
    pub fallbacks: usize,
    pub now: Timestamp,
    pub backoff: Backoff,
    /// Any number; it spreads agents apart that were limited together.
    pub jitter: u32,
}

/// Returns the event that follows a rate limit. Available fallbacks are tried in order, each once. Then the loop
/// waits for the agent that is available first.
pub fn rate_limit_event(
    this: &Loop,
    attempt: AttemptId,
    limit: RateLimited,
    chain: &FallbackChain,
    policy: &Policy,
) -> Event {
    let most = policy.workflow.limits.max_rate_limits;
    let mut known = this.job_key(attempt).and_then(|job| entry(this, &job)).cloned().unwrap_or_default();
    let times = known.agents.get(&known.turn).map_or(0, |one| one.times);
    let waits = limit.retry_after.is_none_or(|delay| delay <= MAX_WAIT);
    let free = waits.then(|| chain.backoff.until(chain.now, times, limit.retry_after, chain.jitter));
    let why = limit.why;
    known.record_refusal(RateLimitRefusal { attempt, why: why.clone() }, free);
    let next = known.next_available(chain, most).map(|next| (next, LimitPlan::FallBack));
    let next = next.or_else(|| {
        let (until, next) = known.first_free(chain, most)?;
        Some((next, LimitPlan::WaitUntil(until)))
    });
    match next {
        Some((next, plan)) => Event::RateLimited { attempt, plan, why, turn: Some(NextAgent { free, next }) },
        None => {
            let too_long = known.agents.values().all(|one| one.free.is_none());
            let failure = AttemptFailure::RateLimited { times: known.times(), why, too_long };
            Event::AttemptFailed { attempt, failure }
        }
    }
}

impl RateLimitState {
    /// Records a refusal of the current agent.
    fn record_refusal(&mut self, refusal: RateLimitRefusal, free: Option<Timestamp>) {
        let times = self.agents.get(&self.turn).map_or(0, |one| one.times).saturating_add(1);
        self.agents.insert(self.turn, LimitedAgent { refusal, times, free, refused_since_wait: true });
    }

    /// The first agent that is available now and was not refused since the last wait.
    fn next_available(&self, chain: &FallbackChain, most: u32) -> Option<usize> {
        let is_free = |turn: &usize| match self.agents.get(turn) {
            Some(one) => !one.refused_since_wait && one.times <= most && one.free.is_some_and(|free| free <= chain.now),
            None => true,
        };
        (0..=chain.fallbacks).find(is_free)
    }

    /// The agent that is available first, and when. Agents over the limit are not tried again.
    fn first_free(&self, chain: &FallbackChain, most: u32) -> Option<(Timestamp, usize)> {
        let all = self.agents.iter().filter(|(turn, one)| **turn <= chain.fallbacks && one.times <= most);
        all.filter_map(|(turn, one)| Some((one.free?.max(chain.now), *turn))).min()
    }

    fn times(&self) -> u32 {
        self.agents.values().fold(0, |sum, one| sum.saturating_add(one.times))
    }
}

/// A recorded rate limit: the agent's message and the decision what to do.
pub(super) struct LimitNotice {
    pub plan: LimitPlan,
    /// None in older logs.
    pub turn: Option<NextAgent>,
    pub why: Option<AgentError>,
}

/// Records a refusal. Returns whether it exceeds the limit.
pub(super) fn count_refusal(this: &mut Loop, attempt: AttemptId, limit: LimitNotice, policy: &Policy) -> bool {
    let Some(one) = entry_mut(this, attempt) else { return false };
    let LimitNotice { plan, turn, why } = limit;
    let NextAgent { free, next } = turn.unwrap_or(match plan {
        // Older logs record no agent: agents were tried in order, and the wait was for the first one.
        LimitPlan::FallBack => NextAgent { free: Some(Timestamp::MIN), next: one.turn + 1 },
        LimitPlan::WaitUntil(until) => NextAgent { free: Some(until), next: 0 },
    });
    one.record_refusal(RateLimitRefusal { attempt, why }, free);
    one.turn = next;
    if let LimitPlan::WaitUntil(_) = plan {
        one.agents.values_mut().for_each(|one| one.refused_since_wait = false);
    }
    let most = policy.workflow.limits.max_rate_limits;
    let is_over = one.agents.get(&next).is_some_and(|one| one.times > most);
    is_over && clear_job(this, attempt)
}

/// Counts a lost session. Returns whether it exceeds the limit.
pub(super) fn count_lost_session(this: &mut Loop, attempt: AttemptId, policy: &Policy) -> bool {
    let Some(one) = entry_mut(this, attempt) else { return false };
    one.lost_sessions += 1;
    one.lost_sessions > policy.workflow.limits.max_recoveries && clear_job(this, attempt)
}

fn entry_mut(this: &mut Loop, attempt: AttemptId) -> Option<&mut RateLimitState> {
    let job = this.job_key(attempt)?;
    let limited = &mut this.tally.limited;
    let place = limited.iter().position(|one| one.job == job).unwrap_or_else(|| {
        limited.push(RateLimitState { job, ..RateLimitState::default() });
        limited.len() - 1
    });
    limited.get_mut(place)
}

fn clear_job(this: &mut Loop, attempt: AttemptId) -> bool {
    let job = this.job_key(attempt);
    this.tally.limited.retain(|one| Some(&one.job) != job.as_ref());
    true
}

/// A job that an event may finish.
pub(super) struct FinishedJob {
    attempt: AttemptId,
    job: JobKey,
}

/// The job that an event may finish, so that its counters are reset.
pub(super) fn finished_job(this: &Loop, event: &Event) -> Option<FinishedJob> {
    let goes_on = matches!(event, Event::RateLimited { .. } | Event::AttemptLost { .. } | Event::BudgetRefused { .. });
    let attempt = event.ends_attempt().filter(|_| !goes_on)?;
    Some(FinishedJob { attempt, job: this.job_key(attempt)? })
}

/// Removes the counters of finished jobs.
pub(super) fn clear_finished(this: &mut Loop, settled: Option<FinishedJob>) {
    if this.tally.limited.is_empty() {
        return;
    }
    let taken = this.stage.job_slots().into_iter().filter(|(_, slot)| **slot != AttemptSlot::Vacant);
    let open: Vec<JobKey> = taken.map(|(job, _)| job).collect();
    // A report that does not fit the state ends nothing.
    let over = settled.filter(|finished| !this.runs(finished.attempt)).map(|finished| finished.job);
    this.tally.limited.retain(|one| open.contains(&one.job) && Some(&one.job) != over.as_ref());
}

impl Loop {
    /// The index of a running attempt's agent: 0 is the assigned one, the others are its fallbacks.
    pub fn agent_index(&self, attempt: AttemptId) -> usize {
        self.job_key(attempt).and_then(|job| entry(self, &job)).map_or(0, |one| one.turn)
    }

    /// The job of a running attempt.
    pub fn job_key(&self, attempt: AttemptId) -> Option<JobKey> {
        self.stage.job_slots().into_iter().find(|(_, slot)| slot.attempt() == Some(attempt)).map(|(job, _)| job)
    }

    /// The rate limits that the loop waits for.
    pub fn pending_rate_limits(&self) -> Vec<PendingRateLimit<'_>> {
        let refused = |job: &JobKey| {
            let Some(one) = entry(self, job) else { return Vec::new() };
            let others = one.agents.iter().filter(|(turn, _)| **turn != one.turn).map(|(_, other)| other);
            let all = one.agents.get(&one.turn).into_iter().chain(others);
            all.map(|one| &one.refusal).collect()
        };
        let mut pending = Vec::new();
        for (job, slot) in self.stage.job_slots() {
            if let AttemptSlot::Paused(PauseReason::RateLimit { until }) = slot {
                pending.push(PendingRateLimit { until: *until, refused: refused(&job) });
            }
        }
        pending
    }

    /// Why the loop is paused, if it is. A budget cap, which a person can change, takes precedence.
    pub fn pause_cause(&self) -> Option<Reason> {
        if !self.is_paused() {
            return None;
        }
        let short = self.pause_reasons().contains(&PauseReason::Budget);
        Some(if short { Reason::Budget } else { Reason::RateLimited })
    }
}

fn entry<'a>(this: &'a Loop, job: &JobKey) -> Option<&'a RateLimitState> {
    this.tally.limited.iter().find(|one| one.job == *job)
}
