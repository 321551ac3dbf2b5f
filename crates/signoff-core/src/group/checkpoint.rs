//! Checkpoint rounds: when one loop is due, all active loops are reviewed as they stand.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{RunEffect, Standing};
use crate::ids::LoopId;

/// The round under way: the loops whose review is still out.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Checkpoint {
    out: BTreeSet<LoopId>,
    /// As the round began, so that the wish stays the same while answers come in.
    round: Vec<LoopId>,
}

impl Checkpoint {
    /// Begins a round when a loop is due and none is under way.
    pub fn begin(&mut self, loops: &BTreeMap<LoopId, Standing>) {
        if loops.values().any(|standing| *standing == Standing::AtCheckpoint) {
            self.call(loops);
        }
    }

    /// Begins a round over all active loops, unless one is under way.
    pub fn call(&mut self, loops: &BTreeMap<LoopId, Standing>) {
        if self.out.is_empty() {
            let active = loops.iter().filter(|(_, standing)| standing.is_active());
            self.round = active.map(|(loop_id, _)| loop_id.clone()).collect();
            self.out = self.round.iter().cloned().collect();
        }
    }

    /// A loop's review is in, or the loop ended without one.
    pub fn reviewed(&mut self, loop_id: &LoopId) {
        self.out.remove(loop_id);
        if self.out.is_empty() {
            self.round.clear();
        }
    }

    pub fn waits_for(&self, loop_id: &LoopId) -> bool {
        self.out.contains(loop_id)
    }

    /// The loops of the round under way.
    pub fn round(&self) -> &[LoopId] {
        &self.round
    }

    pub(super) fn wish(&self) -> Option<RunEffect> {
        (!self.out.is_empty()).then(|| RunEffect::ReviewCheckpoint { loops: self.round.clone() })
    }
}
