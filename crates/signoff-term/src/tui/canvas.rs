//! Drawing: a rectangle of the screen to which drawing is clipped, and the styles of text.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use signoff_core::ledger::FindingState;
use signoff_core::merge::render::plain_text::visible;
use signoff_core::review::{Severity, VerdictKind};
use signoff_core::view::{Badge, TaskState};

use crate::fit::{columns, truncate};
use crate::review_round::RoundVerdict;

/// Maximum number of characters of an agent's line that are processed; some lines contain whole files.
const MAX_LINE_CHARS: usize = 2_000;

/// Tab width.
const TAB_WIDTH: usize = 4;

/// A rectangle of the screen.
pub struct Canvas<'a> {
    pub buffer: &'a mut Buffer,
    pub area: Rect,
}

impl<'a> Canvas<'a> {
    pub fn new(buffer: &'a mut Buffer, area: Rect) -> Self {
        let area = area.intersection(buffer.area);
        Self { buffer, area }
    }

    pub fn width(&self) -> usize {
        usize::from(self.area.width)
    }

    pub fn height(&self) -> usize {
        usize::from(self.area.height)
    }

    /// Draws one line, if it is within the area.
    pub fn line(&mut self, y: usize, line: &Line<'_>) {
        let Some(y) = u16::try_from(y).ok().filter(|y| *y < self.area.height) else { return };
        if self.area.width > 0 {
            self.buffer.set_line(self.area.x, self.area.y + y, line, self.area.width);
        }
    }

    /// Draws lines from the top.
    pub fn lines<'l>(&mut self, lines: impl IntoIterator<Item = &'l Line<'l>>) {
        let height = self.height();
        lines.into_iter().take(height).enumerate().for_each(|(y, line)| self.line(y, line));
    }

    /// A part with `lines` lines, starting at line `from`.
    pub fn part(&mut self, from: usize, lines: usize) -> Canvas<'_> {
        let (from, lines) = (from.min(self.height()), lines.min(self.height() - from.min(self.height())));
        let area = Rect { y: self.area.y + to_u16(from), height: to_u16(lines), ..self.area };
        Canvas::new(self.buffer, area)
    }

    /// A part with `columns` columns, starting at column `from`.
    pub fn column(&mut self, from: usize, columns: usize) -> Canvas<'_> {
        let (from, columns) = (from.min(self.width()), columns.min(self.width() - from.min(self.width())));
        let area = Rect { x: self.area.x + to_u16(from), width: to_u16(columns), ..self.area };
        Canvas::new(self.buffer, area)
    }
}

/// Converts to a screen coordinate, saturating.
pub fn to_u16(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}

/// Cleans an untrusted line: expands tabs and makes control characters visible. Keeps double spaces.
pub fn sanitize(line: &str) -> String {
    let end = line.char_indices().nth(MAX_LINE_CHARS).map_or(line.len(), |(at, _)| at);
    let line = &line[..end];
    if line.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return line.to_owned();
    }
    let mut cleaned = String::with_capacity(line.len());
    for c in visible(line.trim_end_matches('\r')).chars() {
        match c {
            '\t' => cleaned.extend(std::iter::repeat_n(' ', TAB_WIDTH - columns(&cleaned) % TAB_WIDTH)),
            '\n' => cleaned.push(' '),
            '\u{61c}' | '\u{200e}' | '\u{200f}' => {}
            c => cleaned.push(c),
        }
    }
    cleaned
}

/// A styled span.
pub fn span(text: impl Into<String>, style: Style) -> Span<'static> {
    Span::styled(text.into(), style)
}

/// A line in one style, truncated to `width` columns.
pub fn styled(text: &str, width: usize, style: Style) -> Line<'static> {
    Line::from(span(truncate(text.to_owned(), width), style))
}

/// A line with left- and right-aligned text; only the left part is truncated.
pub fn justified(left: Vec<Span<'static>>, right: Vec<Span<'static>>, width: usize) -> Line<'static> {
    let width_of = |spans: &[Span<'_>]| spans.iter().map(|span| columns(&span.content)).sum::<usize>();
    let taken = width_of(&right);
    if taken > width {
        return Line::from(right);
    }
    let mut room = width - taken;
    let mut spans = Vec::new();
    for part in left {
        let fitting = truncate(part.content.into_owned(), room);
        let used = columns(&fitting);
        spans.push(span(fitting, part.style));
        if used >= room {
            room = 0;
            break;
        }
        room -= used;
    }
    spans.push(Span::raw(" ".repeat(room)));
    spans.extend(right);
    Line::from(spans)
}

/// The styles a terminal may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Theme {
    #[default]
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

    /// The style of a badge. The color of a finished loop follows from its state: only approved work is green.
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
    pub(super) fn verdict(self, verdict: VerdictKind) -> Style {
        match verdict {
            VerdictKind::Approved => self.good(),
            VerdictKind::ChangesRequested => self.bad(),
            VerdictKind::ApprovedWithMinor | VerdictKind::NeedsDiscussion | VerdictKind::Inconclusive => self.warning(),
        }
    }

    /// The style of the verdict of a round.
    pub(super) fn round_verdict(self, verdict: RoundVerdict) -> Style {
        match verdict {
            RoundVerdict::Approved => self.good(),
            RoundVerdict::ChangesRequested => self.bad(),
            RoundVerdict::NeedsDiscussion | RoundVerdict::Inconclusive => self.warning(),
        }
    }
}

/// The color of an ended loop.
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
