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
    #[serde(rename = "turn")]
    pub agent_index: usize,
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
    #[serde(rename = "free")]
    pub available_at: Option<Timestamp>,
    /// Whether it was rate limited since the last wait.
    #[serde(rename = "lately")]
    pub refused_since_wait: bool,
}

/// A rate-limited attempt.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RateLimitRefusal {
    pub attempt: AttemptId,
    /// The agent's own error message.
    #[serde(rename = "why")]
    pub error: Option<AgentError>,
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
    machine: &Loop,
    attempt: AttemptId,
    limit: RateLimited,
    chain: &FallbackChain,
    policy: &Policy,
) -> Event {
    let most = policy.workflow.limits.max_rate_limits;
    let mut known = machine.job_key(attempt).and_then(|job| entry(machine, &job)).cloned().unwrap_or_default();
    let times = known.agents.get(&known.agent_index).map_or(0, |agent| agent.times);
    let waits = limit.retry_after.is_none_or(|delay| delay <= MAX_WAIT);
    let available_at = waits.then(|| chain.backoff.until(chain.now, times, limit.retry_after, chain.jitter));
    let error = limit.error;
    known.record_refusal(RateLimitRefusal { attempt, error: error.clone() }, available_at);
    let next = known.next_available(chain, most).map(|next| (next, LimitPlan::FallBack));
    let next = next.or_else(|| {
        let (until, next) = known.first_free(chain, most)?;
        Some((next, LimitPlan::WaitUntil(until)))
    });
    match next {
        Some((next, plan)) => {
            Event::RateLimited { attempt, plan, error, next_agent: Some(NextAgent { available_at, next }) }
        }
        None => {
            let too_long = known.agents.values().all(|agent| agent.available_at.is_none());
            let failure = AttemptFailure::RateLimited { times: known.times(), error, too_long };
            Event::AttemptFailed { attempt, failure }
        }
    }
}

impl RateLimitState {
    /// Records a refusal of the current agent.
    fn record_refusal(&mut self, refusal: RateLimitRefusal, available_at: Option<Timestamp>) {
        let times = self.agents.get(&self.agent_index).map_or(0, |agent| agent.times).saturating_add(1);
        self.agents.insert(self.agent_index, LimitedAgent { refusal, times, available_at, refused_since_wait: true });
    }

    /// The first agent that is available now and was not rate limited since the last wait.
    fn next_available(&self, chain: &FallbackChain, most: u32) -> Option<usize> {
        let is_free = |index: &usize| match self.agents.get(index) {
            Some(agent) => {
                !agent.refused_since_wait
                    && agent.times <= most
                    && agent.available_at.is_some_and(|available_at| available_at <= chain.now)
            }
            None => true,
        };
        (0..=chain.fallbacks).find(is_free)
    }

    /// The agent that is available first, and when. Agents over the limit are not tried again.
    fn first_free(&self, chain: &FallbackChain, most: u32) -> Option<(Timestamp, usize)> {
        let all = self.agents.iter().filter(|(index, agent)| **index <= chain.fallbacks && agent.times <= most);
        all.filter_map(|(index, agent)| Some((agent.available_at?.max(chain.now), *index))).min()
    }

    fn times(&self) -> u32 {
        self.agents.values().fold(0, |sum, agent| sum.saturating_add(agent.times))
    }
}

/// A recorded rate limit: the agent's message and the decision what to do.
pub(super) struct LimitNotice {
    pub plan: LimitPlan,
    /// None in older logs.
    pub next_agent: Option<NextAgent>,
    pub error: Option<AgentError>,
}

/// Records a refusal. Returns whether it exceeds the limit.
pub(super) fn count_refusal(machine: &mut Loop, attempt: AttemptId, limit: LimitNotice, policy: &Policy) -> bool {
    let Some(limited) = entry_mut(machine, attempt) else { return false };
    let LimitNotice { plan, next_agent, error } = limit;
    let NextAgent { available_at, next } = next_agent.unwrap_or(match plan {
        // Older logs record no agent: agents were tried in order, and the wait was for the first limited.
        LimitPlan::FallBack => NextAgent { available_at: Some(Timestamp::MIN), next: limited.agent_index + 1 },
        LimitPlan::WaitUntil(until) => NextAgent { available_at: Some(until), next: 0 },
    });
    limited.record_refusal(RateLimitRefusal { attempt, error }, available_at);
    limited.agent_index = next;
    if let LimitPlan::WaitUntil(_) = plan {
        limited.agents.values_mut().for_each(|agent| agent.refused_since_wait = false);
    }
    let most = policy.workflow.limits.max_rate_limits;
    let is_over = limited.agents.get(&next).is_some_and(|agent| agent.times > most);
    if is_over {
        clear_job(machine, attempt);
    }
    is_over
}

/// Counts a lost session. Returns whether it exceeds the limit.
pub(super) fn count_lost_session(machine: &mut Loop, attempt: AttemptId, policy: &Policy) -> bool {
    let Some(limited) = entry_mut(machine, attempt) else { return false };
    limited.lost_sessions += 1;
    let is_over = limited.lost_sessions > policy.workflow.limits.max_recoveries;
    if is_over {
        clear_job(machine, attempt);
    }
    is_over
}

fn entry_mut(machine: &mut Loop, attempt: AttemptId) -> Option<&mut RateLimitState> {
    let job = machine.job_key(attempt)?;
    let limited = &mut machine.counters.limited;
    let index = limited.iter().position(|entry| entry.job == job).unwrap_or_else(|| {
        limited.push(RateLimitState { job, ..RateLimitState::default() });
        limited.len() - 1
    });
    limited.get_mut(index)
}

fn clear_job(machine: &mut Loop, attempt: AttemptId) {
    let job = machine.job_key(attempt);
    machine.counters.limited.retain(|limited| Some(&limited.job) != job.as_ref());
}

/// A job that an event may finish.
pub(super) struct FinishedJob {
    attempt: AttemptId,
    job: JobKey,
}

/// The job that an event may finish, so that its counters are reset.
pub(super) fn finished_job(machine: &Loop, event: &Event) -> Option<FinishedJob> {
    let goes_on = matches!(event, Event::RateLimited { .. } | Event::AttemptLost { .. } | Event::BudgetRefused { .. });
    let attempt = event.ends_attempt().filter(|_| !goes_on)?;
    Some(FinishedJob { attempt, job: machine.job_key(attempt)? })
}

/// Removes the counters of finished jobs.
pub(super) fn clear_finished(machine: &mut Loop, settled: Option<FinishedJob>) {
    if machine.counters.limited.is_empty() {
        return;
    }
    let taken = machine.stage.job_slots().into_iter().filter(|(_, slot)| **slot != AttemptSlot::Vacant);
    let open: Vec<JobKey> = taken.map(|(job, _)| job).collect();
    // A report that does not fit the state ends nothing.
    let over = settled.filter(|finished| !machine.runs(finished.attempt)).map(|finished| finished.job);
    machine.counters.limited.retain(|limited| open.contains(&limited.job) && Some(&limited.job) != over.as_ref());
}

impl Loop {
    /// The index of a running attempt's agent: 0 is the assigned one, the others are its fallbacks.
    pub fn agent_index(&self, attempt: AttemptId) -> usize {
        self.job_key(attempt).and_then(|job| entry(self, &job)).map_or(0, |limited| limited.agent_index)
    }

    /// The job of a running attempt.
    pub fn job_key(&self, attempt: AttemptId) -> Option<JobKey> {
        self.stage.job_slots().into_iter().find(|(_, slot)| slot.attempt() == Some(attempt)).map(|(job, _)| job)
    }

    /// The rate limits that the loop waits for.
    pub fn pending_rate_limits(&self) -> Vec<PendingRateLimit<'_>> {
        let refused = |job: &JobKey| {
            let Some(limited) = entry(self, job) else { return Vec::new() };
            let others =
                limited.agents.iter().filter(|(index, _)| **index != limited.agent_index).map(|(_, agent)| agent);
            let all = limited.agents.get(&limited.agent_index).into_iter().chain(others);
            all.map(|agent| &agent.refusal).collect()
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

fn entry<'a>(machine: &'a Loop, job: &JobKey) -> Option<&'a RateLimitState> {
    machine.counters.limited.iter().find(|limited| limited.job == *job)
}
