//! The attempts of a loop: agent, times, outcome and usage.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use signoff_core::agent_output::{AgentError, AgentErrorKind};
use signoff_core::ids::{AttemptId, LoopId};
use signoff_core::machine::{AttemptFailure, AttemptLoss, CheckReport, Event, LandingReport, WorkReport};
use signoff_core::review::{Usage, Verdict};
use signoff_core::sandbox::SandboxBackend;
use signoff_core::view::{AttemptStart, RunState};
use signoff_core::wire::{LoopFact, RecordedFact};

use super::report_types::usd;
use crate::fit::{MAX_SENTENCE_WIDTH, truncate_line};
use crate::labels;

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum AttemptOutcome {
    Complete,
    Incomplete,
    GaveUp,
    NoWorkLeft,
    Passed,
    Failed,
    NothingToCheck,
    Reviewed,
    Unclear,
    Combined,
    Overlapped,
    Landed,
    SentBack,
    ExitCode,
    Signal,
    TimedOut,
    Silent,
    NothingDone,
    Unusable,
    BadAnswer,
    NotStarted,
    AgentTrouble,
    /// Its supervising process is gone.
    Lost,
    Interrupted,
    SessionGone,
    RateLimited,
    OverBudget,
    Stopped,
}

impl AttemptOutcome {
    /// Whether it is a failure. Attempts that a person stopped are not.
    pub fn is_failure(self) -> bool {
        self.is_described_by_detail()
            || matches!(
                self,
                Self::GaveUp
                    | Self::Unclear
                    | Self::NothingDone
                    | Self::Unusable
                    | Self::BadAnswer
                    | Self::Lost
                    | Self::SessionGone
                    | Self::RateLimited
            )
    }

    /// Whether the attempt was cut off, so that its times say nothing about the work.
    pub fn is_cut_off(self) -> bool {
        matches!(self, Self::Lost | Self::Interrupted | Self::Stopped)
    }

    /// Whether the detail describes the failure better than the outcome.
    fn is_described_by_detail(self) -> bool {
        matches!(
            self,
            Self::ExitCode | Self::Signal | Self::TimedOut | Self::Silent | Self::NotStarted | Self::AgentTrouble
        )
    }
}

/// One run of an agent, or of a built-in step.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AttemptRow {
    /// `a1`, `a2`, …: counted per task.
    pub id: String,
    /// `implement`, `fix`, `review`, `check`, …
    pub role: String,
    pub reviewer: Option<String>,
    pub agent: String,
    pub model: Option<String>,
    pub phase: String,
    /// 0 before the first review.
    pub cycle: u32,
    /// The sandbox that restricted its writes; null for old attempts and for steps without a process.
    #[serde(rename = "hold")]
    pub sandbox: Option<SandboxBackend>,
    /// The agent's session id; null while it runs, and for agents without sessions.
    pub session: Option<String>,
    /// The attempt whose session it continued; null if it started a new session.
    pub resumes: Option<String>,
    pub started_at: String,
    /// Null while it runs, and for stopped attempts.
    pub ended_at: Option<String>,
    /// Null while it runs.
    pub outcome: Option<AttemptOutcome>,
    /// Details of the outcome, such as the exit code or the reason the agent gave.
    pub detail: Option<String>,
    /// How to fix the problem, if there is a way.
    pub hint: Option<String>,
    /// Further information, such as files a reviewer changed, or changes in the checkout.
    pub notes: Vec<String>,
    pub duration_ms: u64,
    pub cost_usd: f64,
    /// At least part of the cost is computed from list prices; omitted if false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cost_is_estimated: bool,
    pub input_tokens: u64,
    pub output_tokens: u64,
}

/// End, outcome and notes of an attempt.
#[derive(Clone, Default)]
pub(super) struct AttemptTimes {
    /// Time of its last own output.
    last_seen: Option<Timestamp>,
    ended: Option<(Timestamp, AttemptOutcome, Option<String>)>,
    failure: Option<AttemptFailure>,
    notes: Vec<String>,
    session: Option<String>,
}

/// All attempts with a recorded start.
pub(super) fn reports(
    times: &BTreeMap<AttemptId, AttemptTimes>,
    loop_id: &LoopId,
    state: &RunState,
) -> Vec<AttemptRow> {
    let none = AttemptTimes::default();
    let Some(loop_state) = state.loops.get(loop_id) else { return Vec::new() };
    let attempts = loop_state.attempt_starts.iter();
    attempts
        .map(|(attempt, start)| {
            let usage = loop_state.usage.get(attempt).copied().unwrap_or_default();
            let mut line = AttemptRow::new(*attempt, start, usage, times.get(attempt).unwrap_or(&none));
            if line.outcome.is_none() && !loop_state.machine.runs(*attempt) {
                line.outcome = Some(AttemptOutcome::Stopped);
            }
            line
        })
        .collect()
}

/// Applies an event to the attempts of its loop.
pub(super) fn apply(all: &mut BTreeMap<AttemptId, AttemptTimes>, recorded: &RecordedFact, fact: &LoopFact) {
    match fact {
        LoopFact::Session { attempt, session } => {
            let times = all.entry(*attempt).or_default();
            (times.session, times.last_seen) = (Some(session.clone()), Some(recorded.at));
        }
        LoopFact::Noted { attempt, note } => all.entry(*attempt).or_default().notes.push(note.clone()),
        LoopFact::AgentOutput { attempt, .. } => all.entry(*attempt).or_default().last_seen = Some(recorded.at),
        LoopFact::Transitioned(event) => {
            let (Some(attempt), Some((outcome, detail))) = (event.ends_attempt(), outcome(event)) else {
                return;
            };
            // Ignore a late report of an attempt that has already ended.
            let times = all.entry(attempt).or_default();
            if times.ended.is_none() {
                times.ended = Some((recorded.at, outcome, detail));
                if let Event::AttemptFailed { failure, .. } = event {
                    times.failure = Some(failure.clone());
                }
            }
        }
        LoopFact::Added { .. }
        | LoopFact::AttemptStarted { .. }
        | LoopFact::PolicySet { .. }
        | LoopFact::WorkspaceCreated { .. }
        | LoopFact::CheckpointReviewed { .. }
        | LoopFact::Answered { .. }
        | LoopFact::Used { .. } => {}
    }
}

impl AttemptTimes {
    /// The duration. A lost attempt ended with its last output, not when the loss was noticed.
    fn duration(&self, started: Timestamp) -> Option<SignedDuration> {
        let (noticed, outcome, _) = self.ended.as_ref()?;
        let ended = if *outcome == AttemptOutcome::Lost { self.last_seen.unwrap_or(started) } else { *noticed };
        Some(ended.duration_since(started))
    }
}

impl AttemptRow {
    fn new(attempt: AttemptId, start: &AttemptStart, usage: Usage, times: &AttemptTimes) -> Self {
        let launch = &start.launch;
        let ended = times.ended.as_ref();
        let passed = times.duration(start.at).and_then(|passed| u64::try_from(passed.as_millis()).ok()).unwrap_or(0);
        Self {
            id: attempt.to_string(),
            role: launch.role.clone(),
            reviewer: launch.reviewer.as_ref().map(ToString::to_string),
            agent: launch.agent.clone(),
            model: launch.model.clone(),
            phase: launch.phase.clone(),
            cycle: launch.cycle,
            sandbox: launch.sandbox,
            session: times.session.clone(),
            resumes: launch.resumes.as_ref().map(|resumed| resumed.attempt.to_string()),
            started_at: start.at.to_string(),
            ended_at: ended.map(|(at, ..)| at.to_string()),
            outcome: ended.map(|(_, outcome, _)| *outcome),
            detail: ended.and_then(|(.., detail)| detail.clone()),
            hint: times.failure.as_ref().and_then(|failure| failure.hint(launch)),
            notes: times.notes.clone(),
            duration_ms: if usage.duration_ms == 0 { passed } else { usage.duration_ms },
            cost_usd: usd(usage),
            cost_is_estimated: usage.cost_is_estimated,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
        }
    }

    /// `review by code`.
    pub fn role_and_reviewer(&self) -> String {
        let reviewer = self.reviewer.as_ref().map(|name| format!(" by {name}")).unwrap_or_default();
        format!("{}{reviewer}", self.role)
    }

    /// `claude opus`; without a configured model, it ends with a space.
    pub fn agent_and_model(&self) -> String {
        format!("{} {}", self.agent, self.model.as_deref().unwrap_or_default())
    }

    /// The outcome as a short text: `reviewed: approved`, `failed: timed out`.
    pub fn ending(&self) -> String {
        let detail = self.detail.as_deref().map(|detail| format!(": {}", truncate_line(detail, MAX_SENTENCE_WIDTH)));
        let outcome = match self.outcome {
            None => "running".to_owned(),
            Some(outcome) if outcome.is_described_by_detail() => "failed".to_owned(),
            Some(outcome) => outcome.into_str().replace('_', " "),
        };
        outcome + &detail.unwrap_or_default()
    }
}

/// The outcome and detail of an event that ends an attempt.
fn outcome(event: &Event) -> Option<(AttemptOutcome, Option<String>)> {
    Some(match event {
        Event::WorkEnded { report, .. } => match report {
            WorkReport::Complete { .. } => (AttemptOutcome::Complete, None),
            WorkReport::Incomplete { .. } => (AttemptOutcome::Incomplete, None),
            WorkReport::Stuck { reason, .. } => (AttemptOutcome::GaveUp, Some(reason.clone())),
            WorkReport::NoWorkLeft { .. } => (AttemptOutcome::NoWorkLeft, None),
        },
        Event::CheckEnded { report, .. } => match report {
            CheckReport::Passed => (AttemptOutcome::Passed, None),
            CheckReport::Failed { .. } => (AttemptOutcome::Failed, None),
            CheckReport::NothingToCheck => (AttemptOutcome::NothingToCheck, None),
        },
        Event::ReviewArrived { review, .. } => match &review.verdict {
            Verdict::Inconclusive(_) => (AttemptOutcome::Unclear, labels::inconclusive_reason(&review.verdict)),
            Verdict::Approved | Verdict::ApprovedWithMinor | Verdict::ChangesRequested | Verdict::NeedsDiscussion => {
                (AttemptOutcome::Reviewed, Some(review.verdict.into_str().to_owned()))
            }
        },
        Event::FixesCombined { .. } => (AttemptOutcome::Combined, None),
        Event::FixesOverlapped { .. } => (AttemptOutcome::Overlapped, None),
        Event::LandingEnded { report, .. } => match report {
            LandingReport::Landed { commit } => (AttemptOutcome::Landed, Some(commit.to_string())),
            LandingReport::SentBack { .. } => (AttemptOutcome::SentBack, None),
        },
        Event::AttemptFailed { failure, .. } => (failure_outcome(failure), Some(labels::failure(failure))),
        Event::AttemptLost { loss, .. } => match loss {
            AttemptLoss::Crashed => (AttemptOutcome::Lost, None),
            AttemptLoss::Interrupted => (AttemptOutcome::Interrupted, None),
            AttemptLoss::SessionGone => (AttemptOutcome::SessionGone, None),
        },
        Event::RateLimited { error: why, .. } => (AttemptOutcome::RateLimited, why.as_ref().and_then(limit_detail)),
        Event::BudgetRefused { .. } => (AttemptOutcome::OverBudget, None),
        Event::BaseSet { .. }
        | Event::FindingsInherited { .. }
        | Event::Started { .. }
        | Event::Imported { .. }
        | Event::ItemsPlanned { .. }
        | Event::FindingsClaimed { .. }
        | Event::BudgetReached
        | Event::Resumed { .. }
        | Event::CheckpointBegan { .. }
        | Event::CheckpointEnded { .. }
        | Event::LandingGranted
        | Event::HeadMoved { .. }
        | Event::PersonAnswered { .. }
        | Event::PersonRetried { .. }
        | Event::PersonEdited { .. }
        | Event::FindingDecided { .. }
        | Event::Cancelled { .. } => return None,
    })
}

/// The provider's message about a rate limit, if it says more than that there is one.
fn limit_detail(why: &AgentError) -> Option<String> {
    let is_limited = matches!(why.kind, AgentErrorKind::RateLimited { .. });
    let detail = if is_limited { why.message.clone() } else { why.to_string() };
    Some(detail).filter(|detail| !detail.is_empty())
}

fn failure_outcome(failure: &AttemptFailure) -> AttemptOutcome {
    match failure {
        AttemptFailure::Exit { .. } => AttemptOutcome::ExitCode,
        AttemptFailure::Signal { .. } => AttemptOutcome::Signal,
        AttemptFailure::TimedOut => AttemptOutcome::TimedOut,
        AttemptFailure::Silent => AttemptOutcome::Silent,
        AttemptFailure::NothingDone => AttemptOutcome::NothingDone,
        AttemptFailure::Unusable { .. } => AttemptOutcome::Unusable,
        AttemptFailure::BadAnswer { .. } => AttemptOutcome::BadAnswer,
        AttemptFailure::NotStarted { .. } => AttemptOutcome::NotStarted,
        AttemptFailure::Agent(_) => AttemptOutcome::AgentTrouble,
        AttemptFailure::RateLimited { .. } => AttemptOutcome::RateLimited,
    }
}
