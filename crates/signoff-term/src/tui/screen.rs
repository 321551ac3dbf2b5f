//! Layout and drawing of the screen.

use jiff::Timestamp;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::text::Line;
use signoff_core::view::inbox::Attention;

use super::canvas::{Canvas, justified, span, styled};
use super::dialog::{Dialog, draw};
use super::head::{self, Banner};
use super::key_hints::{self, KeyHint};
use super::pane::{OpenLoop, Pane};
use super::row::{RowOrder, TuiRow};
use super::{Tui, TuiMode, list};
use crate::fit::{join, truncate_line};
use crate::progress::DisplaySize;

/// Number of lines of the head, the runs, the details and the keys.
#[derive(Debug, Clone, Copy, Default)]
struct ScreenLayout {
    head: usize,
    runs: usize,
    detail: usize,
    foot: usize,
}

impl ScreenLayout {
    /// Priority on a small screen: rows, keys, head, runs, details.
    fn new(height: usize, runs: usize) -> Self {
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
        let mut canvas = Canvas::new(buffer, area);
        if canvas.area.is_empty() {
            return;
        }
        let chosen_line = if self.opened.is_some() {
            self.draw_loop(&mut canvas, now);
            None
        } else {
            self.draw_list(&mut canvas, now)
        };
        if let Some(dialog) = &self.dialog {
            // On a small screen the question itself names the keys.
            let min_height = if *dialog == Dialog::Question { 8 } else { 4 };
            let foot = usize::from(canvas.height() >= min_height);
            let room = canvas.height() - foot;
            let question = |columns, lines| self.questions.lines(DisplaySize { columns, lines });
            draw(dialog, &mut canvas.part(0, room), chosen_line, self.theme, question);
        }
    }

    /// Draws the list of all loops, and returns the line of the selected one.
    fn draw_list(&mut self, canvas: &mut Canvas<'_>, now: Timestamp) -> Option<usize> {
        let (width, height, theme) = (canvas.width(), canvas.height(), self.theme);
        let runs = self.model.progress(now);
        let layout = ScreenLayout::new(height, runs.len());
        if layout.head == 1 {
            let line = self.head(now, width);
            canvas.line(0, &line);
        }
        for (y, line) in head::run_lines(&runs, layout.runs, theme, width).iter().enumerate() {
            canvas.line(1 + y, line);
        }
        let above = layout.head + layout.runs;
        let rows = height.saturating_sub(above + layout.detail + layout.foot);
        let line = self.list.draw(&mut canvas.part(above, rows), &self.model, theme, now);
        let chosen = self.list.chosen(&self.model).map(|(_, row)| row);
        if let Some(row) = chosen.filter(|_| layout.detail > 0) {
            let lines = list::detail(row, theme, width, layout.detail);
            canvas.part(above + rows, layout.detail).lines(&lines);
        }
        self.draw_foot(canvas, layout.foot);
        line.map(|line| above + line)
    }

    /// The first line; on a narrow screen, only the numbers.
    fn head(&mut self, now: Timestamp, width: usize) -> Line<'static> {
        if width < 50 {
            return styled(&head::short_line(&self.model), width, self.theme.bold());
        }
        let banner =
            Banner { project: &self.project, mode: self.mode, replay: self.replay.as_ref(), theme: self.theme };
        head::line(&banner, &mut self.model, now, width)
    }

    /// Draws the open loop.
    fn draw_loop(&mut self, canvas: &mut Canvas<'_>, now: Timestamp) {
        let (width, height, theme) = (canvas.width(), canvas.height(), self.theme);
        let Some(opened) = &mut self.opened else { return };
        let (head, foot) = (usize::from(height >= 3), usize::from(height >= 4));
        let tabs = usize::from(height >= 5);
        if let Some(row) = self.model.row(&opened.key).filter(|_| head == 1) {
            let elapsed = self.model.elapsed(&opened.key, now);
            let others = self.model.needing_attention() - usize::from(row.rank.needs_a_person());
            canvas.line(0, &title(row, &elapsed, others, theme, width));
        }
        if tabs == 1 {
            canvas.line(1, &opened.tabs(theme, width));
        }
        let body = height.saturating_sub(head + tabs + foot);
        opened.draw(&mut canvas.part(head + tabs, body), &self.model, theme);
        self.draw_foot(canvas, foot);
    }

    /// Draws the last line: a message, or the keys.
    fn draw_foot(&self, canvas: &mut Canvas<'_>, lines: usize) {
        if lines == 0 {
            return;
        }
        let (width, last) = (canvas.width(), canvas.height() - 1);
        let line = if !self.note.is_empty() {
            styled(&truncate_line(&self.note, width), width, self.theme.warning().patch(self.theme.bold()))
        } else if self.shutting_down {
            styled("finishing; Ctrl-C again stops the agents", width, self.theme.warning().patch(self.theme.bold()))
        } else {
            key_hints::line(&self.keys(), self.theme, width)
        };
        canvas.line(last, &line);
    }

    /// Whether postponing this question ends the program: it is the only one, and nothing else is active.
    fn is_last_question(&self) -> bool {
        let running = [RowOrder::Needs(Attention::Paused), RowOrder::AtWork, RowOrder::Waiting];
        let alone = running.into_iter().all(|rank| self.model.count_rank(rank) == 0);
        self.mode == TuiMode::Driving && self.questions.waiting() == 1 && alone
    }

    /// The keys that have an effect now.
    fn keys(&self) -> Vec<KeyHint> {
        match (&self.dialog, &self.opened) {
            (Some(Dialog::Question), _) if self.is_last_question() => key_hints::LAST_QUESTION.to_vec(),
            (Some(dialog), _) => dialog.keys().to_vec(),
            (None, Some(opened)) => pane_keys(opened, self.mode),
            (None, None) if self.mode == TuiMode::Replaying => key_hints::REPLAY.to_vec(),
            (None, None) => key_hints::LIST.to_vec(),
        }
    }
}

/// The keys of a pane. A replay has other keys, because no actions are possible.
fn pane_keys(opened: &OpenLoop, mode: TuiMode) -> Vec<KeyHint> {
    let replay = mode == TuiMode::Replaying;
    let mut keys = if replay { key_hints::OPEN_REPLAY.to_vec() } else { key_hints::OPEN.to_vec() };
    let pane_hints: &[KeyHint] = match opened.pane {
        Pane::Reviews | Pane::Transcript => &key_hints::CYCLES,
        Pane::Findings if !replay => &key_hints::FINDINGS,
        Pane::Findings | Pane::Diff | Pane::Events => &[],
    };
    keys.splice(3..3, pane_hints.iter().copied());
    keys
}

/// `REVIEW  #29 Add user authentication  review 2/3  $0.36  00:41`.
fn title(row: &TuiRow, elapsed: &str, others: usize, theme: super::Theme, width: usize) -> Line<'static> {
    let parts = [row.name.as_str(), &row.position, &row.cost, elapsed];
    let parts = join(parts.map(str::to_owned), "  ");
    let left = vec![
        span(row.badge_label.clone(), theme.badge(row.badge, row.state)),
        span(format!("  {parts}"), theme.bold()),
    ];
    let needs = match others {
        0 => String::new(),
        others => format!(" ! {others} more"),
    };
    justified(left, vec![span(needs, theme.warning())], width)
}
