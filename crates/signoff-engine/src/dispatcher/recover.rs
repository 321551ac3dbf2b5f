//! Resumes a run that an earlier process started.

use signoff_core::group;
use signoff_core::ids::{AttemptId, LoopId, RunId};
use signoff_core::machine::{self, AttemptLoss, Effect, Event, Job, JobKind, PauseReason, Policy, Stage};
use signoff_core::wire::{Fact, LoopFact};

use super::{Dispatcher, PendingEffect};
use crate::error::EngineError;
use crate::executor::{AttemptKey, FoundAttempt};

impl Dispatcher<'_> {
    /// Finds out how everything that was running ended, and queues outstanding effects again.
    pub(super) fn recover(&mut self, run: RunId) -> Result<(), EngineError> {
        let loops: Vec<LoopId> = self.runs[&run].state.loops.keys().cloned().collect();
        for loop_id in &loops {
            self.update_policy(run, loop_id)?;
            self.record_base(run, loop_id)?;
            // Recording such a commit queues its effects; nothing else was running.
            if !self.notice_foreign_commits(run, loop_id)? {
                self.recover_loop(run, loop_id)?;
            }
            self.clear_copies(run, loop_id);
            self.forget_homes(run, loop_id);
            self.remove_leftover_worktree(run, loop_id);
            self.find_parallel_worktrees(run, loop_id)?;
        }
        self.mark_claimed_before(run);
        let effects = group::outstanding(&self.runs[&run].state.machine);
        self.pending_effects.extend(effects.into_iter().map(|effect| PendingEffect::Run(run, effect)));
        Ok(())
    }

    /// Removes the copies of reviewers that were killed with the process. Each reviewer gets a new one.
    fn clear_copies(&self, run: RunId, loop_id: &LoopId) {
        let workspace = self.loop_state(run, loop_id).and_then(|loop_state| loop_state.workspace.as_ref());
        if let Some(workspace) = workspace {
            self.backends.workspaces.remove_reviewer_copies(&workspace.worktree);
        }
    }

    /// Updates the policy: whether a user can answer questions depends on this process, not on the last one.
    fn update_policy(&mut self, run: RunId, loop_id: &LoopId) -> Result<(), EngineError> {
        let (Some(loop_state), Some(policy)) = (self.loop_state(run, loop_id), self.policy(run, loop_id)) else {
            return Ok(());
        };
        if loop_state.machine.is_done() || policy.no_ask == self.options.no_ask {
            return Ok(());
        }
        let policy = Policy { no_ask: self.options.no_ask, ..policy.clone() };
        self.append(run, vec![Fact::Loop(loop_id.clone(), LoopFact::PolicySet { policy: Box::new(policy) })])
    }

    /// Records the tree of the base for an unfinished loop whose log lacks it, as logs of earlier versions do. The loop
    /// needs it to detect an empty diff.
    fn record_base(&mut self, run: RunId, loop_id: &LoopId) -> Result<(), EngineError> {
        let Some(loop_state) = self.loop_state(run, loop_id) else { return Ok(()) };
        let unfinished = loop_state.machine.base.is_none() && !loop_state.machine.is_done();
        let workspace = loop_state.workspace.as_ref().filter(|_| unfinished && *loop_id != LoopId::planning());
        let tree = workspace.and_then(|workspace| self.backends.workspaces.tree_of(&workspace.base).ok());
        let Some(tree) = tree else { return Ok(()) };
        self.append(run, vec![Fact::Loop(loop_id.clone(), LoopFact::Transitioned(Event::BaseSet { tree }))])
    }

    /// Detects commits that were made on an idle branch. An approval is for the head, so the machine gets them. Commits
    /// of running attempts are handled when the attempt is recovered.
    fn notice_foreign_commits(&mut self, run: RunId, loop_id: &LoopId) -> Result<bool, EngineError> {
        let Some(loop_state) = self.loop_state(run, loop_id) else { return Ok(false) };
        let idle = match &loop_state.machine.stage {
            Stage::Waiting { .. } | Stage::AwaitingLanding { .. } => true,
            // Only reviewers were running, and their changes are undone.
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
        if !idle || loop_state.branch.is_empty() {
            return Ok(false);
        }
        match self.backends.workspaces.head_of(&loop_state.branch)? {
            Some(head) if head != loop_state.machine.head => {
                self.loop_event(run, loop_id, Event::HeadMoved { head }, Vec::new())?;
                Ok(true)
            }
            Some(_) | None => Ok(false),
        }
    }

    fn recover_loop(&mut self, run: RunId, loop_id: &LoopId) -> Result<(), EngineError> {
        let (Some(loop_state), Some(policy)) = (self.loop_state(run, loop_id), self.policy(run, loop_id)) else {
            return Ok(());
        };
        for effect in machine::outstanding(&loop_state.machine, policy) {
            match effect {
                Effect::Spawn(job) => self.recover_attempt(run, loop_id, job)?,
                // The cap may have been raised.
                Effect::Wait { reason: reason @ PauseReason::Budget } => {
                    if self.over_budget(run, loop_id).is_some() {
                        continue;
                    }
                    self.loop_event(run, loop_id, Event::Resumed { reason }, Vec::new())?;
                }
                Effect::Wait { .. }
                | Effect::AwaitLanding
                | Effect::Ask(_)
                | Effect::Kill { .. }
                | Effect::Finish(_) => {
                    self.pending_effects.push_back(PendingEffect::Loop(run, loop_id.clone(), effect));
                }
            }
        }
        Ok(())
    }

    /// Recovers an attempt: finishes it if it ended, starts it if it never started, and marks it as lost otherwise.
    fn recover_attempt(&mut self, run: RunId, loop_id: &LoopId, job: Job) -> Result<(), EngineError> {
        match self.backends.executor.find(&AttemptKey::new(run, loop_id, job.attempt))? {
            FoundAttempt::NotStarted => self.start_again(run, loop_id, job),
            // Checks of a merge are only valid if the target has not moved since.
            FoundAttempt::Ended(_) if job.kind == JobKind::Land => self.attempt_lost(run, loop_id, job.attempt),
            FoundAttempt::Ended(ended) => {
                self.finish_attempt(run, loop_id, job, *ended);
                Ok(())
            }
            FoundAttempt::Lost => {
                let attempt = job.attempt;
                self.save_work(run, loop_id, job);
                self.attempt_lost(run, loop_id, attempt)
            }
        }
    }

    /// Starts an attempt that was recorded and never started.
    fn start_again(&mut self, run: RunId, loop_id: &LoopId, job: Job) -> Result<(), EngineError> {
        let plan = self.changed_plan(run, loop_id, &job, &[])?;
        if !plan.is_empty() {
            self.append(run, plan.into_iter().map(|fact| Fact::Loop(loop_id.clone(), fact)).collect())?;
        }
        if !self.limits_launches() {
            self.record_start(run, loop_id, &job)?;
        }
        self.pending_effects.push_back(PendingEffect::Loop(run, loop_id.clone(), Effect::Spawn(job)));
        Ok(())
    }

    /// Saves the work of a killed writer.
    fn save_work(&self, run: RunId, loop_id: &LoopId, job: Job) {
        let writes = matches!(job.kind, JobKind::Work { .. } | JobKind::Fix { .. });
        if let Some(spec) = self.attempt_spec(run, loop_id, job).filter(|_| writes) {
            self.backends.executor.save_work(spec);
        }
    }

    fn attempt_lost(&mut self, run: RunId, loop_id: &LoopId, attempt: AttemptId) -> Result<(), EngineError> {
        let start = self.loop_state(run, loop_id).and_then(|loop_state| loop_state.attempt_starts.get(&attempt));
        let key = AttemptKey::new(run, loop_id, attempt);
        let session = start.and_then(|start| self.backends.executor.lost_session(&key, start));
        let session = session.map(|session| LoopFact::Session { attempt, session });
        // The reported usage counts.
        let usage = self.reported_usage(run, loop_id, attempt);
        let before = session.into_iter().chain([LoopFact::Used { attempt, usage }]).collect();
        self.loop_event(run, loop_id, Event::AttemptLost { attempt, loss: AttemptLoss::Crashed }, before)
    }
}
