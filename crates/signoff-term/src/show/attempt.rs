//! The attempts of a loop: who was started, how it ended, what it used.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use signoff_core::heard::{Trouble, TroubleKind};
use signoff_core::hold::Hold;
use signoff_core::ids::{AttemptId, LoopId};
use signoff_core::machine::{CheckReport, Event, Failure, LandReport, Loss, WorkReport};
use signoff_core::review::{Usage, Verdict};
use signoff_core::view::RunView;
use signoff_core::wire::{Launch, LoopFact, Recorded};

use super::shape::usd;
use crate::fit::{SENTENCE, cut};
use crate::words;

/// How an attempt ends whose program is gone.
const LOST: &str = "lost";

/// One start of one agent, or of something the program does itself.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Attempt {
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
    /// Who held it to what it may write; null for older ones, and for what is no process.
    #[schemars(extend("enum" = ["nobody", "bubblewrap", "landlock", null]))]
    pub hold: Option<&'static str>,
    /// The session of its agent, as that calls it; null while it runs, and where the agent has none.
    pub session: Option<String>,
    /// The attempt whose session it went on with; null where it began anew.
    pub resumes: Option<String>,
    pub started_at: String,
    /// None while it runs, and for one that was stopped.
    pub ended_at: Option<String>,
    /// Null while it runs.
    #[schemars(extend("enum" = [
        "complete", "incomplete", "gave_up", "no_work_left", "passed", "failed", "nothing_to_check", "reviewed", "unclear", "combined",
        "overlapped", "landed", "sent_back", "exit_code", "signal", "timed_out", "silent", "nothing_done", "unusable",
        "bad_answer", "not_started", "agent_trouble", "lost", "interrupted", "session_gone", "rate_limited", "over_budget",
        "stopped", null,
    ]))]
    pub outcome: Option<&'static str>,
    /// What the outcome leaves open: the exit code, the reason it gave up.
    pub detail: Option<String>,
    /// What a person can do about it, where something can be done.
    pub hint: Option<String>,
    /// What else people should know: files a reviewer changed, changes in the checkout.
    pub notes: Vec<String>,
    pub duration_ms: u64,
    pub cost_usd: f64,
    /// The cost is worked out from list prices, at least in part; left out where it is not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cost_is_estimated: bool,
    pub input_tokens: u64,
    pub output_tokens: u64,
}

/// When an attempt started, when and how it ended, and what was noted about it.
#[derive(Default)]
pub(super) struct Times {
    started: Option<Timestamp>,
    /// When it was last heard of, by itself.
    heard: Option<Timestamp>,
    ended: Option<(Timestamp, &'static str, Option<String>)>,
    failure: Option<Failure>,
    notes: Vec<String>,
    session: Option<String>,
}

/// All attempts whose start is on record.
pub(super) fn all(times: &BTreeMap<AttemptId, Times>, loop_id: &LoopId, view: &RunView) -> Vec<Attempt> {
    let none = Times::default();
    let runs = |attempt| view.loop_state(loop_id).is_some_and(|this| this.runs(attempt));
    let attempts = view.attempts(loop_id).into_iter();
    attempts
        .map(|(attempt, launch, usage)| {
            let times = times.get(&attempt).unwrap_or(&none);
            let mut line = Attempt::of(attempt, launch, usage, times);
            if line.outcome.is_none() && !runs(attempt) {
                line.outcome = Some("stopped");
            }
            line
        })
        .collect()
}

/// Notes what a fact says of the attempts of its loop.
pub(super) fn note(all: &mut BTreeMap<AttemptId, Times>, recorded: &Recorded, fact: &LoopFact) {
    match fact {
        LoopFact::AttemptStarted { attempt, .. } => {
            all.entry(*attempt).or_default().started = Some(recorded.at);
        }
        LoopFact::Session { attempt, session } => {
            let times = all.entry(*attempt).or_default();
            (times.session, times.heard) = (Some(session.clone()), Some(recorded.at));
        }
        LoopFact::Noted { attempt, note } => all.entry(*attempt).or_default().notes.push(note.clone()),
        LoopFact::Said { attempt, .. } => all.entry(*attempt).or_default().heard = Some(recorded.at),
        LoopFact::Moved(event) => {
            let (Some(attempt), Some((outcome, detail))) = (event.ends_attempt(), end(event)) else { return };
            // A late report of an attempt that was given up changes nothing.
            let times = all.entry(attempt).or_default();
            if times.ended.is_none() {
                times.ended = Some((recorded.at, outcome, detail));
                times.failure = failure(event).cloned();
            }
        }
        LoopFact::Added { .. }
        | LoopFact::Governed { .. }
        | LoopFact::Placed { .. }
        | LoopFact::CheckpointReviewed { .. }
        | LoopFact::Answered { .. }
        | LoopFact::Used { .. } => {}
    }
}

impl Times {
    /// How long it took. What was lost with its program ended when it was last heard of, not when somebody noticed.
    fn passed(&self) -> Option<SignedDuration> {
        let (noticed, outcome, _) = self.ended.as_ref()?;
        let ended = if *outcome == LOST { self.heard.or(self.started)? } else { *noticed };
        Some(ended.duration_since(self.started?))
    }
}

impl Attempt {
    fn of(attempt: AttemptId, launch: &Launch, usage: Usage, times: &Times) -> Self {
        let ended = times.ended.as_ref();
        let passed = times.passed().and_then(|passed| u64::try_from(passed.as_millis()).ok()).unwrap_or(0);
        Self {
            id: attempt.to_string(),
            role: launch.role.clone(),
            reviewer: launch.reviewer.as_ref().map(ToString::to_string),
            agent: launch.agent.clone(),
            model: launch.model.clone(),
            phase: launch.phase.clone(),
            cycle: launch.cycle,
            hold: launch.hold.map(Hold::word),
            session: times.session.clone(),
            resumes: launch.resumes.as_ref().map(|resumed| resumed.attempt.to_string()),
            started_at: times.started.map(|at| at.to_string()).unwrap_or_default(),
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
}

impl Attempt {
    /// How it ended, in words that fit a line: `reviewed: approved`, `failed: timed out`.
    pub fn ending(&self) -> String {
        let detail = self.detail.as_deref().map(|detail| format!(": {}", cut(detail, SENTENCE)));
        // How it failed is in the detail, in better words.
        let outcome = match self.outcome {
            None => "running".to_owned(),
            Some("exit_code" | "signal" | "timed_out" | "silent" | "not_started" | "agent_trouble") => {
                "failed".to_owned()
            }
            Some(outcome) => outcome.replace('_', " "),
        };
        outcome + &detail.unwrap_or_default()
    }
}

fn failure(event: &Event) -> Option<&Failure> {
    if let Event::AttemptFailed { failure, .. } = event { Some(failure) } else { None }
}

/// How an event ends its attempt, if it does.
fn end(event: &Event) -> Option<(&'static str, Option<String>)> {
    Some(match event {
        Event::WorkEnded { report, .. } => match report {
            WorkReport::Complete { .. } => ("complete", None),
            WorkReport::Incomplete { .. } => ("incomplete", None),
            WorkReport::Stuck { reason, .. } => ("gave_up", Some(reason.clone())),
            WorkReport::NoWorkLeft { .. } => ("no_work_left", None),
        },
        Event::CheckEnded { report, .. } => match report {
            CheckReport::Passed => ("passed", None),
            CheckReport::Failed { .. } => ("failed", None),
            CheckReport::NothingToCheck => ("nothing_to_check", None),
        },
        Event::ReviewArrived { review, .. } => match &review.verdict {
            Verdict::Inconclusive(_) => ("unclear", words::unheard(&review.verdict)),
            Verdict::Approved
            | Verdict::ApprovedWithMinor
            | Verdict::ChangesRequested
            | Verdict::NeedsDiscussion => ("reviewed", Some(review.verdict.word().to_owned())),
        },
        Event::FixesCombined { .. } => ("combined", None),
        Event::FixesOverlapped { .. } => ("overlapped", None),
        Event::LandingEnded { report, .. } => match report {
            LandReport::Landed { commit } => ("landed", Some(commit.to_string())),
            LandReport::SentBack { .. } => ("sent_back", None),
        },
        Event::AttemptFailed { failure, .. } => (failed(failure), Some(words::failure(failure))),
        Event::AttemptLost { loss, .. } => match loss {
            Loss::Crashed => (LOST, None),
            Loss::Interrupted => ("interrupted", None),
            Loss::SessionGone => ("session_gone", None),
        },
        Event::RateLimited { why, .. } => ("rate_limited", why.as_ref().and_then(refusal)),
        Event::BudgetRefused { .. } => ("over_budget", None),
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

/// Why a provider refused somebody, besides that it did.
fn refusal(why: &Trouble) -> Option<String> {
    let is_limited = matches!(why.kind, TroubleKind::Limited { .. });
    let said = if is_limited { why.message.clone() } else { why.to_string() };
    Some(said).filter(|said| !said.is_empty())
}

fn failed(failure: &Failure) -> &'static str {
    match failure {
        Failure::Exit { .. } => "exit_code",
        Failure::Signal { .. } => "signal",
        Failure::TimedOut => "timed_out",
        Failure::Silent => "silent",
        Failure::NothingDone => "nothing_done",
        Failure::Unusable { .. } => "unusable",
        Failure::BadAnswer { .. } => "bad_answer",
        Failure::NotStarted { .. } => "not_started",
        Failure::Trouble(_) => "agent_trouble",
        Failure::RateLimited { .. } => "rate_limited",
    }
}
