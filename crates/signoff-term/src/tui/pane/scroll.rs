//! Scroll positions.

use crate::tui::list::Navigation;

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
        let page = self.page.max(1);
        let to = match step {
            Navigation::Up => self.top.saturating_sub(1),
            Navigation::Down => self.top + 1,
            Navigation::PageUp => self.top.saturating_sub(page),
            Navigation::PageDown => self.top + page,
            Navigation::First => 0,
            Navigation::Last => last,
        };
        self.top = to.min(last);
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
