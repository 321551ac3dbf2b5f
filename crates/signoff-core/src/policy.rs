//! The policy of gates: what follows from a verdict.
//!
//! A policy is data; [`crate::machine`] acts on it. Every repetition has its own limit here, and reaching a limit is
//! never a success.

mod budget;
mod limits;

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use budget::{BindingCap, Budget, BudgetResource, CapOwner, Caps, ResourceAmounts, binding_cap};
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
        matches!(self, Self::Proceed | Self::Ask)
    }

    /// Whether it can lead back to an earlier phase.
    pub fn may_restart(self) -> bool {
        matches!(self, Self::Restart | Self::Ask)
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
    pub on_unclear: EscalationPolicy,
    pub on_reviewer_failure: EscalationPolicy,
    pub on_fixer_failure: EscalationPolicy,
    pub on_implementer_failure: EscalationPolicy,
    pub on_discussion: EscalationPolicy,
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

/// What to do about one failure.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
    strum::EnumString,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum FailureAction {
    // Ordered by weight: if reviewers of one panel lead to different rungs, the heaviest counts.
    /// Start the same job again.
    Retry,
    /// Use up the attempt and start the next one.
    NextAttempt,
    /// Give the raw text to the fixer.
    RequestChanges,
    /// Count the cycle as failed.
    NotPassed,
    /// Ask a person.
    Ask,
    /// End the loop; after a discussion, wait for people.
    Stop,
    /// End the loop as failed.
    Fail,
}

impl FailureAction {
    pub const ALL: [Self; 7] =
        [Self::Retry, Self::NextAttempt, Self::RequestChanges, Self::NotPassed, Self::Ask, Self::Stop, Self::Fail];

    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Rungs that are tried in turn. The last one applies from then on, except that a last `retry` is followed by `stop`:
/// a retry is one more try, never an endless one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EscalationPolicy(Vec<FailureAction>);

impl EscalationPolicy {
    pub fn new(rungs: &[FailureAction]) -> Self {
        Self(rungs.to_vec())
    }

    pub fn rungs(&self) -> &[FailureAction] {
        &self.0
    }

    /// The rung for a failure after `earlier` failures of the same job.
    pub fn rung(&self, earlier: u32) -> FailureAction {
        match (self.0.get(earlier as usize), self.0.last()) {
            (Some(rung), _) => *rung,
            (None, None | Some(FailureAction::Retry)) => FailureAction::Stop,
            (None, Some(last)) => *last,
        }
    }
}

impl fmt::Display for EscalationPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.0.iter().map(|rung| rung.as_str()).collect();
        f.write_str(&words.join(", "))
    }
}

impl Serialize for EscalationPolicy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [one] => one.serialize(serializer),
            several => several.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for EscalationPolicy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a word or a list of words")]
        enum LadderText {
            One(String),
            Several(Vec<String>),
        }
        let words = match LadderText::deserialize(deserializer)? {
            LadderText::One(word) => vec![word],
            LadderText::Several(words) => words,
        };
        parse_ladder(&words).map_err(serde::de::Error::custom)
    }
}

fn parse_ladder(words: &[String]) -> Result<EscalationPolicy, String> {
    let known = || FailureAction::ALL.map(FailureAction::as_str).join(", ");
    if words.is_empty() {
        return Err(format!("a ladder needs at least one word: {}", known()));
    }
    let rung = |word: &String| word.parse().map_err(|_| format!("unknown word `{word}`, expected one of {}", known()));
    words.iter().map(rung).collect::<Result<_, _>>().map(EscalationPolicy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rungs_are_used_in_turn_and_the_last_one_repeats() {
        let ladder = EscalationPolicy::new(&[FailureAction::Retry, FailureAction::Ask]);
        let words: Vec<_> = (0..4).map(|earlier| ladder.rung(earlier).as_str()).collect();
        assert_eq!(words, ["retry", "ask", "ask", "ask"]);
    }

    #[test]
    fn a_ladder_with_only_retry_ends() {
        let ladder = EscalationPolicy::new(&[FailureAction::Retry, FailureAction::Retry]);
        let words: Vec<_> = (0..4).map(|earlier| ladder.rung(earlier).as_str()).collect();
        assert_eq!(words, ["retry", "retry", "stop", "stop"]);
    }
}
