//! Checkpoint rounds: when one loop is due, all active loops are reviewed.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{LoopStatus, RunEffect};
use crate::ids::LoopId;

/// The current round: the loops whose review is pending.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct CheckpointRound {
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
