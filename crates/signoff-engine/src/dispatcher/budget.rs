//! Reserves budget for each launch before it starts, and tracks usage while it runs, so that no budget is reserved
//! twice.

use jiff::Timestamp;
use signoff_core::ids::{AttemptId, LoopId, RunId};
use signoff_core::machine::{AttemptRole, Event};
use signoff_core::policy::{BudgetResource, Caps, ResourceAmounts};
use signoff_core::review::Usage;
use signoff_core::view::LoopState;
use signoff_core::wire::{Fact, LoopFact};

use super::launch_queue::LaunchDecision;
use super::{ActiveRun, Dispatcher};
use crate::clock;
use crate::error::EngineError;
use crate::executor::AttemptKey;

/// Usage is checked once in this number of ticks, about every second.
const TICKS_PER_CHECK: u32 = 5;

impl Dispatcher<'_> {
    /// Whether any budget cap is configured.
    pub(super) fn is_capped(&self) -> bool {
        let limits = self.ctx.settings.limits();
        limits.task != Caps::default() || limits.run != Caps::default()
    }

    /// The cap that forbids another launch, of the task or of the run, as a message.
    pub(super) fn over_budget(&self, run: RunId, loop_id: &LoopId) -> Option<String> {
        match self.budget_for(run, loop_id, "") {
            LaunchDecision::Refuse(reason) => Some(reason),
            LaunchDecision::Start | LaunchDecision::Wait => None,
        }
    }

    /// Whether the budget allows another attempt in this role.
    pub(super) fn budget_for(&self, run: RunId, loop_id: &LoopId, role: &str) -> LaunchDecision {
        let Some(active) = self.runs.get(&run).filter(|_| self.is_capped()) else {
            return LaunchDecision::Start;
        };
        if !active.state.loops.contains_key(loop_id) {
            return LaunchDecision::Start;
        }
        let limits = self.ctx.settings.limits();
        let reserve = limits.reserve_micro_usd;
        let task_scope = BudgetScope { active, loops: loops_of_task(active, loop_id), caps: &limits.task, reserve };
        let run_scope = BudgetScope { active, loops: all_loops(active), caps: &limits.run, reserve };
        match (task_scope.decide(role), run_scope.decide(role)) {
            (LaunchDecision::Refuse(reason), _) => LaunchDecision::Refuse(reason),
            (_, LaunchDecision::Refuse(reason)) => LaunchDecision::Refuse(format!("run limit: {reason}")),
            (LaunchDecision::Start, LaunchDecision::Start) => LaunchDecision::Start,
            (LaunchDecision::Start | LaunchDecision::Wait, LaunchDecision::Start | LaunchDecision::Wait) => {
                LaunchDecision::Wait
            }
        }
    }

    /// Records the usage of running agents, and stops those of a task or run that reached its cap.
    pub(super) fn count_usage(&mut self) -> Result<(), EngineError> {
        self.ticks = self.ticks.wrapping_add(1);
        if !self.ticks.is_multiple_of(TICKS_PER_CHECK) || !self.is_capped() {
            return Ok(());
        }
        let runs: Vec<RunId> = self.runs.keys().copied().collect();
        for run in runs {
            let used = self.new_usage(run);
            if !used.is_empty() {
                self.append(run, used)?;
            }
            for (loop_id, reason) in self.at_cap(run) {
                self.note_paused(run, &loop_id, &reason);
                self.loop_event(run, &loop_id, Event::BudgetReached, Vec::new())?;
            }
        }
        Ok(())
    }

    /// Usage that running agents report beyond what is recorded.
    fn new_usage(&self, run: RunId) -> Vec<Fact> {
        let Some(active) = self.runs.get(&run) else { return Vec::new() };
        let mut facts = Vec::new();
        for (loop_id, attempt) in active.running.keys() {
            let known = self.known_usage(run, loop_id, *attempt);
            let usage = self.reported_usage(run, loop_id, *attempt);
            if usage != known {
                facts.push(Fact::Loop(loop_id.clone(), LoopFact::Used { attempt: *attempt, usage }));
            }
        }
        facts
    }

    /// The recorded usage of an attempt. It never decreases.
    pub(super) fn known_usage(&self, run: RunId, loop_id: &LoopId, attempt: AttemptId) -> Usage {
        let loop_state = self.loop_state(run, loop_id);
        loop_state.and_then(|loop_state| loop_state.usage.get(&attempt)).copied().unwrap_or_default()
    }

    /// The recorded usage, or what the agent reports by now if that is more.
    pub(super) fn reported_usage(&self, run: RunId, loop_id: &LoopId, attempt: AttemptId) -> Usage {
        let launched = self.loop_state(run, loop_id).and_then(|loop_state| loop_state.attempt_starts.get(&attempt));
        let model = launched.and_then(|launched| launched.launch.model.as_deref());
        let reported = self.backends.executor.reported_usage(&AttemptKey::new(run, loop_id, attempt), model);
        reported.fieldwise_max(self.known_usage(run, loop_id, attempt))
    }

    /// The loops that still run although a cap is reached. Agents that were asked to stop may take time.
    fn at_cap(&self, run: RunId) -> Vec<(LoopId, String)> {
        let Some(active) = self.runs.get(&run) else { return Vec::new() };
        let (limits, now) = (self.ctx.settings.limits(), clock::now());
        let reserve = limits.reserve_micro_usd;
        let run_scope = BudgetScope { active, loops: all_loops(active), caps: &limits.run, reserve };
        let run_reason = run_scope.reached(now).map(|reason| format!("run limit: {reason}"));
        let mut reached = Vec::new();
        for (loop_id, loop_state) in &active.state.loops {
            let alone = BudgetScope { active, loops: vec![(loop_id, &**loop_state)], caps: &limits.task, reserve };
            if !alone.agents().into_iter().any(|(loop_state, attempt)| loop_state.machine.runs(attempt)) {
                continue;
            }
            let task_scope = BudgetScope { loops: loops_of_task(active, loop_id), ..alone };
            reached
                .extend(task_scope.reached(now).or_else(|| run_reason.clone()).map(|reason| (loop_id.clone(), reason)));
        }
        reached
    }

    /// Records the usage of an abandoned attempt.
    pub(super) fn settle_usage(
        &mut self,
        run: RunId,
        loop_id: &LoopId,
        attempt: AttemptId,
        usage: Usage,
    ) -> Result<(), EngineError> {
        let Some(loop_state) = self.loop_state(run, loop_id).filter(|loop_state| !loop_state.machine.runs(attempt))
        else {
            return Ok(());
        };
        if usage == Usage::default() || loop_state.usage.get(&attempt) == Some(&usage) {
            return Ok(());
        }
        self.append(run, vec![Fact::Loop(loop_id.clone(), LoopFact::Used { attempt, usage })])
    }
}

/// The loop of a task and its checkpoint reviews, which share the task's caps.
fn loops_of_task<'a>(active: &'a ActiveRun, loop_id: &LoopId) -> Vec<(&'a LoopId, &'a LoopState)> {
    let task = loop_id.budget_owner();
    all_loops(active).into_iter().filter(|(other, _)| other.budget_owner() == task).collect()
}

fn all_loops(active: &ActiveRun) -> Vec<(&LoopId, &LoopState)> {
    active.state.loops.iter().map(|(loop_id, loop_state)| (loop_id, &**loop_state)).collect()
}

/// Loops that share caps.
struct BudgetScope<'a> {
    active: &'a ActiveRun,
    loops: Vec<(&'a LoopId, &'a LoopState)>,
    caps: &'a Caps,
    /// The expected cost of an attempt while no usage is known.
    reserve: u64,
}

impl BudgetScope<'_> {
    fn decide(&self, role: &str) -> LaunchDecision {
        let (spent, expected) = (self.spent(None), self.expected(role));
        let expected_usage = expected.unwrap_or_default();
        if let Some(resource) = self.caps.refusal(spent, expected_usage) {
            return LaunchDecision::Refuse(describe_refusal(resource, spent, self.caps));
        }
        // While the cost of an attempt is unknown, only one runs, so a cap is exceeded by at most one attempt.
        let unknown = expected.is_none() && !self.agents().is_empty();
        let taken = self.caps.refusal(spent, self.reserved().plus(expected_usage)).is_some();
        if unknown || taken { LaunchDecision::Wait } else { LaunchDecision::Start }
    }

    /// The cap that is reached, as a message.
    fn reached(&self, now: Timestamp) -> Option<String> {
        let spent = self.spent(Some(now));
        let resource = self.caps.refusal(spent, ResourceAmounts::default())?;
        Some(describe_refusal(resource, spent, self.caps))
    }

    /// The running agents of these loops.
    fn agents(&self) -> Vec<(&LoopState, AttemptId)> {
        let mut agents = Vec::new();
        for (loop_id, loop_state) in &self.loops {
            let own = self.active.running.keys().filter(|(other, _)| other == *loop_id);
            let is_paid = |attempt: &AttemptId| costs(role_of(loop_state, *attempt));
            agents.extend(own.map(|(_, attempt)| *attempt).filter(is_paid).map(|attempt| (*loop_state, attempt)));
        }
        agents
    }

    /// The used budget, including the running time of agents if `now` is given.
    fn spent(&self, now: Option<Timestamp>) -> ResourceAmounts {
        let all = self.loops.iter().flat_map(|(_, loop_state)| loop_state.usage.values().copied());
        let running =
            now.map(|now| self.agents().into_iter().map(move |(loop_state, one)| elapsed(loop_state, one, now)));
        sum(all.chain(running.into_iter().flatten()).map(ResourceAmounts::from))
    }

    /// What is reserved for running agents and not used yet.
    fn reserved(&self) -> ResourceAmounts {
        let left = |(loop_state, attempt): (&LoopState, AttemptId)| {
            let expected_usage = self.expected(role_of(loop_state, attempt)).unwrap_or_default();
            let used = loop_state.usage.get(&attempt).copied().map(ResourceAmounts::from).unwrap_or_default();
            ResourceAmounts {
                cost_micro_usd: expected_usage.cost_micro_usd.saturating_sub(used.cost_micro_usd),
                tokens: expected_usage.tokens.saturating_sub(used.tokens),
                duration_ms: 0,
            }
        };
        sum(self.agents().into_iter().map(left))
    }

    /// The expected usage of another attempt: the maximum for this role in the run, or for any role. `None` if it is
    /// unknown and a cap depends on it.
    fn expected(&self, role: &str) -> Option<ResourceAmounts> {
        let known = self.known();
        let same = known.iter().filter(|(other, _)| *other == role).map(|(_, usage)| *usage);
        let any = || known.iter().map(|(_, usage)| *usage).reduce(maximum);
        let largest = same.reduce(maximum).or_else(any);
        let reserved = ResourceAmounts { cost_micro_usd: self.reserve, ..ResourceAmounts::default() };
        let is_configured = self.reserve > 0 && self.caps.max_tokens.is_none();
        let capped = self.caps.max_cost_micro_usd.is_some() || self.caps.max_tokens.is_some();
        largest.or_else(|| (is_configured || !capped).then_some(reserved))
    }

    /// The usage of the run's ended attempts, by role. Failed attempts without usage are skipped.
    fn known(&self) -> Vec<(&str, ResourceAmounts)> {
        let mut known = Vec::new();
        for (loop_id, loop_state) in &self.active.state.loops {
            for (attempt, usage) in loop_state.usage.iter() {
                let at_work = self.active.running.contains_key(&(loop_id.clone(), *attempt));
                let role = role_of(loop_state, *attempt);
                let is_meaningful = usage.cost_micro_usd > 0 || loop_state.answered.contains(attempt);
                if is_meaningful && !at_work && costs(role) {
                    known.push((role, Usage { duration_ms: 0, ..*usage }.into()));
                }
            }
        }
        known
    }
}

fn sum(amounts: impl Iterator<Item = ResourceAmounts>) -> ResourceAmounts {
    amounts.fold(ResourceAmounts::default(), ResourceAmounts::plus)
}

/// Whether attempts of a role cost something. Unknown roles count as agents.
fn costs(role: &str) -> bool {
    AttemptRole::parse(role).is_none_or(AttemptRole::is_by_agent)
}

fn role_of(loop_state: &LoopState, attempt: AttemptId) -> &str {
    loop_state.attempt_starts.get(&attempt).map_or("", |one| one.launch.role.as_str())
}

/// How long an agent has been running.
fn elapsed(loop_state: &LoopState, attempt: AttemptId, now: Timestamp) -> Usage {
    let since = loop_state.attempt_starts.get(&attempt).map_or(now, |one| one.at);
    let duration_ms = u64::try_from(now.duration_since(since).as_millis()).unwrap_or_default();
    Usage { duration_ms, ..Usage::default() }
}

/// The maximum of each value. The duration is bounded by its own limit.
fn maximum(one: ResourceAmounts, other: ResourceAmounts) -> ResourceAmounts {
    ResourceAmounts {
        cost_micro_usd: one.cost_micro_usd.max(other.cost_micro_usd),
        tokens: one.tokens.max(other.tokens),
        duration_ms: 0,
    }
}

/// `$0.51 of $1.00 is spent, and the next attempt may cost more than is left`.
fn describe_refusal(resource: BudgetResource, used: ResourceAmounts, caps: &Caps) -> String {
    let dollars = |micro: u64| format!("${:.2}", micro as f64 / 1_000_000.0);
    let (amount, cap, message, more) = match resource {
        BudgetResource::Cost => {
            let (amount, cap) = (used.cost_micro_usd, caps.max_cost_micro_usd.unwrap_or_default());
            let message = format!("{} of {} is spent", dollars(amount), dollars(cap));
            (amount, cap, message, "the next attempt may cost more than is left")
        }
        BudgetResource::Tokens => {
            let (amount, cap) = (used.tokens, caps.max_tokens.unwrap_or_default());
            let message = format!("{amount} of {cap} tokens are used");
            (amount, cap, message, "the next attempt may use more than are left")
        }
        BudgetResource::Minutes => {
            let (amount, cap) = (used.duration_ms / 60_000, caps.max_minutes.unwrap_or_default());
            let message = format!("{amount} of {cap} minutes are used");
            (amount, cap, message, "the next attempt may take longer than is left")
        }
    };
    if amount < cap { format!("{message}, and {more}") } else { message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_states_the_used_budget_and_what_is_left() {
        let caps = Caps { max_cost_micro_usd: Some(1_000_000), max_tokens: Some(9_000), max_minutes: Some(10) };
        let used = ResourceAmounts { cost_micro_usd: 510_000, tokens: 9_000, duration_ms: 720_000 };
        let messages = [BudgetResource::Cost, BudgetResource::Tokens, BudgetResource::Minutes]
            .map(|one| describe_refusal(one, used, &caps));
        assert_eq!(
            messages,
            [
                "$0.51 of $1.00 is spent, and the next attempt may cost more than is left",
                "9000 of 9000 tokens are used",
                "12 of 10 minutes are used",
            ]
        );
    }
}
