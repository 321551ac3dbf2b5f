//! The queue of launches that wait for a free agent or for reserved budget, first come, first served.

use signoff_core::ids::{AttemptId, LoopId, RunId};
use signoff_core::machine::{self, Effect, Event, FallbackChain, Job, JobActor};
use signoff_core::rate_limit::RateLimited;
use signoff_core::settings::{AgentConfig, AgentKind};
use signoff_core::wire::{Fact, LoopFact};

use super::{Dispatcher, DispatcherNotice};
use crate::attempt_spec;
use crate::clock;
use crate::error::EngineError;

/// A requested launch.
pub(super) struct QueuedLaunch {
    pub run: RunId,
    pub loop_id: LoopId,
    pub job: Job,
}

/// Whether a launch can start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LaunchDecision {
    Start,
    /// Until other attempts have ended.
    Wait,
    /// It exceeds the budget; contains the reason.
    Refuse(String),
}

impl Dispatcher<'_> {
    /// Starts all queued launches that can start, in order. A launch that has to wait does not block others that can
    /// start.
    pub(super) fn start_queued(&mut self) -> Result<(), EngineError> {
        if self.interrupt.is_some() {
            // They stay outstanding, and the next process starts them.
            self.waiting.clear();
        }
        let mut index = 0;
        while let Some(next) = self.waiting.get(index) {
            let decision = self.is_wanted(next).then(|| self.decide_launch(next));
            if decision == Some(LaunchDecision::Wait) {
                index += 1;
                continue;
            }
            let Some(QueuedLaunch { run, loop_id, job }) = self.waiting.remove(index) else { break };
            match decision {
                Some(LaunchDecision::Start) => self.start_attempt(run, &loop_id, job)?,
                Some(LaunchDecision::Refuse(reason)) => {
                    self.note_paused(run, &loop_id, &reason);
                    self.loop_event(run, &loop_id, Event::BudgetRefused { attempt: job.attempt }, Vec::new())?;
                }
                Some(LaunchDecision::Wait) | None => {}
            }
        }
        Ok(())
    }

    /// Whether the attempt is still needed: it may have been cancelled.
    fn is_wanted(&self, queued: &QueuedLaunch) -> bool {
        let loop_state = self.loop_state(queued.run, &queued.loop_id);
        loop_state.is_some_and(|loop_state| loop_state.machine.runs(queued.job.attempt))
    }

    fn decide_launch(&self, queued: &QueuedLaunch) -> LaunchDecision {
        let QueuedLaunch { run, loop_id, job } = queued;
        // Jobs of signoff itself cost nothing and need no agent.
        let Some(agent) = self.agent_of(*run, loop_id, job) else { return LaunchDecision::Start };
        if !self.is_free(&agent) {
            return LaunchDecision::Wait;
        }
        self.budget_for(*run, loop_id, job.kind.role().as_str())
    }

    pub(super) fn note_paused(&mut self, run: RunId, loop_id: &LoopId, reason: &str) {
        let task = self.loop_state(run, loop_id).and_then(|loop_state| loop_state.task);
        let subject_label = attempt_spec::subject_label(run, loop_id, task);
        self.renderer.show(&DispatcherNotice::Note(&format!("{subject_label} is paused: {reason}")));
    }

    /// The agent of a job, if it uses a model.
    fn agent_of(&self, run: RunId, loop_id: &LoopId, job: &Job) -> Option<AgentConfig> {
        match job.actor() {
            JobActor::Program => None,
            JobActor::Writer(_) | JobActor::Reviewer(_) => {
                let name = self.launch(run, loop_id, job).agent;
                self.ctx.settings.agent(&name).filter(|agent| agent.kind != AgentKind::Checks)
            }
        }
    }

    /// Whether another instance of an agent may run, by its own limit and its provider's.
    fn is_free(&self, agent: &AgentConfig) -> bool {
        let bound = self.ctx.settings.agents_per_provider();
        if bound.is_none() && agent.max_agents.is_none() {
            return true;
        }
        let at_work = self.running_agents();
        let within = |bound: Option<u32>, same: &dyn Fn(&AgentConfig) -> bool| {
            let running = at_work.iter().filter(|other| same(other)).count();
            bound.is_none_or(|bound| running < bound as usize)
        };
        within(agent.max_agents, &|other| other.name == agent.name)
            && within(bound, &|other| other.provider == agent.provider)
    }

    fn running_agents(&self) -> Vec<AgentConfig> {
        let mut agents = Vec::new();
        for active in self.runs.values() {
            for (loop_id, attempt) in active.running.keys() {
                let loop_state = active.state.loops.get(loop_id);
                let launched = loop_state.and_then(|loop_state| loop_state.attempt_starts.get(attempt));
                let agent = launched.and_then(|one| self.ctx.settings.agent(&one.launch.agent));
                agents.extend(agent.filter(|agent| agent.kind != AgentKind::Checks));
            }
        }
        agents
    }

    /// Whether launches may be delayed or refused. Only then is the start recorded separately from the request.
    pub(super) fn limits_launches(&self) -> bool {
        let settings = &self.ctx.settings;
        let bounded = || settings.agents().iter().any(|agent| agent.max_agents.is_some());
        self.is_capped() || settings.agents_per_provider().is_some() || bounded()
    }

    /// Records the start of an attempt, if it is not recorded yet.
    pub(super) fn record_start(&mut self, run: RunId, loop_id: &LoopId, job: &Job) -> Result<(), EngineError> {
        if self.loop_state(run, loop_id).is_none_or(|loop_state| loop_state.attempt_starts.contains_key(&job.attempt)) {
            return Ok(());
        }
        let launch = self.launch(run, loop_id, job);
        let started = LoopFact::AttemptStarted { attempt: job.attempt, launch };
        self.append(run, vec![Fact::Loop(loop_id.clone(), started)])
    }

    /// The event for a rate-limited attempt: a fallback takes over, the loop waits, or the attempt fails.
    pub(super) fn rate_limited_event(
        &self,
        run: RunId,
        loop_id: &LoopId,
        attempt: AttemptId,
        rate_limited: RateLimited,
    ) -> Option<Event> {
        let run_state = &self.runs.get(&run)?.state;
        let (loop_state, policy) = (run_state.loops.get(loop_id)?, run_state.policy(loop_id)?);
        let is_it = |effect| match effect {
            Effect::Spawn(job) if job.attempt == attempt => Some(job),
            Effect::Spawn(_)
            | Effect::Kill { .. }
            | Effect::Ask(_)
            | Effect::Wait { .. }
            | Effect::AwaitLanding
            | Effect::Finish(_) => None,
        };
        let job = machine::outstanding(&loop_state.machine, policy).into_iter().find_map(is_it)?;
        let settings = &self.ctx.settings;
        let assigned = self.agent_for(run, loop_id, &job, 0)?.0;
        let chain = FallbackChain {
            fallbacks: settings.fallbacks(&assigned).len(),
            now: clock::now(),
            backoff: settings.limits().backoff,
            jitter: random(),
        };
        Some(machine::rate_limit_event(&loop_state.machine, attempt, rate_limited, &chain, policy))
    }
}

/// A random number for jitter. Without randomness all retries run at the same time, which is acceptable.
fn random() -> u32 {
    getrandom::u32().unwrap_or_default()
}
