//! How far somebody has scrolled.

use crate::tui::list::Step;

/// A text that is read from its beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    pub top: usize,
    /// How many lines there are, and how many of them were drawn last.
    pub lines: usize,
    pub page: usize,
}

impl Page {
    /// The first line to draw, where there are so many and room for so many.
    pub fn first(&mut self, lines: usize, page: usize) -> usize {
        (self.lines, self.page) = (lines, page);
        self.top = self.top.min(lines.saturating_sub(page));
        self.top
    }

    pub fn step(&mut self, step: Step) {
        let last = self.lines.saturating_sub(self.page);
        let page = self.page.max(1);
        let to = match step {
            Step::Up => self.top.saturating_sub(1),
            Step::Down => self.top + 1,
            Step::PageUp => self.top.saturating_sub(page),
            Step::PageDown => self.top + page,
            Step::First => 0,
            Step::Last => last,
        };
        self.top = to.min(last);
    }
}

/// A text that grows: its end is followed unless somebody scrolled up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tail {
    /// The first line that is shown; none follows the end.
    top: Option<usize>,
    first: usize,
    lines: usize,
    page: usize,
}

impl Tail {
    pub fn top(&self) -> Option<usize> {
        self.top
    }

    /// What was drawn: from which line, so many of how many.
    pub fn drew(&mut self, first: usize, page: usize, lines: usize) {
        (self.first, self.page, self.lines) = (first, page, lines);
    }

    /// The oldest line is gone.
    pub fn dropped(&mut self) {
        self.top = self.top.map(|top| top.saturating_sub(1));
    }

    pub fn step(&mut self, step: Step) {
        let to = step.from(self.top.unwrap_or(self.first), self.page);
        let at_the_end = to.saturating_add(self.page) >= self.lines;
        self.top = (!at_the_end).then_some(to);
    }
}
