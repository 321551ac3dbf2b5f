//! The policy of gates: what follows from a verdict.
//!
//! A policy is data; [`crate::machine`] acts on it. Every repetition has its own limit here, and reaching a limit is
//! never a success.

mod budget;
mod ladder;
mod limits;

use serde::{Deserialize, Serialize};

pub use budget::{Budget, CapReached, Caps, Reservation};
pub use ladder::{Ladder, Rung};
pub use limits::{Bound, Count, LoopLimits, TimeSpan};

use crate::ids::ReviewerName;
use crate::prompt::Depth;
use crate::review::FailThreshold;

/// What happens when a gate finds something at or above its threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// Fix and review again at this gate.
    MiniLoop,
    /// Start the next pass.
    Restart,
    /// Record the findings and continue.
    Proceed,
    /// End the loop.
    Stop,
}

/// What happens when a gate's limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnExhausted {
    Stop,
    Ask,
    Restart,
    Proceed,
}

impl OnExhausted {
    /// Whether the gate can be left with open findings.
    pub fn may_leave_findings(self) -> bool {
        match self {
            Self::Proceed | Self::Ask => true,
            Self::Stop | Self::Restart => false,
        }
    }

    /// Whether it can lead back to an earlier phase.
    pub fn may_restart(self) -> bool {
        match self {
            Self::Restart | Self::Ask => true,
            Self::Stop | Self::Proceed => false,
        }
    }
}

/// The outcome of a loop that stops at a limit. None of these is a success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExhaustedAs {
    /// Completed, but needs attention: `MAX_CYCLES_REACHED` if the cycles are used up.
    Attention,
    Failed,
    Stuck,
}

/// The scope of a re-review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RereviewScope {
    /// The whole diff, every time.
    Full,
    /// The open findings and the fix. After that passes, one full review confirms it.
    Scoped,
}

/// The policy of one gate.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Gate {
    /// A disabled gate lets work through unreviewed, and the outcome says so.
    pub enabled: bool,
    pub reviewers: Vec<ReviewerName>,
    pub fail_on: FailThreshold,
    pub on_failure: OnFailure,
    #[serde(flatten)]
    pub bound: Bound,
    pub on_exhausted: OnExhausted,
    pub exhausted_as: ExhaustedAs,
    pub on_unclear: Ladder,
    pub on_reviewer_failure: Ladder,
    pub on_fixer_failure: Ladder,
    pub on_implementer_failure: Ladder,
    pub on_discussion: Ladder,
    pub author_output: bool,
    pub parallel_fixes: bool,
    /// Whether an answer without the nonce is refused. By default, if the agent's kind is known and the contract has
    /// a place for the nonce.
    pub require_nonce: Option<bool>,
    pub review_timeout: Option<TimeSpan>,
    pub fix_timeout: Option<TimeSpan>,
    pub rereview: RereviewScope,
    pub depth: Depth,
    /// The number of rounds in which one finding may be reported before the loop counts as stuck.
    pub max_same_finding: Option<u32>,
    /// The number of consecutive fixes that may change nothing.
    pub max_noop_fixes: Option<u32>,
}

#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
    strum::EnumString,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Effort {
    Low,
    Medium,
    High,
    Max,
}

impl Effort {
    pub const ALL: [Self; 4] = [Self::Low, Self::Medium, Self::High, Self::Max];

    pub fn as_str(self) -> &'static str {
        self.into()
    }

    pub fn parse(word: &str) -> Option<Self> {
        word.parse().ok()
    }

    /// The number of attempts after which all active loops are reviewed, finished or not.
    pub fn checkpoint_interval(self) -> Option<u32> {
        match self {
            Self::Low => None,
            Self::Medium => Some(5),
            Self::High => Some(3),
            Self::Max => Some(1),
        }
    }

    pub fn max_fixes(self) -> u32 {
        match self {
            Self::Low => 2,
            Self::Medium => 3,
            Self::High => 4,
            Self::Max => 5,
        }
    }

    pub fn depth(self) -> Depth {
        match self {
            Self::Low => Depth::Shallow,
            Self::Medium => Depth::Standard,
            Self::High => Depth::Deep,
            Self::Max => Depth::Comprehensive,
        }
    }
}
