//! What is drawn where.

use jiff::Timestamp;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::text::Line;

use super::dialog::{Dialog, lay};
use super::head::{self, Banner};
use super::keys::{self, Key};
use super::list;
use super::pane::{Opened, Pane};
use super::row::{Rank, Row};
use super::sheet::{Sheet, ends, span, styled};
use super::{Mode, Tui};
use crate::fit::cut;
use crate::progress::Room;

/// How many lines the head, the details and the keys take, where there is room for them.
#[derive(Debug, Clone, Copy, Default)]
struct Plan {
    head: usize,
    runs: usize,
    detail: usize,
    foot: usize,
}

impl Plan {
    /// The rows come first, then the keys, then the head, then the runs, then the details.
    fn of(height: usize, runs: usize) -> Self {
        Self {
            head: usize::from(height >= 2),
            runs: if height >= 10 { runs.min(height / 6) } else { 0 },
            detail: match height {
                0..16 => 0,
                16..22 => 3,
                _ => 4,
            },
            foot: usize::from(height >= 4),
        }
    }
}

impl Tui {
    pub fn draw(&mut self, frame: &mut Frame<'_>, now: Timestamp) {
        self.refresh();
        (self.dirty, self.drawn_at) = (false, Some(now));
        let area = frame.area();
        self.paint(frame.buffer_mut(), area, now);
    }

    fn paint(&mut self, buffer: &mut Buffer, area: ratatui::layout::Rect, now: Timestamp) {
        let mut sheet = Sheet::new(buffer, area);
        if sheet.area.is_empty() {
            return;
        }
        let chosen_line = if self.opened.is_some() {
            self.one(&mut sheet, now);
            None
        } else {
            self.all(&mut sheet, now)
        };
        if let Some(dialog) = &self.dialog {
            // A question says itself which keys answer it, where there is no room for more.
            let least = if *dialog == Dialog::Question { 8 } else { 4 };
            let kept = usize::from(sheet.height() >= least);
            let room = sheet.height() - kept;
            let asked = |columns, lines| self.dialogue.lines(Room { columns, lines });
            lay(dialog, &mut sheet.part(0, room), chosen_line, self.ink, asked);
        }
    }

    /// Draws the list of all loops, and returns the line of the chosen one.
    fn all(&mut self, sheet: &mut Sheet<'_>, now: Timestamp) -> Option<usize> {
        let (width, height, ink) = (sheet.width(), sheet.height(), self.ink);
        let runs = self.fold.progress(now);
        let plan = Plan::of(height, runs.len());
        if plan.head == 1 {
            let line = self.head(now, width);
            sheet.line(0, &line);
        }
        for (y, line) in head::runs(&runs, plan.runs, ink, width).iter().enumerate() {
            sheet.line(1 + y, line);
        }
        let above = plan.head + plan.runs;
        let rows = height.saturating_sub(above + plan.detail + plan.foot);
        let line = self.list.draw(&mut sheet.part(above, rows), &self.fold, ink, now);
        let chosen = self.list.chosen(&self.fold).map(|(_, row)| row);
        if let Some(row) = chosen.filter(|_| plan.detail > 0) {
            let lines = list::detail(row, ink, width, plan.detail);
            sheet.part(above + rows, plan.detail).lines(&lines);
        }
        self.foot(sheet, plan.foot);
        line.map(|line| above + line)
    }

    /// The first line; where it is narrow, the numbers alone.
    fn head(&mut self, now: Timestamp, width: usize) -> Line<'static> {
        if width < 50 {
            return styled(&head::short(&self.fold), width, self.ink.bold());
        }
        let banner =
            Banner { project: &self.project, mode: self.mode, pace: self.pace.as_ref(), ink: self.ink };
        head::line(&banner, &mut self.fold, now, width)
    }

    /// One loop.
    fn one(&mut self, sheet: &mut Sheet<'_>, now: Timestamp) {
        let (width, height, ink) = (sheet.width(), sheet.height(), self.ink);
        let Some(opened) = &mut self.opened else { return };
        let (head, foot) = (usize::from(height >= 3), usize::from(height >= 4));
        let tabs = usize::from(height >= 5);
        if let Some(row) = self.fold.row(&opened.key).filter(|_| head == 1) {
            let elapsed = self.fold.elapsed(&opened.key, now);
            let others = self.fold.needing() - usize::from(row.rank.needs_a_person());
            sheet.line(0, &title(row, &elapsed, others, (ink, width)));
        }
        if tabs == 1 {
            sheet.line(1, &opened.tabs(ink, width));
        }
        let body = height.saturating_sub(head + tabs + foot);
        opened.draw(&mut sheet.part(head + tabs, body), &self.fold, ink);
        self.foot(sheet, foot);
    }

    /// The last line: what was to be said, or the keys.
    fn foot(&self, sheet: &mut Sheet<'_>, lines: usize) {
        if lines == 0 {
            return;
        }
        let (width, last) = (sheet.width(), sheet.height() - 1);
        let line = if !self.note.is_empty() {
            styled(&cut(&self.note, width), width, self.ink.warning().patch(self.ink.bold()))
        } else if self.ending {
            styled(
                "finishing; Ctrl-C again stops the agents",
                width,
                self.ink.warning().patch(self.ink.bold()),
            )
        } else {
            keys::line(&self.keys(), self.ink, width)
        };
        sheet.line(last, &line);
    }

    /// Whether the program ends if this question is left for later: it is the only one, and nothing else could go on.
    fn is_last_question(&self) -> bool {
        let goes_on = [Rank::Paused, Rank::AtWork, Rank::Waiting];
        let alone = goes_on.into_iter().all(|rank| self.fold.rank(rank) == 0);
        self.mode == Mode::Driving && self.dialogue.waiting() == 1 && alone
    }

    /// The keys that mean something now.
    fn keys(&self) -> Vec<Key> {
        match (&self.dialog, &self.opened) {
            (Some(Dialog::Question), _) if self.is_last_question() => keys::LAST_QUESTION.to_vec(),
            (Some(dialog), _) => dialog.keys().to_vec(),
            (None, Some(opened)) => of_pane(opened, self.mode),
            (None, None) if self.mode == Mode::Replaying => keys::REPLAY.to_vec(),
            (None, None) => keys::LIST.to_vec(),
        }
    }
}

/// What has happened cannot be decided any more: a replay has keys of its own.
fn of_pane(opened: &Opened, mode: Mode) -> Vec<Key> {
    let replay = mode == Mode::Replaying;
    let mut keys = if replay { keys::OPEN_REPLAY.to_vec() } else { keys::OPEN.to_vec() };
    let own: &[Key] = match opened.pane {
        Pane::Reviews | Pane::Transcript => &keys::CYCLES,
        Pane::Findings if !replay => &keys::FINDINGS,
        Pane::Findings | Pane::Diff | Pane::Events => &[],
    };
    keys.splice(3..3, own.iter().copied());
    keys
}

/// `REVIEW  #29 Add user authentication  review 2/3  $0.36  00:41`.
fn title(row: &Row, elapsed: &str, others: usize, (ink, width): (super::Ink, usize)) -> Line<'static> {
    let parts = [row.name.as_str(), &row.place, &row.cost, elapsed];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let left = vec![
        span(row.word.clone(), ink.badge(row.badge, row.state)),
        span(format!("  {}", parts.join("  ")), ink.bold()),
    ];
    let needs = match others {
        0 => String::new(),
        others => format!(" ! {others} more"),
    };
    ends(left, vec![span(needs, ink.warning())], width)
}
