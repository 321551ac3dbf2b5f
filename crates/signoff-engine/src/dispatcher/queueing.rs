//! Launches that wait for a free agent, or for money that is promised to others: first come, first served.

use signoff_core::config::{Agent, AgentKind};
use signoff_core::ids::{AttemptId, LoopId, RunId};
use signoff_core::limited::Refused;
use signoff_core::machine::{self, Chain, Effect, Event, Job, Subject};
use signoff_core::wire::{Fact, LoopFact};

use super::{Dispatcher, Notice};
use crate::assignment;
use crate::clock;
use crate::error::EngineError;

/// A launch that is wished for.
pub(super) struct Waiting {
    pub run: RunId,
    pub loop_id: LoopId,
    pub job: Job,
}

/// Whether a launch can begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Room {
    Free,
    /// When others have ended.
    Later,
    /// Not within the budget; why, in words.
    Refused(String),
}

impl Dispatcher<'_> {
    /// Starts what waits and can start. Who came first is asked first; who cannot start holds nobody up who needs
    /// something else.
    pub(super) fn launch_waiting(&mut self) -> Result<(), EngineError> {
        if self.interrupt.is_some() {
            // They stay outstanding: the next drive starts them.
            self.waiting.clear();
        }
        let mut place = 0;
        while let Some(next) = self.waiting.get(place) {
            let room = if self.is_wanted(next) { self.room_for(next) } else { None };
            if room == Some(Room::Later) {
                place += 1;
                continue;
            }
            let Some(Waiting { run, loop_id, job }) = self.waiting.remove(place) else { break };
            match room {
                Some(Room::Free) => self.begin(run, &loop_id, job)?,
                Some(Room::Refused(why)) => self.refuse(run, &loop_id, job.attempt, &why)?,
                Some(Room::Later) | None => {}
            }
        }
        Ok(())
    }

    /// Whether the attempt is still to be made: it may have been called off since.
    fn is_wanted(&self, waiting: &Waiting) -> bool {
        let board = self.runs.get(&waiting.run).map(|driven| &driven.board);
        let worked = board.and_then(|board| board.loops.get(&waiting.loop_id));
        worked.is_some_and(|worked| worked.state.runs(waiting.job.attempt))
    }

    fn room_for(&self, waiting: &Waiting) -> Option<Room> {
        let Waiting { run, loop_id, job } = waiting;
        // What the program does itself costs nothing and takes nobody's place.
        let Some(agent) = self.agent_of(*run, loop_id, job) else { return Some(Room::Free) };
        if !self.is_free(&agent) {
            return Some(Room::Later);
        }
        Some(self.money_for(*run, loop_id, super::carry_out::role_word(job)))
    }

    fn refuse(
        &mut self,
        run: RunId,
        loop_id: &LoopId,
        attempt: AttemptId,
        why: &str,
    ) -> Result<(), EngineError> {
        self.note_paused(run, loop_id, why);
        self.loop_event(run, loop_id, Event::BudgetRefused { attempt }, Vec::new())
    }

    pub(super) fn note_paused(&mut self, run: RunId, loop_id: &LoopId, why: &str) {
        let task = self.runs.get(&run).and_then(|driven| driven.board.loops.get(loop_id)?.task);
        let whose = assignment::whose(run, loop_id, task);
        self.renderer.take(&Notice::Note(&format!("{whose} is paused: {why}")));
    }

    /// The agent of a job, where a model does it.
    fn agent_of(&self, run: RunId, loop_id: &LoopId, job: &Job) -> Option<Agent> {
        match job.role() {
            Subject::Program => None,
            Subject::Writer(_) | Subject::Reviewer(_) => {
                let name = self.launch(run, loop_id, job).agent;
                self.shop.settings.agent(&name).filter(|agent| agent.kind != AgentKind::Checks)
            }
        }
    }

    /// Whether one more of an agent may run, by its own bound and its provider's.
    fn is_free(&self, agent: &Agent) -> bool {
        let bound = self.shop.settings.agents_per_provider();
        if bound.is_none() && agent.max_agents.is_none() {
            return true;
        }
        let at_work = self.agents_at_work();
        let within = |bound: Option<u32>, same: &dyn Fn(&Agent) -> bool| {
            let running = at_work.iter().filter(|other| same(other)).count();
            bound.is_none_or(|bound| running < bound as usize)
        };
        within(agent.max_agents, &|other| other.name == agent.name)
            && within(bound, &|other| other.provider == agent.provider)
    }

    fn agents_at_work(&self) -> Vec<Agent> {
        let mut agents = Vec::new();
        for driven in self.runs.values() {
            for (loop_id, attempt) in driven.at_work.keys() {
                let worked = driven.board.loops.get(loop_id);
                let launched = worked.and_then(|worked| worked.launched.get(attempt));
                let agent = launched.and_then(|one| self.shop.settings.agent(&one.launch.agent));
                agents.extend(agent.filter(|agent| agent.kind != AgentKind::Checks));
            }
        }
        agents
    }

    /// Whether launches may have to wait or be refused. Only then is a start recorded apart from the wish for it.
    pub(super) fn is_rationed(&self) -> bool {
        let settings = &self.shop.settings;
        let bounded = || settings.agents().iter().any(|agent| agent.max_agents.is_some());
        self.is_capped() || settings.agents_per_provider().is_some() || bounded()
    }

    /// Puts on record that an attempt is about to be started, if it is not yet.
    pub(super) fn note_start(&mut self, run: RunId, loop_id: &LoopId, job: &Job) -> Result<(), EngineError> {
        let worked = self.runs.get(&run).and_then(|driven| driven.board.loops.get(loop_id));
        if worked.is_none_or(|worked| worked.launched.contains_key(&job.attempt)) {
            return Ok(());
        }
        let launch = self.launch(run, loop_id, job);
        let started = LoopFact::AttemptStarted { attempt: job.attempt, launch };
        self.append(run, vec![Fact::Loop(loop_id.clone(), started)])
    }

    /// What follows when an agent's provider refused it: somebody falls in, it waits, or it has failed.
    pub(super) fn refused(
        &self,
        run: RunId,
        loop_id: &LoopId,
        attempt: AttemptId,
        refused: Refused,
    ) -> Option<Event> {
        let board = &self.runs.get(&run)?.board;
        let (worked, policy) = (board.loops.get(loop_id)?, board.policy(loop_id)?);
        let is_it = |wish| match wish {
            Effect::Spawn(job) if job.attempt == attempt => Some(job),
            Effect::Spawn(_)
            | Effect::Kill { .. }
            | Effect::Ask(_)
            | Effect::Wait { .. }
            | Effect::AwaitLanding
            | Effect::Finish(_) => None,
        };
        let job = machine::outstanding(&worked.state, policy).into_iter().find_map(is_it)?;
        let settings = &self.shop.settings;
        let assigned = self.who(run, loop_id, &job, 0)?.0;
        let chain = Chain {
            stand_ins: settings.stand_ins(&assigned).len(),
            now: clock::now(),
            backoff: settings.limits().backoff,
            chance: chance(),
        };
        Some(machine::refused(&worked.state, attempt, refused, &chain, policy))
    }
}

/// Any number. Without randomness all come back at the same time, which is no reason to stop.
fn chance() -> u32 {
    getrandom::u32().unwrap_or_default()
}
