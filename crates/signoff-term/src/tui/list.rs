//! The list of all loops: those that need a person first, then active, waiting and finished ones.

use crossterm::event::KeyCode;
use jiff::Timestamp;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use signoff_core::ids::TaskId;
use signoff_core::wire::QUEUE;

use super::canvas::{Canvas, Theme, span};
use super::model::TuiModel;
use super::row::{RowKey, TuiRow};
use crate::fit::{columns, join, pad, truncate, wrap};

/// The selection and scroll position of the list.
#[derive(Debug, Default)]
pub struct TaskList {
    chosen: Option<RowKey>,
    /// The task and position of the selected row. A task that leaves the queue gets a new row.
    task: Option<TaskId>,
    at: usize,
    /// The selected task after it left the queue, until its new row appears. Navigation clears it.
    left_queue: Option<TaskId>,
    top: usize,
    /// Number of rows that were drawn last; the page size.
    page: usize,
}

/// A navigation command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Navigation {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
}

/// The navigation keys.
const STEPS: [(KeyCode, Navigation); 10] = [
    (KeyCode::Up, Navigation::Up),
    (KeyCode::Char('k'), Navigation::Up),
    (KeyCode::Down, Navigation::Down),
    (KeyCode::Char('j'), Navigation::Down),
    (KeyCode::PageUp, Navigation::PageUp),
    (KeyCode::PageDown, Navigation::PageDown),
    (KeyCode::Home, Navigation::First),
    (KeyCode::Char('g'), Navigation::First),
    (KeyCode::End, Navigation::Last),
    (KeyCode::Char('G'), Navigation::Last),
];

impl Navigation {
    /// The navigation command of a key.
    pub fn from_key(key: KeyCode) -> Option<Self> {
        STEPS.iter().find(|(step_key, _)| *step_key == key).map(|(_, step)| *step)
    }

    /// The target line; `page` is the page size. The target may be beyond the last line.
    pub fn target(self, at: usize, page: usize) -> usize {
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

impl TaskList {
    /// The selected row. The selection follows the row when it moves.
    pub fn chosen<'f>(&self, model: &'f TuiModel) -> Option<(&'f RowKey, &'f TuiRow)> {
        let key = model.order().get(self.position(model))?;
        Some((key, model.row(key)?))
    }

    fn position(&self, model: &TuiModel) -> usize {
        let find = |target: &RowKey| model.order().iter().position(|key| key == target);
        let of_task = |task: Option<TaskId>| model.row_of_task(task?).and_then(find);
        let chosen = of_task(self.left_queue).or_else(|| self.chosen.as_ref().and_then(find));
        let last_position = || self.at.min(model.order().len().saturating_sub(1));
        chosen.or_else(|| of_task(self.task)).unwrap_or_else(last_position)
    }

    /// Stores the row that is displayed as selected.
    pub fn update_selection(&mut self, model: &TuiModel) {
        let at = self.position(model);
        let key = model.order().get(at).cloned();
        let task = key.as_ref().and_then(|key| model.row(key)).and_then(|row| row.task);
        let left = self.chosen.as_ref().is_some_and(|chosen| chosen.run == QUEUE && key.as_ref() != Some(chosen));
        match self.left_queue {
            None if left && task != self.task => self.left_queue = self.task,
            Some(left_queue) if task == Some(left_queue) => self.left_queue = None,
            Some(_) | None => {}
        }
        (self.chosen, self.task, self.at) = (key, task, at);
    }

    pub fn step(&mut self, step: Navigation, model: &TuiModel) {
        let last = model.order().len().saturating_sub(1);
        self.at = step.target(self.position(model), self.page).min(last);
        let key = model.order().get(self.at);
        self.task = key.and_then(|key| model.row(key)).and_then(|row| row.task);
        (self.chosen, self.left_queue) = (key.cloned(), None);
    }

    /// Draws the rows around the selected one, and returns the line of the selected one.
    pub fn draw(&mut self, canvas: &mut Canvas<'_>, model: &TuiModel, theme: Theme, now: Timestamp) -> Option<usize> {
        let (height, all) = (canvas.height(), model.order().len());
        if height == 0 {
            return None;
        }
        let at = self.position(model);
        self.top = self.top.min(at).max((at + 1).saturating_sub(height)).min(all.saturating_sub(height));
        self.page = height;
        let shown = model.order().iter().skip(self.top).take(height);
        let shown = shown.filter_map(|key| Some(ListedRow { row: model.row(key)?, elapsed: model.elapsed(key, now) }));
        let shown: Vec<ListedRow> = shown.collect();
        let widths = Widths::new(&shown, canvas.width());
        for (y, listed) in shown.iter().enumerate() {
            let line = widths.line(listed, self.top + y == at, theme);
            canvas.line(y, &line);
        }
        self.draw_hidden_counts(canvas, all, theme);
        at.checked_sub(self.top).filter(|line| *line < shown.len())
    }

    /// Draws the number of hidden rows above and below: `↑3 ↓42`, in the last column of the first and last line.
    fn draw_hidden_counts(&self, canvas: &mut Canvas<'_>, all: usize, theme: Theme) {
        let (height, width) = (canvas.height(), canvas.width());
        let below = all.saturating_sub(self.top + height);
        let marks = [(0, self.top, '↑'), (height - 1, below, '↓')];
        for (y, number, arrow) in marks.into_iter().filter(|(_, number, _)| *number > 0 && width > 30) {
            let mark = format!(" {arrow}{number}");
            let wide = columns(&mark);
            canvas.column(width - wide, wide).line(y, &Line::from(span(mark, theme.faint())));
        }
    }
}

/// Below this width there is no room for the selection mark; the selected row is only bold.
const MIN_MARKED_WIDTH: usize = 12;

/// A row of the list with its running time.
struct ListedRow<'a> {
    row: &'a TuiRow,
    elapsed: String,
}

/// The widths of the columns.
struct Widths {
    mark: usize,
    badge: usize,
    name: usize,
    position: usize,
    elapsed: usize,
    cost: usize,
    message: usize,
}

impl Widths {
    /// Each column is as wide as its longest cell, if it fits. Columns that do not fit are dropped from the end.
    fn new(rows: &[ListedRow], width: usize) -> Self {
        let widest = |part: &dyn Fn(&ListedRow) -> usize| rows.iter().map(part).max().unwrap_or(0);
        let mark = if width < MIN_MARKED_WIDTH { 0 } else { 2 };
        let mut left = width - mark;
        let mut take = |wanted: usize, least: usize| {
            let fits = wanted > 0 && left >= least.min(wanted);
            let taken = if fits { wanted.min(left) } else { 0 };
            left = left.saturating_sub(if taken > 0 { taken + 2 } else { 0 });
            taken
        };
        let badge = take(widest(&|listed| columns(&listed.row.badge_label)).max(6), 1);
        let name = take(widest(&|listed| columns(&listed.row.name)).min((width * 3 / 10).max(16)), 4);
        let position = take(widest(&|listed| columns(&listed.row.position)).min((width / 4).max(10)), 6);
        let elapsed = take(widest(&|listed| columns(&listed.elapsed)), 5);
        let cost = take(widest(&|listed| columns(&listed.row.cost)), 5);
        let message = take(width, 8);
        Self { mark, badge, name, position, elapsed, cost, message: message.min(width) }
    }

    fn line(&self, ListedRow { row, elapsed }: &ListedRow, chosen: bool, theme: Theme) -> Line<'static> {
        let base = if chosen { theme.bold() } else { Style::new() };
        let mark = if chosen { "> " } else { "  " };
        // No `…` here: the beginning of a badge says more.
        let badge: String = row.badge_label.chars().take(self.badge).collect();
        let right = |text: &str, width: usize| format!("{}{text}", " ".repeat(width.saturating_sub(columns(text))));
        let parts = [
            (self.badge, pad(&badge, self.badge), theme.badge(row.badge, row.state)),
            (self.name, pad(&truncate(row.name.clone(), self.name), self.name), base),
            (self.position, pad(&truncate(row.position.clone(), self.position), self.position), base),
            (self.elapsed, right(elapsed, self.elapsed), base),
            (self.cost, right(&row.cost, self.cost), base),
            (self.message, truncate(row.message.clone(), self.message), theme.faint()),
        ];
        let mut spans = vec![span(&mark[..self.mark], base)];
        for (_, text, style) in parts.into_iter().filter(|(width, ..)| *width > 0) {
            spans.push(span(text, style));
            spans.push(Span::raw("  "));
        }
        Line::from(spans)
    }
}

/// Details of the selected row, below a separator.
pub fn detail(row: &TuiRow, theme: Theme, width: usize, lines: usize) -> Vec<Line<'static>> {
    let head = [row.name.as_str(), row.position.as_str(), row.branch.as_str()];
    let head = join(head.map(str::to_owned), "  ");
    let rule = Line::from(span("─".repeat(width), theme.faint()));
    let mut drawn = vec![rule, Line::from(span(truncate(head, width), theme.bold()))];
    drawn.extend(wrap(&row.message, width, lines.saturating_sub(2)).into_iter().map(Line::from));
    drawn.truncate(lines);
    drawn
}

/// The scroll position of a text that starts at the top.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scroll {
    pub top: usize,
    /// Number of lines, and number of lines that were drawn last.
    pub lines: usize,
    pub page: usize,
}

impl Scroll {
    /// The first line to draw, for this number of lines and page size.
    pub fn first(&mut self, lines: usize, page: usize) -> usize {
        (self.lines, self.page) = (lines, page);
        self.top = self.top.min(lines.saturating_sub(page));
        self.top
    }

    pub fn step(&mut self, step: Navigation) {
        let last = self.lines.saturating_sub(self.page);
        self.top = step.target(self.top, self.page).min(last);
    }
}

/// The scroll position of a growing text. It follows the end unless the person scrolled up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TailScroll {
    /// The first visible line; `None` follows the end.
    top: Option<usize>,
    first: usize,
    lines: usize,
    page: usize,
}

impl TailScroll {
    pub fn top(&self) -> Option<usize> {
        self.top
    }

    /// Records what was drawn: the first line, the number of drawn lines, and the number of all lines.
    pub fn set_drawn(&mut self, first: usize, page: usize, lines: usize) {
        (self.first, self.page, self.lines) = (first, page, lines);
    }

    /// Adjusts the position after the oldest line was removed.
    pub fn line_removed(&mut self) {
        self.top = self.top.map(|top| top.saturating_sub(1));
    }

    pub fn step(&mut self, step: Navigation) {
        let to = step.target(self.top.unwrap_or(self.first), self.page);
        let at_the_end = to.saturating_add(self.page) >= self.lines;
        self.top = (!at_the_end).then_some(to);
    }
}
