//! The progress of a task through numbered phases.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::machine::{Loop, Policy};

/// The current phase and iteration, with their totals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseProgress {
    pub phase: u32,
    pub phases: u32,
    /// The number of the iteration, from 1.
    pub pass: u32,
    pub max_passes: u32,
}

impl PhaseProgress {
    /// None if the phases are not numbered. After the last phase it stays at the last.
    pub fn for_loop(this: &Loop, policy: &Policy) -> Option<Self> {
        let phases = policy.workflow.last_number()?;
        let (pass, granted) = (this.at.pass, this.tally.granted.passes);
        Some(Self {
            phase: policy.workflow.number(this.at.phase).min(phases),
            phases,
            pass,
            max_passes: policy.workflow.limits.max_passes.saturating_add(granted).max(pass),
        })
    }
}
