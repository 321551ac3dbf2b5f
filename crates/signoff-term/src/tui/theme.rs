//! Colours and text styles. Colours are never the only carrier of information.

use ratatui::style::{Color, Modifier, Style};
use signoff_core::ledger::FindingState;
use signoff_core::review::Severity;
use signoff_core::view::{Badge, TaskState};

/// The styles a terminal may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    Color,
    /// Only bold and reversed text: `NO_COLOR`.
    Plain,
}

impl Theme {
    pub(super) fn fg(self, color: Color) -> Style {
        match self {
            Self::Color => Style::new().fg(color),
            Self::Plain => Style::new(),
        }
    }

    pub(super) fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// Secondary text.
    pub(super) fn faint(self) -> Style {
        self.fg(Color::DarkGray)
    }

    pub(super) fn good(self) -> Style {
        self.fg(Color::Green)
    }

    pub(super) fn bad(self) -> Style {
        self.fg(Color::Red)
    }

    pub(super) fn warning(self) -> Style {
        self.fg(Color::Yellow)
    }

    /// The style of a badge. The colour of a finished loop follows from its state: only approved work is green.
    pub(super) fn badge(self, badge: Badge, state: TaskState) -> Style {
        let color = match badge {
            Badge::Wait => Color::DarkGray,
            Badge::Spawn | Badge::Work => Color::Blue,
            Badge::Review => Color::Magenta,
            Badge::Fix => Color::Cyan,
            Badge::Check | Badge::Land => Color::LightBlue,
            Badge::Ask | Badge::Paused => Color::Yellow,
            Badge::Done => done_color(state),
            Badge::Stuck => Color::Red,
        };
        self.fg(color).add_modifier(Modifier::BOLD)
    }

    /// The style of a progress bar, the same for all outcomes.
    pub(super) fn progress(self) -> Style {
        self.fg(Color::Blue)
    }

    /// The style of a severity.
    pub(super) fn severity(self, severity: Severity) -> Style {
        match severity {
            Severity::Critical => self.bad().add_modifier(Modifier::BOLD),
            Severity::Important => self.warning(),
            Severity::Minor => self.faint(),
        }
    }

    /// The style of a finding's state.
    pub(super) fn finding_state(self, state: FindingState) -> Style {
        match state {
            FindingState::Fixed => self.good(),
            FindingState::Open => self.bad(),
            FindingState::Refuted | FindingState::Deferred | FindingState::OutOfScope => self.warning(),
        }
    }

    /// The style of a verdict.
    pub(super) fn verdict(self, word: &str) -> Style {
        match word {
            "approved" | "APPROVED" => self.good(),
            "changes_requested" | "CHANGES_REQUESTED" => self.bad(),
            _ => self.warning(),
        }
    }
}

/// The colour of a loop that has ended by itself.
fn done_color(state: TaskState) -> Color {
    match state {
        TaskState::Approved | TaskState::Landed => Color::Green,
        TaskState::NeedsYou | TaskState::Paused | TaskState::Blocked => Color::Yellow,
        TaskState::Rejected | TaskState::Failed => Color::Red,
        TaskState::Queued
        | TaskState::Working
        | TaskState::Reviewing
        | TaskState::Fixing
        | TaskState::Landing
        | TaskState::Unreviewed
        | TaskState::Cancelled => Color::DarkGray,
    }
}
