//! Taking a run up where a program left it, killed or not.

use signoff_core::group;
use signoff_core::ids::{AttemptId, LoopId, RunId};
use signoff_core::machine::{self, Effect, Event, Hold, Job, JobKind, Loss, Policy, Stage};
use signoff_core::wire::{Fact, LoopFact};

use super::{Dispatcher, Todo};
use crate::attempt;
use crate::error::EngineError;
use crate::place::apart;
use crate::process::{self, AttemptDir, Found};

impl Dispatcher<'_> {
    /// Finds out what became of everything that was under way, and wishes again for what is outstanding.
    pub(super) fn recover(&mut self, run: RunId) -> Result<(), EngineError> {
        let loops: Vec<LoopId> = self.runs[&run].board.loops.keys().cloned().collect();
        for loop_id in &loops {
            self.govern(run, loop_id)?;
            self.record_base(run, loop_id)?;
            // What follows from such a commit is wished for when it is recorded; nothing else was under way.
            if !self.notice_foreign_commits(run, loop_id)? {
                self.recover_loop(run, loop_id)?;
            }
            self.clear_copies(run, loop_id);
            self.forget_homes(run, loop_id);
            self.tidy(run, loop_id);
            self.look_for_apart(run, loop_id)?;
        }
        self.remember_called(run);
        let wishes = group::outstanding(&self.runs[&run].board.machine);
        self.todo.extend(wishes.into_iter().map(|effect| Todo::Run(run, effect)));
        Ok(())
    }

    /// The copies of reviewers that were killed together with the program. Whoever is asked again gets a new one.
    fn clear_copies(&self, run: RunId, loop_id: &LoopId) {
        let place = self.runs[&run].board.loops.get(loop_id).and_then(|worked| worked.place.as_ref());
        if let Some(place) = place {
            attempt::copied::clear(&self.shop, &place.worktree);
        }
    }

    /// Whether somebody is there to answer belongs to this drive, not to the one before.
    fn govern(&mut self, run: RunId, loop_id: &LoopId) -> Result<(), EngineError> {
        let board = &self.runs[&run].board;
        let (Some(worked), Some(policy)) = (board.loops.get(loop_id), board.policy(loop_id)) else {
            return Ok(());
        };
        if worked.state.is_done() || policy.no_ask == self.drive.no_ask {
            return Ok(());
        }
        let policy = Policy { no_ask: self.drive.no_ask, ..policy.clone() };
        self.append(run, vec![Fact::Loop(loop_id.clone(), LoopFact::Governed { policy: Box::new(policy) })])
    }

    /// Records the tree of the base for an unfinished loop whose log lacks it, as logs of earlier versions do. The loop needs
    /// it to detect an empty diff.
    fn record_base(&mut self, run: RunId, loop_id: &LoopId) -> Result<(), EngineError> {
        let Some(worked) = self.runs[&run].board.loops.get(loop_id) else { return Ok(()) };
        let unfinished = worked.state.base.is_none() && !worked.state.is_done();
        let place = worked.place.as_ref().filter(|_| unfinished && *loop_id != LoopId::planning());
        let tree = place.and_then(|place| self.shop.repository.tree_of(&place.base).ok());
        let Some(tree) = tree else { return Ok(()) };
        self.append(run, vec![Fact::Loop(loop_id.clone(), LoopFact::Moved(Event::BaseSet { tree }))])
    }

    /// Somebody may have committed to the branch while nobody worked on it. An approval is of the head, so the
    /// machine must know. What an attempt committed that was under way is told when that attempt is looked after.
    fn notice_foreign_commits(&mut self, run: RunId, loop_id: &LoopId) -> Result<bool, EngineError> {
        let board = &self.runs[&run].board;
        let Some(worked) = board.loops.get(loop_id) else { return Ok(false) };
        let idle = match &worked.state.stage {
            Stage::Waiting { .. } | Stage::AwaitingLanding { .. } => true,
            // While it is read, only readers were there, and what they did is undone.
            Stage::Reviewing(_)
            | Stage::Checking { .. }
            | Stage::Queued
            | Stage::Working { .. }
            | Stage::Researching { .. }
            | Stage::Fixing { .. }
            | Stage::Combining { .. }
            | Stage::Landing { .. }
            | Stage::Done(_) => false,
        };
        if !idle || worked.branch.is_empty() {
            return Ok(false);
        }
        match self.shop.repository.head_of(&worked.branch)? {
            Some(head) if head != worked.state.head => {
                self.loop_event(run, loop_id, Event::HeadMoved { head }, Vec::new())?;
                Ok(true)
            }
            Some(_) | None => Ok(false),
        }
    }

    fn recover_loop(&mut self, run: RunId, loop_id: &LoopId) -> Result<(), EngineError> {
        let board = &self.runs[&run].board;
        let (Some(worked), Some(policy)) = (board.loops.get(loop_id), board.policy(loop_id)) else {
            return Ok(());
        };
        let launched = worked.launched.clone();
        for effect in machine::outstanding(&worked.state, policy) {
            match effect {
                Effect::Spawn(job) => {
                    let known = launched.contains_key(&job.attempt);
                    self.recover_attempt(run, loop_id, job, known)?;
                }
                // There may be more money now.
                Effect::Wait { hold: hold @ Hold::Budget } => {
                    if self.over_budget(run, loop_id).is_some() {
                        continue;
                    }
                    self.loop_event(run, loop_id, Event::Resumed { hold }, Vec::new())?;
                }
                Effect::Wait { .. }
                | Effect::AwaitLanding
                | Effect::Ask(_)
                | Effect::Kill { .. }
                | Effect::Finish(_) => {
                    self.todo.push_back(Todo::Loop(run, loop_id.clone(), effect));
                }
            }
        }
        Ok(())
    }

    /// An attempt that ended by itself is not repeated; one that never began begins; any other was lost.
    fn recover_attempt(
        &mut self,
        run: RunId,
        loop_id: &LoopId,
        job: Job,
        known: bool,
    ) -> Result<(), EngineError> {
        let path = self.shop.layout.attempt(run, loop_id, job.attempt);
        // What was never handed to a keeper was never begun.
        if !AttemptDir::new(&path).launch().exists() {
            let plan = self.found_plan(run, loop_id, &job, &[])?;
            if !plan.is_empty() {
                self.append(run, plan.into_iter().map(|fact| Fact::Loop(loop_id.clone(), fact)).collect())?;
            }
            if !known && !self.is_rationed() {
                let launch = self.launch(run, loop_id, &job);
                let started = LoopFact::AttemptStarted { attempt: job.attempt, launch };
                self.append(run, vec![Fact::Loop(loop_id.clone(), started)])?;
            }
            self.todo.push_back(Todo::Loop(run, loop_id.clone(), Effect::Spawn(job)));
            return Ok(());
        }
        let found = process::settle(&AttemptDir::new(&path));
        match found.map_err(|error| EngineError::io("look after the agent of", &path, error))? {
            // What the checks of a merge said holds only for a target that has not moved since.
            Found::Ended(_) if job.kind == JobKind::Land => self.lost(run, loop_id, job.attempt),
            Found::Ended(ended) => {
                self.conclude(run, loop_id, job, ended);
                Ok(())
            }
            Found::Lost => {
                let attempt = job.attempt;
                self.take_back(run, loop_id, job);
                self.lost(run, loop_id, attempt)
            }
        }
    }

    /// What a writer committed before it was killed is kept. What cannot be taken back now is tried again before the
    /// next one begins.
    fn take_back(&self, run: RunId, loop_id: &LoopId, job: Job) {
        let writes = matches!(job.kind, JobKind::Work { .. } | JobKind::Fix { .. });
        if let Some(task) = self.assignment(run, loop_id, job).filter(|_| writes) {
            self.shop.take_back(&apart::assigned(task)).ok();
        }
    }

    fn lost(&mut self, run: RunId, loop_id: &LoopId, attempt: AttemptId) -> Result<(), EngineError> {
        // What it says it used was used.
        let session = self.told_session(run, loop_id, attempt);
        let session = session.map(|session| LoopFact::Session { attempt, session });
        let usage = self.told_usage(run, loop_id, attempt);
        let before = session.into_iter().chain([LoopFact::Used { attempt, usage }]).collect();
        self.loop_event(run, loop_id, Event::AttemptLost { attempt, loss: Loss::Crashed }, before)
    }

    /// Under which name the agent of an attempt that was lost can go on.
    fn told_session(&self, run: RunId, loop_id: &LoopId, attempt: AttemptId) -> Option<String> {
        let launched = self.runs.get(&run)?.board.loops.get(loop_id)?.launched.get(&attempt)?;
        let dir = AttemptDir::new(self.shop.layout.attempt(run, loop_id, attempt));
        let session = attempt::hear_lost(&self.shop, launched, &dir);
        attempt::home::tidy(&self.shop, &launched.launch.agent, &dir);
        session
    }
}
