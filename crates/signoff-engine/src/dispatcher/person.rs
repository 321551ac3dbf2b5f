//! What a person decides while it runs, here or through another program.

use signoff_core::command::{self, Command};
use signoff_core::ids::{LoopId, RunId};
use signoff_core::machine::Stage;

use super::{Dispatcher, Notice};
use crate::error::EngineError;

impl Dispatcher<'_> {
    /// Records what a person wants of a loop, or says why not.
    pub(super) fn obey(
        &mut self,
        run: RunId,
        loop_id: &LoopId,
        command: Command,
    ) -> Result<Option<String>, EngineError> {
        let board = self.runs.get(&run).map(|driven| &driven.board);
        let known = board.and_then(|board| board.loops.get(loop_id).zip(board.policy(loop_id)));
        let Some((worked, policy)) = known else {
            return Ok(Some("there is no such task in this run".to_owned()));
        };
        match command::decide(&worked.state, command, policy) {
            Ok(event) => self.loop_event(run, loop_id, event, Vec::new()).map(|()| None),
            Err(refusal) => Ok(Some(refusal.to_string())),
        }
    }

    /// The person who sits there decided. Somebody else may have been faster.
    pub(super) fn decided(
        &mut self,
        run: RunId,
        loop_id: &LoopId,
        command: Command,
    ) -> Result<(), EngineError> {
        if let Some(refusal) = self.obey(run, loop_id, command)? {
            self.renderer.take(&Notice::Note(&format!("Not taken in: {refusal}")));
        }
        Ok(())
    }

    /// Whether the person who sits there is being asked something.
    pub(super) fn waits_for_an_answer(&self) -> bool {
        let asks = |(run, loop_id, stage): (RunId, &LoopId, &Stage)| match stage {
            Stage::Waiting { question, .. } => !self.left.contains(&(run, loop_id.clone(), question.id)),
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
        let loops = self.runs.iter().flat_map(|(run, driven)| {
            driven.board.loops.iter().map(|(loop_id, worked)| (*run, loop_id, &worked.state.stage))
        });
        self.drive.attended && self.interrupt.is_none() && loops.into_iter().any(asks)
    }
}
