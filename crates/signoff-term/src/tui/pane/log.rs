//! The transcript pane, and drawing of growing logs.

use std::collections::VecDeque;

use ratatui::text::Line;
use signoff_core::ids::AttemptId;
use unicode_width::UnicodeWidthChar;

use crate::tui::canvas::{Canvas, Theme, sanitize, span};
use crate::tui::list::TailScroll;

/// Maximum number of lines of a transcript.
const MAX_LINES: usize = 2_000;

/// The output of one attempt of the open loop.
#[derive(Debug, Default)]
pub struct TranscriptPane {
    pub attempt: Option<AttemptId>,
    lines: VecDeque<String>,
    /// The last line, while its line break has not arrived.
    partial_line: String,
    /// The lines come from the stored transcript, which is more complete than the live lines.
    is_stored: bool,
    pub tail: TailScroll,
}

impl TranscriptPane {
    pub fn new(attempt: AttemptId) -> Self {
        Self { attempt: Some(attempt), ..Self::default() }
    }

    /// Appends the next chunk of the stored transcript.
    pub fn push_chunk(&mut self, text: &str) {
        if !self.is_stored {
            self.lines.clear();
            self.is_stored = true;
        }
        let mut parts = text.split('\n');
        self.partial_line.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let line = std::mem::replace(&mut self.partial_line, part.to_owned());
            self.push_line(&line);
        }
        // Limit the length of an unfinished line.
        if self.partial_line.len() > 64 * 1024 {
            let line = std::mem::take(&mut self.partial_line);
            self.push_line(&line);
        }
    }

    /// Appends a live line, unless there is a stored transcript.
    pub fn push_live_line(&mut self, line: &str) {
        if !self.is_stored {
            self.push_line(line);
        }
    }

    fn push_line(&mut self, line: &str) {
        if self.lines.len() == MAX_LINES {
            self.lines.pop_front();
            self.tail.line_removed();
        }
        self.lines.push_back(sanitize(line));
    }

    pub fn draw(&mut self, canvas: &mut Canvas<'_>, theme: Theme) {
        let partial = Some(sanitize(&self.partial_line)).filter(|partial| !partial.is_empty());
        let all = self.lines.len() + usize::from(partial.is_some());
        if all == 0 {
            canvas.line(0, &Line::from(span("no output yet", theme.faint())));
        }
        let at = |index: usize| self.lines.get(index).or(partial.as_ref()).map_or("", String::as_str);
        draw(canvas, &mut self.tail, all, at);
    }
}

/// Draws wrapped lines: from the scroll position on, or up to the last one.
pub fn draw<'t>(canvas: &mut Canvas<'_>, tail: &mut TailScroll, all: usize, at: impl Fn(usize) -> &'t str) {
    let (width, height) = (canvas.width(), canvas.height());
    if width == 0 || height == 0 {
        return;
    }
    let mut drawn: VecDeque<String> = VecDeque::new();
    let first = match tail.top() {
        Some(top) => {
            let top = top.min(all.saturating_sub(1));
            (top..all).take(height).for_each(|index| drawn.extend(wrap_line(at(index), width)));
            top
        }
        None => {
            let mut first = all;
            while first > 0 && drawn.len() < height {
                first -= 1;
                wrap_line(at(first), width).into_iter().rev().for_each(|line| drawn.push_front(line));
            }
            let over = drawn.len().saturating_sub(height);
            drawn.drain(..over);
            first
        }
    };
    let shown = if tail.top().is_some() { height } else { all - first };
    tail.set_drawn(first, shown, all);
    drawn.into_iter().take(height).enumerate().for_each(|(y, line)| canvas.line(y, &Line::from(line)));
}

/// Wraps a clean line at `width` columns, at spaces if possible.
fn wrap_line(line: &str, width: usize) -> Vec<String> {
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
