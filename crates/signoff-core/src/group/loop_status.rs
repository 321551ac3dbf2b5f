//! What a run knows about its loops: the status of each, and the current checkpoint round.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::RunEffect;
use crate::ids::LoopId;
use crate::machine::{Loop, Outcome, PauseReason, Stage};

/// The status of a loop, as far as its run needs it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopStatus {
    Queued,
    Active,
    /// The next attempt waits for a checkpoint review.
    AtCheckpoint,
    /// Waits for a person; other loops continue.
    Waiting,
    /// Signed off; waits for its group.
    Ready,
    Landing,
    Ended(Outcome),
}

impl LoopStatus {
    /// Derives the status from the loop's state. It is never stored separately.
    pub fn for_loop(this: &Loop) -> Self {
        match &this.stage {
            Stage::Queued => Self::Queued,
            Stage::Waiting { .. } => Self::Waiting,
            Stage::AwaitingLanding { .. } if this.checkpoint.is_some() => Self::Active,
            Stage::AwaitingLanding { .. } => Self::Ready,
            Stage::Landing { .. } => Self::Landing,
            Stage::Done(ending) => Self::Ended(ending.outcome.clone()),
            Stage::Working { .. }
            | Stage::Researching { .. }
            | Stage::Checking { .. }
            | Stage::Reviewing(_)
            | Stage::Fixing { .. }
            | Stage::Combining { .. } => {
                let is_due = this.pause_reasons().contains(&PauseReason::Checkpoint);
                if is_due { Self::AtCheckpoint } else { Self::Active }
            }
        }
    }

    /// Whether the loop occupies one of the run's jobs.
    pub fn is_active(&self) -> bool {
        matches!(self, Self::Active | Self::AtCheckpoint)
    }

    /// How the loop ended, if it has.
    pub fn outcome(&self) -> Option<&Outcome> {
        if let Self::Ended(outcome) = self { Some(outcome) } else { None }
    }

    pub fn has_ended(&self) -> bool {
        self.outcome().is_some()
    }

    /// Whether the group no longer waits for this loop: signed off, completed, or cancelled by a person.
    pub fn is_resolved(&self) -> bool {
        match self {
            Self::Ready | Self::Landing => true,
            Self::Ended(outcome) => outcome.is_completed() || *outcome == Outcome::Cancelled,
            Self::Queued | Self::Active | Self::AtCheckpoint | Self::Waiting => false,
        }
    }

    /// Whether the loop ended in a way that only a person can resolve.
    pub fn blocks(&self) -> bool {
        self.has_ended() && !self.is_resolved()
    }
}

/// The current checkpoint round: when one loop is due, all active loops are reviewed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct CheckpointRound {
    /// The loops whose review is pending.
    #[serde(rename = "out")]
    pending: BTreeSet<LoopId>,
    /// All loops of the round, so that the effect stays the same while reviews arrive.
    #[serde(rename = "round")]
    loops: Vec<LoopId>,
}

impl CheckpointRound {
    /// Starts a round if a loop is due and none is under way.
    pub fn start_if_due(&mut self, loops: &BTreeMap<LoopId, LoopStatus>) {
        if loops.values().any(|standing| *standing == LoopStatus::AtCheckpoint) {
            self.start(loops);
        }
    }

    /// Starts a round over all active loops, unless one is under way.
    pub fn start(&mut self, loops: &BTreeMap<LoopId, LoopStatus>) {
        if self.pending.is_empty() {
            let active = loops.iter().filter(|(_, standing)| standing.is_active());
            self.loops = active.map(|(loop_id, _)| loop_id.clone()).collect();
            self.pending = self.loops.iter().cloned().collect();
        }
    }

    /// A loop's review arrived, or the loop ended without one.
    pub fn reviewed(&mut self, loop_id: &LoopId) {
        self.pending.remove(loop_id);
        if self.pending.is_empty() {
            self.loops.clear();
        }
    }

    pub fn waits_for(&self, loop_id: &LoopId) -> bool {
        self.pending.contains(loop_id)
    }

    /// The loops of the current round.
    pub fn loops(&self) -> &[LoopId] {
        &self.loops
    }

    pub(super) fn effect(&self) -> Option<RunEffect> {
        (!self.pending.is_empty()).then(|| RunEffect::ReviewCheckpoint { loops: self.loops.clone() })
    }
}
