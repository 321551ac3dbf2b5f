//! The small signs that all pages share: status, verdict, severity, money, time.

use jiff::Timestamp;
use maud::{Markup, html};
use signoff_core::view::{TaskRow, TaskState};
use signoff_term::fit::{cut, span};
use signoff_term::status;

use super::text;
use super::values::Cost;

/// How loud a sign is. Its word says the same: nobody has to see colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Good,
    Bad,
    Warn,
    Busy,
    Quiet,
}

impl Tone {
    pub fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Warn => "warn",
            Self::Busy => "busy",
            Self::Quiet => "quiet",
        }
    }

    /// Only approved work is good.
    pub fn of(state: TaskState) -> Self {
        match state {
            TaskState::Approved | TaskState::Landed => Self::Good,
            TaskState::Failed | TaskState::Rejected => Self::Bad,
            TaskState::NeedsYou | TaskState::Paused | TaskState::Blocked => Self::Warn,
            TaskState::Working | TaskState::Reviewing | TaskState::Fixing | TaskState::Landing => Self::Busy,
            TaskState::Queued | TaskState::Unreviewed | TaskState::Cancelled => Self::Quiet,
        }
    }

    /// Of any of the words that verdicts have.
    pub fn of_verdict(word: &str) -> Self {
        match word.to_ascii_lowercase().as_str() {
            "approved" | "approved_with_minor" => Self::Good,
            "changes_requested" | "max_cycles_reached" => Self::Bad,
            "needs_discussion" | "inconclusive" => Self::Warn,
            _ => Self::Quiet,
        }
    }

    pub fn of_severity(word: &str) -> Self {
        match word {
            "critical" => Self::Bad,
            "important" => Self::Warn,
            _ => Self::Quiet,
        }
    }

    /// Of the state of a finding.
    pub fn of_state(word: &str) -> Self {
        match word {
            "open" => Self::Bad,
            "fixed" => Self::Good,
            _ => Self::Quiet,
        }
    }
}

/// A word in a coloured box.
pub fn chip(tone: Tone, word: &str) -> Markup {
    html! { span class={ "chip " (tone.class()) } { (text::spaced(word)) } }
}

/// The status of a task, with the sign that terminals show.
pub fn badge(task: &TaskRow) -> Markup {
    sign(task.state(), task.status.word())
}

/// A status word with the sign and the colour of a state.
pub fn sign(state: TaskState, word: &str) -> Markup {
    html! {
        span class={ "chip badge " (Tone::of(state).class()) } {
            span aria-hidden="true" { (state.mark()) " " } (text::spaced(word))
        }
    }
}

/// What there is to say of a status besides its word: verdict, cycles, reason.
pub fn standing(task: &TaskRow) -> String {
    let told = status::in_words(task);
    cut(told.strip_prefix(task.status.word()).unwrap_or(&told).trim(), 120)
}

/// `$0.12`, or `~$0.12` where it is worked out from list prices.
pub fn dollars(cost: Cost) -> String {
    format!("{}${:.2}", if cost.is_estimated { "~" } else { "" }, cost.usd)
}

/// What a task cost.
pub fn cost(task: &TaskRow) -> Cost {
    Cost { usd: task.cost_usd, is_estimated: task.cost_is_estimated }
}

/// How long a task took, or takes until now; the script of the page goes on counting what is not over.
pub fn elapsed(task: &TaskRow, now: Timestamp) -> Option<Markup> {
    let started: Timestamp = task.started_at.as_deref()?.parse().ok()?;
    let ended: Option<Timestamp> = task.ended_at.as_deref().and_then(|at| at.parse().ok());
    let took = between(started, ended.unwrap_or(now));
    let goes_on = ended.is_none().then_some(took);
    Some(html! { time datetime={ "PT" (took / 1000) "S" } data-ms=[goes_on] { (span(took)) } })
}

fn between(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.duration_since(from).as_millis()).unwrap_or(0)
}

/// `3m 20s ago`, with the exact time for whoever asks.
pub fn ago(at: &str, now: Timestamp) -> Markup {
    let Ok(time) = at.parse::<Timestamp>() else { return text::line(at) };
    html! { time datetime=(time) title=(time) { (rough(between(time, now))) " ago" } }
}

/// `2026-01-29 10:00:00`.
pub fn moment(at: &str) -> Markup {
    let Ok(time) = at.parse::<Timestamp>() else { return text::line(at) };
    html! { time datetime=(time) { (time.strftime("%Y-%m-%d %H:%M:%S")) } }
}

/// The greatest unit alone.
fn rough(milliseconds: u64) -> String {
    let minutes = milliseconds / 60_000;
    match minutes {
        0 => format!("{}s", milliseconds / 1000),
        1..60 => format!("{minutes}m"),
        60..2880 => format!("{}h", minutes / 60),
        _ => format!("{}d", minutes / 1440),
    }
}
