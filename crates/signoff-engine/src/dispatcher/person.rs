//! Executes commands of the user, from this process or from another one.

use signoff_core::command::{self, LoopCommand};
use signoff_core::ids::{LoopId, RunId};
use signoff_core::machine::Stage;

use super::{Dispatcher, DispatcherNotice};
use crate::error::EngineError;

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
            self.renderer.show(&DispatcherNotice::Note(&format!("Not accepted: {refusal}")));
        }
        Ok(())
    }

    /// Whether the attending user has an open question.
    pub(super) fn awaits_answer(&self) -> bool {
        let asks = |(run, loop_id, stage): (RunId, &LoopId, &Stage)| match stage {
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
        let loops = self.runs.iter().flat_map(|(run, active)| {
            active.state.loops.iter().map(|(loop_id, loop_state)| (*run, loop_id, &loop_state.machine.stage))
        });
        self.drive.attended && self.interrupt.is_none() && loops.into_iter().any(asks)
    }
}
