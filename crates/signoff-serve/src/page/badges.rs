//! Badges and values that all pages share: status, verdict, severity, cost and time.

use jiff::Timestamp;
use maud::{Markup, html};
use signoff_core::ledger::FindingState;
use signoff_core::review::{Severity, VerdictKind};
use signoff_core::view::{TaskRow, TaskState};
use signoff_term::fit::{self, format_duration, truncate_line};
use signoff_term::show::RoundVerdict;
use signoff_term::status;

use super::text;

/// The colour of a badge. The text of the badge carries the same information.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "lowercase")]
pub enum Tone {
    Good,
    Bad,
    Warn,
    Busy,
    Quiet,
}

impl Tone {
    /// The tone of a task state. Only approved work is good.
    pub fn from_state(state: TaskState) -> Self {
        match state {
            TaskState::Approved | TaskState::Landed => Self::Good,
            TaskState::Failed | TaskState::Rejected => Self::Bad,
            TaskState::NeedsYou | TaskState::Paused | TaskState::Blocked => Self::Warn,
            TaskState::Working | TaskState::Reviewing | TaskState::Fixing | TaskState::Landing => Self::Busy,
            TaskState::Queued | TaskState::Unreviewed | TaskState::Cancelled => Self::Quiet,
        }
    }

    /// The tone of a verdict.
    pub fn from_verdict(verdict: VerdictKind) -> Self {
        match verdict {
            VerdictKind::Approved | VerdictKind::ApprovedWithMinor => Self::Good,
            VerdictKind::ChangesRequested => Self::Bad,
            VerdictKind::NeedsDiscussion | VerdictKind::Inconclusive => Self::Warn,
        }
    }

    /// The tone of the verdict of a round.
    pub fn from_round(verdict: RoundVerdict) -> Self {
        match verdict {
            RoundVerdict::Approved => Self::Good,
            RoundVerdict::ChangesRequested => Self::Bad,
            RoundVerdict::NeedsDiscussion | RoundVerdict::Inconclusive => Self::Warn,
        }
    }

    pub fn from_severity(severity: Severity) -> Self {
        match severity {
            Severity::Critical => Self::Bad,
            Severity::Important => Self::Warn,
            Severity::Minor => Self::Quiet,
        }
    }

    /// The tone of a finding's state.
    pub fn from_finding_state(state: FindingState) -> Self {
        match state {
            FindingState::Open => Self::Bad,
            FindingState::Fixed => Self::Good,
            FindingState::Refuted | FindingState::Deferred | FindingState::OutOfScope => Self::Quiet,
        }
    }
}

/// A coloured label.
pub fn chip(tone: Tone, label: &str) -> Markup {
    html! { span class={ "chip " (tone.into_str()) } { (text::spaced(label)) } }
}

/// The status of a task, with the same mark as in a terminal.
pub fn task_badge(task: &TaskRow) -> Markup {
    state_badge(task.state(), task.status.into_str())
}

/// A status with the mark and colour of a state.
pub fn state_badge(state: TaskState, label: &str) -> Markup {
    html! {
        span class={ "chip badge " (Tone::from_state(state).into_str()) } {
            span aria-hidden="true" { (state.mark()) " " } (text::spaced(label))
        }
    }
}

/// The details of a status: verdict, cycles, reason.
pub fn status_details(task: &TaskRow) -> String {
    let status_text = status::status_line(task);
    truncate_line(status_text.strip_prefix(task.status.into_str()).unwrap_or(&status_text).trim(), 120)
}

/// The duration of a task, until now if it runs. The page's script keeps counting a running one.
pub fn elapsed(task: &TaskRow, now: Timestamp) -> Option<Markup> {
    let started: Timestamp = task.started_at.as_deref()?.parse().ok()?;
    let ended: Option<Timestamp> = task.ended_at.as_deref().and_then(|at| at.parse().ok());
    let duration = between(started, ended.unwrap_or(now));
    let running_ms = ended.is_none().then_some(duration);
    Some(html! { time datetime={ "PT" (duration / 1000) "S" } data-ms=[running_ms] { (format_duration(duration)) } })
}

fn between(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.duration_since(from).as_millis()).unwrap_or(0)
}

/// `3m ago`, with the exact time as a tooltip.
pub fn ago(at: &str, now: Timestamp) -> Markup {
    let Ok(time) = at.parse::<Timestamp>() else { return text::line(at) };
    html! { time datetime=(time) title=(time) { (largest_unit(between(time, now))) " ago" } }
}

/// `2026-01-29 10:00:00`.
pub fn timestamp(at: &str) -> Markup {
    let Ok(time) = at.parse::<Timestamp>() else { return text::line(at) };
    html! { time datetime=(time) { (fit::timestamp(at)) } }
}

/// A duration in its largest unit.
fn largest_unit(milliseconds: u64) -> String {
    let minutes = milliseconds / 60_000;
    match minutes {
        0 => format!("{}s", milliseconds / 1000),
        1..60 => format!("{minutes}m"),
        60..2880 => format!("{}h", minutes / 60),
        _ => format!("{}d", minutes / 1440),
    }
}
