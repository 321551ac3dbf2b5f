//! Handles the user's commands and interrupts, and tasks added in watch mode.

use signoff_core::command::{self, LoopCommand};
use signoff_core::ids::{LoopId, RunId};
use signoff_core::machine::Stage;
use signoff_store::CommandRequest;

use super::{ActiveRun, Dispatcher, DispatcherInput, DispatcherNotice, Interrupt, RunLanding, pick};
use crate::error::EngineError;
use crate::executor::AttemptKey;
use crate::{clock, start_run};

impl Dispatcher<'_> {
    /// Executes a command on a loop. Returns why it was refused, if it was.
    pub(super) fn execute(
        &mut self,
        run: RunId,
        loop_id: &LoopId,
        command: LoopCommand,
    ) -> Result<Option<String>, EngineError> {
        let run_state = self.runs.get(&run).map(|active| &active.state);
        let known = run_state.and_then(|run_state| run_state.loops.get(loop_id).zip(run_state.policy(loop_id)));
        let Some((loop_state, policy)) = known else {
            return Ok(Some("there is no such task in this run".to_owned()));
        };
        match command::decide(&loop_state.machine, command, policy) {
            Ok(event) => self.loop_event(run, loop_id, event, Vec::new()).map(|()| None),
            Err(refusal) => Ok(Some(refusal.to_string())),
        }
    }

    /// Handles a decision of the attending user. Another process may have decided first.
    pub(super) fn user_decided(
        &mut self,
        run: RunId,
        loop_id: &LoopId,
        command: LoopCommand,
    ) -> Result<(), EngineError> {
        if let Some(refusal) = self.execute(run, loop_id, command)? {
            self.renderer.show(&DispatcherNotice::Note(&format!("not accepted: {refusal}")));
        }
        Ok(())
    }

    /// Whether the attending user has an open question.
    pub(super) fn awaits_answer(&self) -> bool {
        let asks = |run: RunId, loop_id: &LoopId, stage: &Stage| match stage {
            Stage::Waiting { question, .. } => !self.deferred_questions.contains(&(run, loop_id.clone(), question.id)),
            Stage::Queued
            | Stage::Working { .. }
            | Stage::Researching { .. }
            | Stage::Checking { .. }
            | Stage::Reviewing(_)
            | Stage::Fixing { .. }
            | Stage::Combining { .. }
            | Stage::AwaitingLanding { .. }
            | Stage::Landing { .. }
            | Stage::Done(_) => false,
        };
        let has_question = |(run, active): (&RunId, &ActiveRun)| {
            active.state.loops.iter().any(|(loop_id, loop_state)| asks(*run, loop_id, &loop_state.machine.stage))
        };
        self.options.attended && self.interrupt.is_none() && self.runs.iter().any(has_question)
    }

    /// Checks the store for new requests. Cheap if there are none.
    pub(super) fn poll_store(&mut self) -> Result<(), EngineError> {
        let version = self.store.version()?;
        if version == self.seen_version {
            return Ok(());
        }
        self.seen_version = version;
        let runs: Vec<RunId> = self.runs.keys().copied().collect();
        for run in runs {
            for CommandRequest { id, loop_id, command } in self.store.pending_requests(run)? {
                let refusal = self.execute(run, &loop_id, command)?;
                self.store.answer_request(id, refusal.as_deref())?;
            }
        }
        self.open_for_new_tasks()
    }

    /// In watch mode, opens a run for tasks that were added since.
    fn open_for_new_tasks(&mut self) -> Result<(), EngineError> {
        if !self.options.watch
            || self.interrupt.is_some()
            || pick::ready(&*self.store, &self.options.only, 1)?.is_empty()
        {
            return Ok(());
        }
        let lease = self.store.open_run(clock::now())?;
        let facts = start_run::queue(&self.ctx.settings, self.ctx.jobs, self.options.no_ask)?;
        self.open(lease, facts)
    }
}

impl Dispatcher<'_> {
    pub(super) fn interrupt_requested(&mut self, interrupt: Interrupt) {
        self.summary.interrupted = true;
        self.interrupt = self.interrupt.max(Some(interrupt));
        self.renderer.show(&DispatcherNotice::Stopping);
        match interrupt {
            Interrupt::Finish => self
                .renderer
                .show(&DispatcherNotice::Note("waiting for the running agents; press Ctrl-C again to stop them")),
            Interrupt::Stop | Interrupt::Kill => self.stop_all(interrupt),
        }
    }

    pub(super) fn stop_all(&self, interrupt: Interrupt) {
        self.runs.values().flat_map(ActiveRun::stoppers).for_each(|stopper| interrupt.stop(stopper));
    }

    /// Kills and awaits all agents after an error that ends the run loop.
    pub(super) async fn await_agents(&mut self) {
        while self.runs.values().any(ActiveRun::is_running) {
            let Some(input) = self.inputs.recv().await else { return };
            match input {
                DispatcherInput::Running { stopper, .. } | DispatcherInput::Landing { stopper, .. } => stopper.kill(),
                DispatcherInput::AttemptEnded { attempt: AttemptKey { run, loop_id, attempt }, .. } => {
                    if let Some(active) = self.runs.get_mut(&run) {
                        active.running.remove(&(loop_id, attempt));
                    }
                }
                // The next process finds what landed.
                DispatcherInput::Landed { run, .. } => {
                    if let Some(active) = self.runs.get_mut(&run) {
                        active.landing = RunLanding::Idle;
                    }
                }
                DispatcherInput::WorkspaceCreated { .. }
                | DispatcherInput::OutputLine { .. }
                | DispatcherInput::PauseElapsed { .. }
                | DispatcherInput::Offered { .. }
                | DispatcherInput::ClaimLost { .. }
                | DispatcherInput::Closed { .. }
                | DispatcherInput::Interrupted(_)
                | DispatcherInput::Decided { .. }
                | DispatcherInput::QuestionDeferred { .. }
                | DispatcherInput::Attended(_)
                | DispatcherInput::Note(_)
                | DispatcherInput::TimerFired => {}
            }
        }
    }
}
