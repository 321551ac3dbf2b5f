//! What things look like. Every colour goes with a word or a sign, so that nothing is lost without it.

use ratatui::style::{Color, Modifier, Style};
use signoff_core::view::{Badge, TaskState};

/// What a terminal may be given besides text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    Color,
    /// Bold and reversed at most: `NO_COLOR`.
    Plain,
}

impl Ink {
    pub(super) fn of(self, color: Color) -> Style {
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

    /// What is there to be looked up.
    pub(super) fn faint(self) -> Style {
        self.of(Color::DarkGray)
    }

    pub(super) fn good(self) -> Style {
        self.of(Color::Green)
    }

    pub(super) fn bad(self) -> Style {
        self.of(Color::Red)
    }

    pub(super) fn warning(self) -> Style {
        self.of(Color::Yellow)
    }

    /// The style of a badge. The state of the loop decides the colour of a finished one: only approved work is green.
    pub(super) fn badge(self, badge: Badge, state: TaskState) -> Style {
        let color = match badge {
            Badge::Wait => Color::DarkGray,
            Badge::Spawn | Badge::Work => Color::Blue,
            Badge::Review => Color::Magenta,
            Badge::Fix => Color::Cyan,
            Badge::Check | Badge::Land => Color::LightBlue,
            Badge::Ask | Badge::Paused => Color::Yellow,
            Badge::Done => done(state),
            Badge::Stuck => Color::Red,
        };
        self.of(color).add_modifier(Modifier::BOLD)
    }

    /// The style of a progress bar, the same for all outcomes.
    pub(super) fn progress(self) -> Style {
        self.of(Color::Blue)
    }

    /// A finding's severity.
    pub(super) fn severity(self, word: &str) -> Style {
        match word {
            "critical" => self.bad().add_modifier(Modifier::BOLD),
            "important" => self.warning(),
            _ => self.faint(),
        }
    }

    /// A finding's state, or a verdict.
    pub(super) fn verdict(self, word: &str) -> Style {
        match word {
            "approved" | "APPROVED" | "fixed" => self.good(),
            "open" | "changes_requested" | "CHANGES_REQUESTED" => self.bad(),
            _ => self.warning(),
        }
    }
}

/// The colour of a loop that has ended by itself.
fn done(state: TaskState) -> Color {
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
