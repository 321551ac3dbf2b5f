//! The types of `show --json`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use signoff_core::ids::{AttemptId, ReviewerName};
use signoff_core::ledger::{ClaimKind, DecidedBy, FindingDecision, FindingState, LedgerEntry, RecordedClaim, Round};
use signoff_core::machine::{Policy, ReviewScope};
use signoff_core::merge::MergedReview;
use signoff_core::review::{Confidence, FailThreshold, Finding, Note, Review, Severity, Usage, VerdictKind};

use super::task_history::FinishedRound;
use crate::labels;
use crate::review_round::{RoundVerdict, fail_threshold};
use crate::stats::Convergence;

/// One round of reviews at one gate, or one run of the checks.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Cycle {
    /// The number of the review, counted per gate and pass.
    pub n: u32,
    pub phase: String,
    pub pass: u32,
    #[schemars(with = "String", extend("enum" = ["full", "scoped"]))]
    pub scope: ReviewScope,
    /// The commit that was judged.
    pub commit: String,
    /// When the last review arrived.
    pub ended_at: String,
    /// The result, including findings of earlier cycles.
    #[schemars(with = "String", extend("enum" = ["APPROVED", "CHANGES_REQUESTED", "NEEDS_DISCUSSION", "INCONCLUSIVE"]))]
    pub verdict: RoundVerdict,
    pub reviews: Vec<ReviewReport>,
    #[schemars(schema_with = "crate::json::merged_review")]
    pub merged: MergedReview,
    /// The changes to the list of findings.
    pub convergence: Convergence,
}

impl Cycle {
    pub(super) fn new(finished: &FinishedRound, usage: &BTreeMap<AttemptId, Usage>) -> Self {
        let FinishedRound { round, verdict, at, convergence } = finished;
        let used = |name: &ReviewerName| {
            let attempt = round.attempts.get(name);
            attempt.and_then(|attempt| usage.get(attempt)).copied().unwrap_or_default()
        };
        Self {
            n: round.cycle,
            phase: round.phase.clone(),
            pass: round.at.pass,
            scope: round.scope,
            commit: round.commit.to_string(),
            ended_at: at.clone(),
            verdict: *verdict,
            reviews: round.reviews.iter().map(|(name, review)| ReviewReport::new(review, used(name))).collect(),
            merged: round.merged(),
            convergence: *convergence,
        }
    }
}

/// The review of one reviewer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ReviewReport {
    pub reviewer: String,
    #[schemars(extend("enum" = ["spec", "code", "security", "tests", "general"]))]
    pub kind: &'static str,
    #[schemars(with = "String", extend("enum" = ["approved", "approved_with_minor", "changes_requested", "needs_discussion", "inconclusive"]))]
    pub verdict: VerdictKind,
    /// Why the review is inconclusive.
    pub reason: Option<String>,
    #[schemars(with = "String", extend("enum" = ["high", "medium", "low", "unstated"]))]
    pub confidence: Confidence,
    pub findings: Vec<FindingLine>,
    pub minor: Vec<Note>,
    pub checked: Vec<String>,
    pub summary: String,
    pub follow_up_prompt: Option<String>,
    pub interpreted_intent: Option<String>,
    pub intent_satisfied: Option<bool>,
    /// The file with its raw answer.
    pub raw: Option<String>,
    pub duration_ms: u64,
    pub cost_usd: f64,
    /// At least part of the cost is computed from list prices; omitted if false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cost_is_estimated: bool,
    pub input_tokens: u64,
    pub output_tokens: u64,
}

impl ReviewReport {
    /// `used` is the usage of its attempt, for reviews without usage.
    fn new(review: &Review, used: Usage) -> Self {
        let usage = if review.usage == Usage::default() { used } else { review.usage };
        Self {
            reviewer: review.reviewer.to_string(),
            kind: review.kind.into_str(),
            verdict: VerdictKind::from(&review.verdict),
            reason: labels::inconclusive_reason(&review.verdict),
            confidence: review.confidence,
            findings: review.findings.iter().map(FindingLine::new).collect(),
            minor: review.minor.clone(),
            checked: review.checked.clone(),
            summary: review.summary.clone(),
            follow_up_prompt: review.follow_up_prompt.clone(),
            interpreted_intent: review.interpreted_intent.clone(),
            intent_satisfied: review.intent_satisfied.to_option(),
            raw: review.raw.as_ref().map(ToString::to_string),
            duration_ms: usage.duration_ms,
            cost_usd: usd(usage),
            cost_is_estimated: usage.cost_is_estimated,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
        }
    }
}

/// The cost in dollars, for display only.
pub(crate) fn usd(usage: Usage) -> f64 {
    usage.cost_micro_usd as f64 / 1_000_000.0
}

/// A finding as one reviewer reported it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FindingLine {
    pub id: String,
    pub severity: Severity,
    pub kind: String,
    pub file: Option<String>,
    pub line: Option<u32>,
    pub description: String,
    pub requirement: Option<String>,
    pub suggestion: Option<String>,
    pub sources: Vec<String>,
}

impl FindingLine {
    fn new(finding: &Finding) -> Self {
        Self {
            id: finding.id.to_string(),
            severity: finding.severity,
            kind: finding.kind.clone(),
            file: finding.file.clone(),
            line: finding.line,
            description: finding.description.clone(),
            requirement: finding.requirement.clone(),
            suggestion: finding.suggestion.clone(),
            sources: finding.sources.iter().map(ToString::to_string).collect(),
        }
    }
}

/// The `phase` of a finding that was inherited from an earlier task on the branch.
const EARLIER_TASK: &str = "task";

/// A finding with its history over all cycles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LedgerLine {
    #[serde(flatten)]
    pub finding: FindingLine,
    pub state: FindingState,
    /// Whether it is open and severe enough to block the gate that last reported it.
    pub blocks: bool,
    /// The rounds in which it was reported.
    pub seen: Vec<Sighting>,
    pub decisions: Vec<StateChange>,
    /// Claims of fixers about it, which do not change its state. Omitted if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<ClaimLine>,
}

/// A fixer's claim about a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ClaimLine {
    #[schemars(with = "String", extend("enum" = ["fixed", "refuted", "not_fixed"]))]
    pub claim: ClaimKind,
    pub evidence: String,
    pub attempt: String,
    /// The commit of the fixer.
    pub commit: String,
}

/// One round in which a finding was reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Sighting {
    pub pass: u32,
    /// `landing` for a finding of the merge queue, `checkpoint` for a checkpoint review, `task` for an earlier task
    /// on the same branch.
    pub phase: String,
    /// The number of the review, the checkpoint or the task.
    pub cycle: u32,
    pub commit: Option<String>,
}

/// One change of a finding's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StateChange {
    pub state: FindingState,
    #[schemars(with = "String", extend("enum" = ["reviewer", "person", "check"]))]
    pub by_kind: DeciderKind,
    pub by: String,
    pub commit: Option<String>,
    pub evidence: String,
}

/// Who changed the state of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeciderKind {
    Reviewer,
    Person,
    Check,
}

impl LedgerLine {
    /// Whether an earlier task on the same branch reported it first.
    pub fn is_inherited(&self) -> bool {
        self.seen.first().is_some_and(|seen| seen.phase == EARLIER_TASK)
    }

    pub(super) fn new(entry: &LedgerEntry, policy: &Policy) -> Self {
        let phases = &policy.workflow.phases;
        let phase = |index: usize| phases.get(index).map_or("landing", |phase| &phase.name).to_owned();
        let threshold = entry.seen.last().map_or(FailThreshold::Low, |round| fail_threshold(policy, round.phase));
        let seen = entry.seen.iter().map(|round| Sighting {
            pass: round.pass,
            phase: match (round.task, round.checkpoint) {
                (Some(_), _) => EARLIER_TASK.to_owned(),
                (None, Some(_)) => "checkpoint".to_owned(),
                (None, None) => phase(round.phase),
            },
            cycle: earlier_task(round).or(round.checkpoint).unwrap_or(round.cycle),
            commit: round.commit.as_ref().map(ToString::to_string),
        });
        Self {
            finding: FindingLine::new(&entry.finding),
            state: entry.state,
            blocks: entry.state == FindingState::Open && threshold.is_reached_by(entry.finding.severity),
            seen: seen.collect(),
            decisions: entry.decisions.iter().map(StateChange::new).collect(),
            claims: entry.claims.iter().map(ClaimLine::from_claim).collect(),
        }
    }
}

impl ClaimLine {
    fn from_claim(claim: &RecordedClaim) -> Self {
        Self {
            claim: claim.kind,
            evidence: claim.evidence.clone(),
            attempt: claim.attempt.to_string(),
            commit: claim.commit.to_string(),
        }
    }
}

impl StateChange {
    fn new(decision: &FindingDecision) -> Self {
        let (by_kind, by) = match &decision.by {
            DecidedBy::Reviewer(name) => (DeciderKind::Reviewer, name.to_string()),
            DecidedBy::Person(name) => (DeciderKind::Person, name.clone()),
            DecidedBy::Check(name) => (DeciderKind::Check, name.clone()),
        };
        Self {
            state: decision.state,
            by_kind,
            by,
            commit: decision.commit.as_ref().map(ToString::to_string),
            evidence: decision.evidence.clone(),
        }
    }
}

/// The number of the earlier task that reported it.
fn earlier_task(round: &Round) -> Option<u32> {
    round.task.map(|task| u32::try_from(task.0).unwrap_or(u32::MAX))
}
