//! The policy of gates: what follows from a verdict.
//!
//! A policy is data; [`crate::machine`] acts on it. Every repetition has its own limit here, and reaching a limit is
//! never a success.

mod budget;
mod limits;

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use strum::VariantArray;

pub use budget::{BindingCap, BudgetResource, CapOwner, Caps, ResourceAmounts, binding_cap};
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

impl OnFailure {
    /// Whether a fix and another review follow at the same gate.
    pub fn fixes_in_place(self) -> bool {
        self == Self::MiniLoop
    }

    /// Whether it leads back to an earlier phase.
    pub fn restarts(self) -> bool {
        self == Self::Restart
    }

    /// Whether the loop goes on with the findings open.
    pub fn leaves_findings(self) -> bool {
        self == Self::Proceed
    }
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
    /// Whether the loop ends, as `exhausted_as` says.
    pub fn stops(self) -> bool {
        self == Self::Stop
    }

    /// Whether it leads back to an earlier phase without asking.
    pub fn restarts(self) -> bool {
        self == Self::Restart
    }

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

impl ExhaustedAs {
    /// How the loop ends, in a word for people.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Attention => "MAX_CYCLES_REACHED",
            Self::Failed => "failed",
            Self::Stuck => "stuck",
        }
    }
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

impl Gate {
    /// Its escalations for all failures.
    pub fn escalations(&self) -> [&EscalationPolicy; 5] {
        [
            &self.on_unclear,
            &self.on_discussion,
            &self.on_reviewer_failure,
            &self.on_fixer_failure,
            &self.on_implementer_failure,
        ]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantArray, strum::VariantNames)]
#[strum(const_into_str, serialize_all = "lowercase")]
pub enum Effort {
    Low,
    Medium,
    High,
    Max,
}

impl Effort {
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[strum(const_into_str, serialize_all = "kebab-case")]
pub enum FailureAction {
    // Ordered by weight: if the reviewers of one panel lead to different actions, the heaviest counts.
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

/// The failures that a gate has an escalation for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateFailure {
    /// A review that cannot be parsed or asks for a discussion.
    UnclearReview,
    /// A reviewer, or the check, that does not run.
    Reviewer,
    /// An implementer or fixer that fails.
    Writer,
}

/// The way the machine goes on after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureStep {
    /// The same job runs again.
    Retry,
    /// A person decides.
    Ask,
    /// The cycle or attempt counts as failed, and the loop continues.
    NotPassed,
    /// The loop ends.
    End,
}

impl FailureAction {
    pub const ALL: &'static [Self] = Self::VARIANTS;

    pub fn step(self) -> FailureStep {
        match self {
            Self::Retry => FailureStep::Retry,
            Self::Ask => FailureStep::Ask,
            Self::NextAttempt | Self::RequestChanges | Self::NotPassed => FailureStep::NotPassed,
            Self::Stop | Self::Fail => FailureStep::End,
        }
    }

    /// Whether a workflow may name the action for such a failure.
    pub fn applies_to(self, failure: GateFailure) -> bool {
        match self {
            Self::Retry | Self::Ask | Self::Stop | Self::Fail => true,
            Self::NextAttempt => failure == GateFailure::Writer,
            Self::RequestChanges => failure == GateFailure::UnclearReview,
            Self::NotPassed => failure != GateFailure::Writer,
        }
    }
}

impl GateFailure {
    /// The actions that a workflow may name for such a failure.
    pub fn actions(self) -> Vec<&'static str> {
        FailureAction::ALL.iter().filter(|action| action.applies_to(self)).map(|action| action.into_str()).collect()
    }
}

/// Actions that are tried in turn. The last one applies from then on, except that a last `retry` is followed by `stop`:
/// a retry is one more try, never an endless one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EscalationPolicy(Vec<FailureAction>);

impl EscalationPolicy {
    pub fn new(actions: &[FailureAction]) -> Self {
        Self(actions.to_vec())
    }

    pub fn actions(&self) -> &[FailureAction] {
        &self.0
    }

    /// The action for a failure after `earlier` failures of the same job.
    pub fn action(&self, earlier: u32) -> FailureAction {
        match (self.0.get(earlier as usize), self.0.last()) {
            (Some(action), _) => *action,
            (None, None | Some(FailureAction::Retry)) => FailureAction::Stop,
            (None, Some(last)) => *last,
        }
    }
}

impl fmt::Display for EscalationPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let actions: Vec<_> = self.0.iter().map(|action| action.into_str()).collect();
        f.write_str(&actions.join(", "))
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
        #[serde(untagged, expecting = "an action or a list of actions")]
        enum EscalationText {
            One(String),
            Several(Vec<String>),
        }
        let actions = match EscalationText::deserialize(deserializer)? {
            EscalationText::One(action) => vec![action],
            EscalationText::Several(actions) => actions,
        };
        parse_escalation(&actions).map_err(serde::de::Error::custom)
    }
}

fn parse_escalation(actions: &[String]) -> Result<EscalationPolicy, String> {
    let known = || FailureAction::ALL.iter().map(|action| action.into_str()).collect::<Vec<_>>().join(", ");
    if actions.is_empty() {
        return Err(format!("at least one action is required: expected one of {}", known()));
    }
    let parse =
        |action: &String| action.parse().map_err(|_| format!("unknown action `{action}`, expected one of {}", known()));
    actions.iter().map(parse).collect::<Result<_, _>>().map(EscalationPolicy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_used_in_turn_and_the_last_one_repeats() {
        let escalation = EscalationPolicy::new(&[FailureAction::Retry, FailureAction::Ask]);
        let actions: Vec<_> = (0..4).map(|earlier| escalation.action(earlier).into_str()).collect();
        assert_eq!(actions, ["retry", "ask", "ask", "ask"]);
    }

    #[test]
    fn an_escalation_with_only_retry_ends() {
        let escalation = EscalationPolicy::new(&[FailureAction::Retry, FailureAction::Retry]);
        let actions: Vec<_> = (0..4).map(|earlier| escalation.action(earlier).into_str()).collect();
        assert_eq!(actions, ["retry", "retry", "stop", "stop"]);
    }
}
