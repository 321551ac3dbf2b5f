//! Lines that come one after the other: what an agent says, and what happened.

use std::collections::VecDeque;

use ratatui::text::Line;
use signoff_core::ids::AttemptId;
use unicode_width::UnicodeWidthChar;

use super::scroll::Tail;
use crate::tui::ink::Ink;
use crate::tui::sheet::{Sheet, clean, span};

/// How many lines of a transcript are kept.
const LINES: usize = 2_000;

/// What one attempt of the open loop said.
#[derive(Debug, Default)]
pub struct Transcript {
    pub attempt: Option<AttemptId>,
    lines: VecDeque<String>,
    /// A line of which the end is still to come.
    begun: String,
    /// It comes from what is kept of the attempt, which is more than its live lines.
    supplied: bool,
    pub tail: Tail,
}

impl Transcript {
    pub fn of(attempt: AttemptId) -> Self {
        Self { attempt: Some(attempt), ..Self::default() }
    }

    /// A piece of what is kept, which follows the last one.
    pub fn piece(&mut self, text: &str) {
        if !self.supplied {
            self.lines.clear();
            self.supplied = true;
        }
        let mut parts = text.split('\n');
        self.begun.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let line = std::mem::replace(&mut self.begun, part.to_owned());
            self.line(&line);
        }
        // A line without an end is not kept without one.
        if self.begun.len() > 64 * 1024 {
            let line = std::mem::take(&mut self.begun);
            self.line(&line);
        }
    }

    /// A live line, where there is nothing better.
    pub fn said(&mut self, line: &str) {
        if !self.supplied {
            self.line(line);
        }
    }

    fn line(&mut self, line: &str) {
        if self.lines.len() == LINES {
            self.lines.pop_front();
            self.tail.dropped();
        }
        self.lines.push_back(clean(line));
    }

    pub fn draw(&mut self, sheet: &mut Sheet<'_>, ink: Ink) {
        let begun = Some(clean(&self.begun)).filter(|begun| !begun.is_empty());
        let all = self.lines.len() + usize::from(begun.is_some());
        if all == 0 {
            sheet.line(0, &Line::from(span("nothing was said yet", ink.faint())));
        }
        let at = |index: usize| self.lines.get(index).or(begun.as_ref()).map_or("", String::as_str);
        draw(sheet, &mut self.tail, all, at);
    }
}

/// Draws lines, broken where they are too long: from where somebody scrolled to, or up to the last one.
pub fn draw<'t>(sheet: &mut Sheet<'_>, tail: &mut Tail, all: usize, at: impl Fn(usize) -> &'t str) {
    let (width, height) = (sheet.width(), sheet.height());
    if width == 0 || height == 0 {
        return;
    }
    let mut drawn: VecDeque<String> = VecDeque::new();
    let first = match tail.top() {
        Some(top) => {
            let top = top.min(all.saturating_sub(1));
            (top..all).take(height).for_each(|index| drawn.extend(broken(at(index), width)));
            top
        }
        None => {
            let mut first = all;
            while first > 0 && drawn.len() < height {
                first -= 1;
                broken(at(first), width).into_iter().rev().for_each(|line| drawn.push_front(line));
            }
            let over = drawn.len().saturating_sub(height);
            drawn.drain(..over);
            first
        }
    };
    let shown = if tail.top().is_some() { height } else { all - first };
    tail.drew(first, shown, all);
    drawn.into_iter().take(height).enumerate().for_each(|(y, line)| sheet.line(y, &Line::from(line)));
}

/// A clean line in pieces of at most so many columns, broken at spaces where there are some.
fn broken(line: &str, width: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let (mut used, mut space) = (0, None);
    for c in line.chars() {
        let wide = c.width().unwrap_or(0);
        let last = pieces.len() - 1;
        if used + wide > width && !pieces[last].is_empty() {
            let rest = space.filter(|at| *at > 0).map(|at| pieces[last].split_off(at)).unwrap_or_default();
            used = crate::fit::columns(&rest);
            pieces.push(rest);
            space = None;
        }
        let piece = pieces.len() - 1;
        pieces[piece].push(c);
        used += wide;
        if c == ' ' {
            space = Some(pieces[piece].len());
        }
    }
    pieces
}
