//! What follows from a recorded fact.

use std::path::Path;
use std::sync::Arc;

use signoff_core::config::Place;
use signoff_core::group::RunEffect;
use signoff_core::ids::{AttemptId, LoopId, RunId};
use signoff_core::machine::{Again, Effect, Event, Hold, Job, JobKind, Loop, Stage, Subject};
use signoff_core::session::Sessions;
use signoff_core::task::TaskSpec;
use signoff_core::view::Status;
use signoff_core::wire::{Launch, LoopFact};
use signoff_core::workflow::Landing;

use super::queueing::Waiting;
use super::track::Claiming;
use super::{Dispatcher, Driven, Input, Interrupt, Todo};
use crate::assignment::{Assignment, Neighbour, Part};
use crate::board::{Board, Worked};
use crate::clock;
use crate::error::EngineError;
use crate::{attempt, combine, failpoint, landing, place, tracker};

impl Dispatcher<'_> {
    pub(super) fn carry_out_all(&mut self) -> Result<(), EngineError> {
        loop {
            while let Some(todo) = self.next() {
                match todo {
                    Todo::Loop(run, loop_id, effect) => self.loop_effect(run, &loop_id, effect)?,
                    Todo::Run(run, effect) => self.run_effect(run, effect)?,
                }
            }
            self.launch_waiting()?;
            if self.todo.is_empty() {
                return Ok(());
            }
        }
    }

    /// What is to be done; when that is all, what had to wait for a free place.
    fn next(&mut self) -> Option<Todo> {
        self.todo.pop_front().or_else(|| {
            let run =
                if self.interrupt.is_none() && self.room() > 0 { self.deferred.pop_first() } else { None };
            run.map(|run| Todo::Run(run, RunEffect::Pick { wanted: 1 }))
        })
    }

    fn loop_effect(&mut self, run: RunId, loop_id: &LoopId, effect: Effect) -> Result<(), EngineError> {
        match effect {
            Effect::Spawn(job) => return self.spawn(run, loop_id, job),
            Effect::Kill { attempt } => self.stop(run, loop_id, attempt),
            Effect::Wait { hold } => self.wait(run, loop_id, hold),
            Effect::Finish(_) => {
                self.forget(run, loop_id);
                self.forget_homes(run, loop_id);
            }
            // The question is in the log; whoever shows it shows it from there.
            Effect::Ask(_) | Effect::AwaitLanding => {}
        }
        Ok(())
    }

    /// A finished loop needs nothing any more.
    fn forget(&self, run: RunId, loop_id: &LoopId) {
        let board = self.runs.get(&run).map(|driven| &driven.board);
        if let Some(place) = board.and_then(|board| board.loops.get(loop_id)?.place.as_ref()) {
            self.shop.readings.forget(Path::new(&place.worktree));
        }
    }

    /// Nobody goes on with a session of a loop that is done for good, once all of its agents have ended. What failed may be
    /// tried again.
    pub(super) fn forget_homes(&mut self, run: RunId, loop_id: &LoopId) {
        let Some(driven) = self.runs.get(&run) else { return };
        let stage = driven.board.loops.get(loop_id).map(|worked| &worked.state.stage);
        let Some(Stage::Done(ending)) = stage else { return };
        let is_over = match ending.again {
            Again::Nothing | Again::Restart | Again::Land { .. } => true,
            Again::Resume(_) | Again::Fix => false,
        };
        if is_over && !driven.at_work.keys().any(|(other, _)| other == loop_id) {
            let attempts = self.shop.layout.attempts(run, loop_id);
            self.chores.spawn_blocking(move || attempt::home::forget(&attempts));
        }
    }

    fn run_effect(&mut self, run: RunId, effect: RunEffect) -> Result<(), EngineError> {
        match effect {
            RunEffect::Start { loop_id } => {
                self.start(run, loop_id);
                Ok(())
            }
            RunEffect::Pick { .. } => self.pick(run),
            RunEffect::GrantLanding { loop_id } => {
                self.loop_event(run, &loop_id, Event::LandingGranted, Vec::new())
            }
            RunEffect::CloseTask { loop_id } => {
                self.close(run, loop_id);
                Ok(())
            }
            RunEffect::CancelLoop { loop_id } => {
                let event = Event::Cancelled { by: "the run".to_owned() };
                self.loop_event(run, &loop_id, event, Vec::new())
            }
            RunEffect::Prepare => self.prepare(run),
            RunEffect::ReviewCheckpoint { loops } => self.review_checkpoint(run, loops),
            RunEffect::ReviewWhole => self.review_whole(run),
            RunEffect::LandWhole => {
                self.land_whole(run);
                Ok(())
            }
            // What blocks a run is in the log; whoever shows it shows it from there.
            RunEffect::Block { .. } | RunEffect::Finish(_) => Ok(()),
        }
    }

    /// Makes the worktree of a loop, away from the dispatcher.
    pub(super) fn start(&mut self, run: RunId, loop_id: LoopId) {
        if self.interrupt.is_some() {
            return;
        }
        let Some(spec) = self.spec(run, &loop_id) else { return };
        let Some(driven) = self.runs.get(&run) else { return };
        let Some(wish) = place::Wish::of(&driven.board, &loop_id, spec) else { return };
        let path = place::path(&self.shop, &*self.store, &wish);
        if !self.occupy(run, &loop_id, &path) {
            return;
        }
        if let Some(driven) = self.runs.get_mut(&run) {
            driven.placing.insert(loop_id.clone());
        }
        let claiming = self.claiming(run, &loop_id);
        let (shop, store, tell) = (self.shop.clone(), self.store.clone(), self.tell.clone());
        tokio::task::spawn_blocking(move || {
            let after = match claiming.map_or(Ok(Vec::new()), Claiming::claim) {
                Ok(after) => after,
                Err(refused) => {
                    tell.send(*refused).ok();
                    return;
                }
            };
            let result = tracker::come_after(&*store, wish, &after);
            let result = result.and_then(|wish| place::make(&shop, &*store, &wish));
            failpoint::pass("placed");
            tell.send(Input::Placed { run, loop_id, result }).ok();
        });
    }

    /// What the loop is asked to do.
    pub(super) fn spec(&self, run: RunId, loop_id: &LoopId) -> Option<TaskSpec> {
        let board = &self.runs.get(&run)?.board;
        let looked_at = loop_id.of_checkpoint().map(|(of, _)| of);
        let worked = board.loops.get(looked_at.as_ref().unwrap_or(loop_id));
        let Some(task) = worked.and_then(|worked| worked.task) else {
            return board.subject.clone().or_else(|| self.shop.subject.clone());
        };
        board.specs.get(&task).cloned().or_else(|| self.store.task_spec(task).ok().flatten())
    }

    /// The starts that these effects amount to, as they are put on record.
    pub(super) fn launches(
        &self,
        run: RunId,
        loop_id: &LoopId,
        (next, effects): (&Loop, &[Effect]),
        sessions: &Sessions,
    ) -> Vec<LoopFact> {
        // What may have to wait is put on record when it is started.
        if self.interrupt.is_some() || self.is_rationed() {
            return Vec::new();
        }
        let jobs = effects
            .iter()
            .filter_map(|effect| if let Effect::Spawn(job) = effect { Some(job) } else { None });
        jobs.map(|job| LoopFact::AttemptStarted {
            attempt: job.attempt,
            launch: self.launch_now(run, loop_id, job, (next, sessions)),
        })
        .collect()
    }

    /// Who is started. A configuration that names nobody shows when the attempt is carried out.
    pub(super) fn launch(&self, run: RunId, loop_id: &LoopId, job: &Job) -> Launch {
        let worked = self.runs.get(&run).and_then(|driven| driven.board.loops.get(loop_id));
        let Some(worked) = worked else { return self.launch_in_turn(run, loop_id, job, 0) };
        let launch = self.launch_now(run, loop_id, job, (&worked.state, &worked.sessions));
        // What was put on record holds, whatever became known since.
        let recorded = worked.launched.get(&job.attempt).map(|launched| launched.launch.resumes.clone());
        Launch { resumes: recorded.unwrap_or(launch.resumes), ..launch }
    }

    /// The same in a state that is not on record yet.
    fn launch_now(
        &self,
        run: RunId,
        loop_id: &LoopId,
        job: &Job,
        (this, sessions): (&Loop, &Sessions),
    ) -> Launch {
        let launch = self.launch_in_turn(run, loop_id, job, this.turn(job.attempt));
        let by = self.shop.settings.sessions();
        Launch { resumes: sessions.resumed(by, this, job.attempt, &launch.agent), ..launch }
    }

    fn launch_in_turn(&self, run: RunId, loop_id: &LoopId, job: &Job, turn: usize) -> Launch {
        let policy = self.runs.get(&run).and_then(|driven| driven.board.policy(loop_id));
        let phase = policy.and_then(|policy| policy.workflow.phases.get(job.phase));
        let (agent, model) = self.who(run, loop_id, job, turn).unwrap_or_default();
        let phase = phase.map_or("land", |phase| phase.name.as_str()).to_owned();
        let reviewer =
            if let JobKind::Review { reviewer, .. } = &job.kind { Some(reviewer.clone()) } else { None };
        let hold = self.shop.hold(&job.kind, &agent);
        let role = role_word(job).to_owned();
        Launch { agent, model, role, reviewer, phase, cycle: job.cycle, hold, resumes: None }
    }

    /// The agent that has its turn, and its model.
    pub(super) fn who(
        &self,
        run: RunId,
        loop_id: &LoopId,
        job: &Job,
        turn: usize,
    ) -> Option<(String, Option<String>)> {
        let spec = self.spec(run, loop_id).unwrap_or_default();
        let policy = self.runs.get(&run).and_then(|driven| driven.board.policy(loop_id));
        let phase = policy.and_then(|policy| policy.workflow.phases.get(job.phase));
        let place =
            policy.zip(phase).map(|(policy, phase)| Place { workflow: &policy.workflow, phase, task: &spec });
        let settings = &self.shop.settings;
        match (job.role(), place) {
            (Subject::Writer(role), Some(place)) if matches!(job.kind, JobKind::Research { .. }) => {
                settings.researcher_in_turn(role, place, turn).ok().map(|one| (one.agent.name, one.model))
            }
            (Subject::Writer(role), Some(place)) => {
                settings.writer_in_turn(role, place, turn).ok().map(|one| (one.agent.name, one.model))
            }
            (Subject::Reviewer(name), Some(place)) => {
                settings.reviewer_in_turn(&name, place, turn).ok().map(|one| (one.agent.name, one.model))
            }
            (Subject::Writer(_) | Subject::Reviewer(_) | Subject::Program, _) => {
                Some(("checks".to_owned(), None))
            }
        }
    }

    /// Takes the wish for an attempt in: it starts when there is an agent and money for it.
    fn spawn(&mut self, run: RunId, loop_id: &LoopId, job: Job) -> Result<(), EngineError> {
        if self.interrupt.is_some() {
            // It stays outstanding: the next drive starts it.
            return Ok(());
        }
        self.waiting.push_back(Waiting { run, loop_id: loop_id.clone(), job });
        self.launch_waiting()
    }

    /// Starts an attempt.
    pub(super) fn begin(&mut self, run: RunId, loop_id: &LoopId, job: Job) -> Result<(), EngineError> {
        let attempt = job.attempt;
        let Some(task) = self.assignment(run, loop_id, job.clone()) else { return Ok(()) };
        if !self.occupy(run, loop_id, Path::new(&task.place.worktree)) {
            return Ok(());
        }
        self.note_start(run, loop_id, &job)?;
        if let Some(driven) = self.runs.get_mut(&run) {
            driven.at_work.insert((loop_id.clone(), attempt), None);
            driven.apart.extend(place::apart::is_apart(&task).then(|| loop_id.clone()));
        }
        self.summary.agents += usize::from(!matches!(job.kind, JobKind::Land | JobKind::Combine { .. }));
        let task = Arc::new(place::apart::assigned(task));
        let (shop, tell) = (self.shop.clone(), self.tell.clone());
        match task.job.kind {
            JobKind::Land => tokio::spawn(landing::carry_out(shop, task, tell)),
            JobKind::Combine { .. } => tokio::spawn(combine::carry_out(shop, task, tell)),
            JobKind::Work { .. }
            | JobKind::Research { .. }
            | JobKind::Review { .. }
            | JobKind::Check
            | JobKind::Fix { .. } => tokio::spawn(attempt::carry_out(shop, task, tell)),
        };
        Ok(())
    }

    /// Ends what a killed program left half done, from what is on disk.
    pub(super) fn conclude(&mut self, run: RunId, loop_id: &LoopId, job: Job, ended: crate::process::Ended) {
        let attempt = job.attempt;
        let Some(task) = self.assignment(run, loop_id, job) else { return };
        if !self.occupy(run, loop_id, Path::new(&task.place.worktree)) {
            return;
        }
        if let Some(driven) = self.runs.get_mut(&run) {
            driven.at_work.insert((loop_id.clone(), attempt), None);
        }
        let ended = (ended, Vec::new());
        let task = Arc::new(place::apart::assigned(task));
        tokio::spawn(attempt::conclude(self.shop.clone(), task, ended, self.tell.clone()));
    }

    pub(super) fn assignment(&self, run: RunId, loop_id: &LoopId, job: Job) -> Option<Assignment> {
        let spec = self.spec(run, loop_id)?;
        let board = &self.runs.get(&run)?.board;
        let worked = board.loops.get(loop_id)?;
        let launch = self.launch(run, loop_id, &job);
        let part = Part::of(loop_id, worked);
        let about = board.loops.get(part.as_ref().and_then(Part::looks_at).unwrap_or(loop_id))?;
        let whole = matches!(part, Some(Part::Whole));
        let policy = board.policy(loop_id)?.clone();
        let own = policy.workflow.landing != Landing::None;
        Some(Assignment {
            run,
            loop_id: loop_id.clone(),
            task: about.task,
            part,
            spec,
            branch: if whole { run.branch() } else { worked.branch.clone() },
            place: worked.place.clone()?,
            target: own.then(|| run.branch()),
            last_landed: board.last_landed.clone(),
            landing_heads: board.landing_heads(),
            started: about.started.unwrap_or_else(clock::now),
            job,
            launch,
            policy,
            state: worked.state.clone(),
            last_round: worked.last_round.clone(),
            others: neighbours(board, loop_id),
            at_once: self.runs.values().map(at_once).sum::<usize>().max(1),
            stop_marker: board.run_policy().is_some_and(|policy| policy.stop_marker),
            items: worked.tasks.clone(),
            item_began: worked.item_began.clone(),
            researched: worked.researched.clone(),
            refused: worked.refused_again(),
        })
    }

    fn stop(&mut self, run: RunId, loop_id: &LoopId, attempt: AttemptId) {
        let Some(driven) = self.runs.get(&run) else { return };
        if let Some(Some(stopper)) = driven.at_work.get(&(loop_id.clone(), attempt)) {
            match self.interrupt {
                Some(Interrupt::Kill) => stopper.kill(),
                Some(Interrupt::Finish | Interrupt::Stop) | None => stopper.stop(),
            }
        }
    }

    fn wait(&mut self, run: RunId, loop_id: &LoopId, hold: Hold) {
        match hold {
            Hold::RateLimit { until } => {
                let wait = clock::now().duration_until(until).try_into().unwrap_or_default();
                let (tell, loop_id) = (self.tell.clone(), loop_id.clone());
                tokio::spawn(async move {
                    tokio::time::sleep(wait).await;
                    tell.send(Input::Elapsed { run, loop_id, hold }).ok();
                });
            }
            // A cap is raised in the configuration, which the next drive reads; the run's own machine knows when
            // a checkpoint is over.
            Hold::Budget | Hold::Checkpoint => {}
        }
    }
}

/// `SIGNOFF_ROLE`'s word for a job.
pub(crate) fn role_word(job: &Job) -> &'static str {
    match &job.kind {
        JobKind::Work { role, .. } | JobKind::Research { role, .. } | JobKind::Fix { role, .. } => {
            role.word()
        }
        JobKind::Review { .. } => "review",
        JobKind::Check => "check",
        JobKind::Combine { .. } => "combine",
        JobKind::Land => "land",
    }
}

/// How many agents of a run work at once: those that do, and those whose loops are about to.
fn at_once(driven: &Driven) -> usize {
    driven.at_work.len().max(driven.board.machine.active() + driven.board.machine.called.len())
}

/// The loops beside one, as agents are told of them.
fn neighbours(board: &Board, this: &LoopId) -> Vec<Neighbour> {
    let neighbour = |(loop_id, worked): (&LoopId, &Worked)| Neighbour {
        name: loop_id.to_string(),
        status: Status::for_others(&worked.state),
        title: worked.title.clone(),
        iteration: worked.state.tally.iteration,
    };
    let looked_at = this.of_checkpoint().map(|(of, _)| of);
    let beside = |loop_id: &LoopId| loop_id != this && Some(loop_id) != looked_at.as_ref();
    let others = board.loops.iter().filter(|(loop_id, _)| beside(loop_id) && !loop_id.serves_the_run());
    others.map(neighbour).collect()
}
