//! What follows from a verdict: the words a gate is configured with.
//!
//! A policy only says; [`crate::machine`] acts on it. Every repetition has a bound of its own here, and
//! none of them ends as a success.

mod budget;
mod duration;
mod effort;
mod ladder;
mod limits;

use serde::{Deserialize, Serialize};

pub use budget::{Budget, Caps, Refusal, Reservation};
pub use duration::Span;
pub use effort::Effort;
pub use ladder::{Ladder, Rung};
pub use limits::{Bound, Count, Limits};

use crate::ids::ReviewerName;
use crate::prompt::Depth;
use crate::review::Bar;

/// What happens when a gate finds something at or above its bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// Fix and review again, here.
    MiniLoop,
    /// Begin the next pass.
    Restart,
    /// Note the findings and go on.
    Proceed,
    /// End the loop.
    Stop,
}

/// What happens when a gate's own bound is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnExhausted {
    Stop,
    Ask,
    Restart,
    Proceed,
}

/// What a loop that stops at a bound is called. None of the words is a success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExhaustedAs {
    /// Completed, but somebody should look: `MAX_CYCLES_REACHED` where the cycles are used up.
    Attention,
    Failed,
    Stuck,
}

/// What a re-review looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rereview {
    /// The whole diff, every time.
    Full,
    /// The open findings and the fix; once that passes, one full review confirms it.
    Scoped,
}

/// The policy of one gate.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Gate {
    /// A gate that is off lets work through unreviewed, and the outcome says so.
    pub enabled: bool,
    pub reviewers: Vec<ReviewerName>,
    pub fail_on: Bar,
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
    /// Whether an answer without the nonce is refused; none: where the agent's kind is known and the contract has a place
    /// for it.
    #[serde(default)]
    pub require_nonce: Option<bool>,
    pub review_timeout: Option<Span>,
    pub fix_timeout: Option<Span>,
    pub rereview: Rereview,
    pub depth: Depth,
    /// In how many rounds one finding may be reported before the loop is called stuck on it.
    pub max_same_finding: Option<u32>,
    /// How many fixes in a row may change nothing.
    pub max_noop_fixes: Option<u32>,
}
