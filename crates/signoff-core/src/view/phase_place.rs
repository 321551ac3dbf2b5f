//! How far a task is whose phases people count.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::machine::{Loop, Policy};

/// Which phase of how many, in which iteration of at most how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PhasePlace {
    pub phase: u32,
    pub phases: u32,
    /// How often it has begun at the first phase.
    pub pass: u32,
    pub max_passes: u32,
}

impl PhasePlace {
    /// None where nobody counts the phases. Past the last phase it stands at the last.
    pub fn of(this: &Loop, policy: &Policy) -> Option<Self> {
        let phases = policy.workflow.counted()?;
        let (pass, granted) = (this.at.pass, this.tally.granted.passes);
        Some(Self {
            phase: policy.workflow.number(this.at.phase).min(phases),
            phases,
            pass,
            max_passes: policy.workflow.limits.max_passes.saturating_add(granted).max(pass),
        })
    }
}
