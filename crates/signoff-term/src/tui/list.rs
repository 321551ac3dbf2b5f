//! The list of all loops: what needs a person first, then what is at work, what waits, what is done.

use jiff::Timestamp;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use signoff_core::ids::TaskId;
use signoff_core::wire::QUEUE;

use super::fold::Fold;
use super::ink::Ink;
use super::press::Press;
use super::row::{Row, RowKey};
use super::sheet::{Sheet, span};
use crate::fit::{columns, pad, shorten, wrap};

/// Which row is chosen, and which is drawn first.
#[derive(Debug, Default)]
pub struct List {
    chosen: Option<RowKey>,
    /// Which task that is of, and where it was: a task that is taken up from the queue becomes another row.
    task: Option<TaskId>,
    at: usize,
    /// The task that was chosen and left the queue: it may be on its way into a run. Any step means another one.
    gone: Option<TaskId>,
    top: usize,
    /// How many rows were drawn last: a page.
    page: usize,
}

/// Where a person wants to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
}

/// Keys that go somewhere, wherever they are pressed.
const STEPS: [(Press, Step); 10] = [
    (Press::Up, Step::Up),
    (Press::Char('k'), Step::Up),
    (Press::Down, Step::Down),
    (Press::Char('j'), Step::Down),
    (Press::PageUp, Step::PageUp),
    (Press::PageDown, Step::PageDown),
    (Press::Home, Step::First),
    (Press::Char('g'), Step::First),
    (Press::End, Step::Last),
    (Press::Char('G'), Step::Last),
];

impl Step {
    /// Where a key goes, if it goes anywhere.
    pub fn of(key: Press) -> Option<Self> {
        STEPS.iter().find(|(known, _)| *known == key).map(|(_, step)| *step)
    }

    /// The line that it leads to, with so many on a page; beyond the last one where there are fewer.
    pub fn from(self, at: usize, page: usize) -> usize {
        let page = page.max(1);
        match self {
            Self::Up => at.saturating_sub(1),
            Self::Down => at + 1,
            Self::PageUp => at.saturating_sub(page),
            Self::PageDown => at + page,
            Self::First => 0,
            Self::Last => usize::MAX,
        }
    }
}

impl List {
    /// The row that keys are about. It stays the same one wherever it moves.
    pub fn chosen<'f>(&self, fold: &'f Fold) -> Option<(&'f RowKey, &'f Row)> {
        let key = fold.order().get(self.position(fold))?;
        Some((key, fold.row(key)?))
    }

    fn position(&self, fold: &Fold) -> usize {
        let find = |wanted: &RowKey| fold.order().iter().position(|key| key == wanted);
        let of_task = |task: Option<TaskId>| fold.row_of(task?).and_then(find);
        let back = of_task(self.gone).or_else(|| self.chosen.as_ref().and_then(find));
        let near = || self.at.min(fold.order().len().saturating_sub(1));
        back.or_else(|| of_task(self.task)).unwrap_or_else(near)
    }

    /// Holds on to the row that is shown as chosen.
    pub fn settle(&mut self, fold: &Fold) {
        let at = self.position(fold);
        let key = fold.order().get(at).cloned();
        let task = key.as_ref().and_then(|key| fold.row(key)).and_then(|row| row.task);
        let left =
            self.chosen.as_ref().is_some_and(|chosen| chosen.run == QUEUE && key.as_ref() != Some(chosen));
        match self.gone {
            None if left && task != self.task => self.gone = self.task,
            Some(gone) if task == Some(gone) => self.gone = None,
            Some(_) | None => {}
        }
        (self.chosen, self.task, self.at) = (key, task, at);
    }

    pub fn step(&mut self, step: Step, fold: &Fold) {
        let last = fold.order().len().saturating_sub(1);
        self.at = step.from(self.position(fold), self.page).min(last);
        let key = fold.order().get(self.at);
        self.task = key.and_then(|key| fold.row(key)).and_then(|row| row.task);
        (self.chosen, self.gone) = (key.cloned(), None);
    }

    /// Draws the rows around the chosen one, and returns the line that one is on.
    pub fn draw(&mut self, sheet: &mut Sheet<'_>, fold: &Fold, ink: Ink, now: Timestamp) -> Option<usize> {
        let (height, all) = (sheet.height(), fold.order().len());
        if height == 0 {
            return None;
        }
        let at = self.position(fold);
        self.top = self.top.min(at).max((at + 1).saturating_sub(height)).min(all.saturating_sub(height));
        self.page = height;
        let shown = fold.order().iter().skip(self.top).take(height);
        let shown: Vec<_> = shown.filter_map(|key| Some((fold.row(key)?, fold.elapsed(key, now)))).collect();
        let widths = Widths::of(&shown, sheet.width());
        for (y, (row, elapsed)) in shown.iter().enumerate() {
            let line = widths.line(row, elapsed, self.top + y == at, ink);
            sheet.line(y, &line);
        }
        self.hidden(sheet, all, ink);
        at.checked_sub(self.top).filter(|line| *line < shown.len())
    }

    /// How many rows are above and below: `↑3 ↓42`, in the last column of the first and last line.
    fn hidden(&self, sheet: &mut Sheet<'_>, all: usize, ink: Ink) {
        let (height, width) = (sheet.height(), sheet.width());
        let below = all.saturating_sub(self.top + height);
        let marks = [(0, self.top, '↑'), (height - 1, below, '↓')];
        for (y, number, arrow) in marks.into_iter().filter(|(_, number, _)| *number > 0 && width > 30) {
            let mark = format!(" {arrow}{number}");
            let wide = columns(&mark);
            sheet.column(width - wide, wide).line(y, &Line::from(span(mark, ink.faint())));
        }
    }
}

/// Below so many columns there is no room to mark a row: the chosen one is bold.
const MARKED: usize = 12;

/// How wide the columns are.
struct Widths {
    mark: usize,
    word: usize,
    name: usize,
    place: usize,
    clock: usize,
    cost: usize,
    said: usize,
}

impl Widths {
    /// As wide as the rows need them, as long as that fits. What does not fit is left out from the end.
    fn of(rows: &[(&Row, String)], width: usize) -> Self {
        let widest = |part: &dyn Fn(&(&Row, String)) -> usize| rows.iter().map(part).max().unwrap_or(0);
        let mark = if width < MARKED { 0 } else { 2 };
        let mut left = width - mark;
        let mut take = |wanted: usize, least: usize| {
            let fits = wanted > 0 && left >= least.min(wanted);
            let taken = if fits { wanted.min(left) } else { 0 };
            left = left.saturating_sub(if taken > 0 { taken + 2 } else { 0 });
            taken
        };
        let word = take(widest(&|(row, _)| columns(&row.word)).max(6), 1);
        let name = take(widest(&|(row, _)| columns(&row.name)).min((width * 3 / 10).max(16)), 4);
        let place = take(widest(&|(row, _)| columns(&row.place)).min((width / 4).max(10)), 6);
        let clock = take(widest(&|(_, elapsed)| columns(elapsed)), 5);
        let cost = take(widest(&|(row, _)| columns(&row.cost)), 5);
        let said = take(width, 8);
        Self { mark, word, name, place, clock, cost, said: said.min(width) }
    }

    fn line(&self, row: &Row, elapsed: &str, chosen: bool, ink: Ink) -> Line<'static> {
        let base = if chosen { ink.bold() } else { Style::new() };
        let mark = if chosen { "> " } else { "  " };
        // The beginning of a badge says more than a sign that it is cut.
        let badge: String = row.word.chars().take(self.word).collect();
        let right =
            |text: &str, width: usize| format!("{}{text}", " ".repeat(width.saturating_sub(columns(text))));
        let parts = [
            (self.word, pad(&badge, self.word), ink.badge(row.badge, row.state)),
            (self.name, pad(&shorten(row.name.clone(), self.name), self.name), base),
            (self.place, pad(&shorten(row.place.clone(), self.place), self.place), base),
            (self.clock, right(elapsed, self.clock), base),
            (self.cost, right(&row.cost, self.cost), base),
            (self.said, shorten(row.said.clone(), self.said), ink.faint()),
        ];
        let mut spans = vec![span(&mark[..self.mark], base)];
        for (_, text, style) in parts.into_iter().filter(|(width, ..)| *width > 0) {
            spans.push(span(text, style));
            spans.push(Span::raw("  "));
        }
        Line::from(spans)
    }
}

/// More about the chosen row, below a line: what does not fit beside the others.
pub fn detail(row: &Row, ink: Ink, width: usize, lines: usize) -> Vec<Line<'static>> {
    let head = [row.name.as_str(), row.place.as_str(), row.branch.as_str()];
    let head: Vec<_> = head.into_iter().filter(|part| !part.is_empty()).collect();
    let rule = Line::from(span("─".repeat(width), ink.faint()));
    let mut drawn = vec![rule, Line::from(span(shorten(head.join("  "), width), ink.bold()))];
    drawn.extend(wrap(&row.said, width, lines.saturating_sub(2)).into_iter().map(Line::from));
    drawn.truncate(lines);
    drawn
}
