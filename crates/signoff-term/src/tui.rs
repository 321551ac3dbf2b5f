//! The screen: what a run looks like while somebody watches it, and what their keys mean.
//!
//! Values go in, frames and wishes come out. Whoever has the terminal hands in facts, keys and the time, draws a frame
//! when [`Tui::needs_frame`] says so, and fulfils the wishes.

mod press;
mod wish;

use jiff::Timestamp;
use ratatui::Frame;
use signoff_core::ids::{AttemptId, LoopId, RunId};
use signoff_core::view::TaskRow;
use signoff_core::wire::Recorded;

pub use press::Press;
pub use wish::{Material, Pace, Wish};

/// Why the screen is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// This program works: leaving the screen leaves the work as lines.
    Driving,
    /// Another program works, or none.
    Watching,
    /// What is shown has happened already: nothing can be asked of it.
    Replaying,
}

/// What a terminal may be given besides text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    Color,
    /// Bold and reversed at most: `NO_COLOR`.
    Plain,
}

/// All that the screen shows.
#[derive(Debug)]
pub struct Tui {
    mode: Mode,
    ink: Ink,
    note: String,
    dirty: bool,
    drawn_at: Option<Timestamp>,
}

impl Tui {
    pub fn new(mode: Mode, ink: Ink) -> Self {
        Self { mode, ink, note: String::new(), dirty: true, drawn_at: None }
    }

    /// Takes in a run's log so far.
    pub fn catch_up<'a>(&mut self, log: impl IntoIterator<Item = &'a Recorded>) {
        for recorded in log {
            self.take(recorded);
        }
    }

    /// Takes in one new fact.
    pub fn take(&mut self, _recorded: &Recorded) {
        self.dirty = true;
    }

    /// A live line of an agent, which nobody records.
    pub fn said(&mut self, _run: RunId, _loop_id: &LoopId, _attempt: AttemptId, _line: &str) {
        self.dirty = true;
    }

    /// The tasks that no run has taken up, all of them.
    pub fn queue(&mut self, _tasks: Vec<TaskRow>) {
        self.dirty = true;
    }

    /// What was wished for.
    pub fn supply(&mut self, _material: Material) {
        self.dirty = true;
    }

    /// A line at the bottom: why something was refused, what to do next. It stays until the next key.
    pub fn note(&mut self, text: &str) {
        text.clone_into(&mut self.note);
        self.dirty = true;
    }

    /// Interrupted: what is under way is finished, and nobody is asked any more.
    pub fn ending(&mut self) {
        self.dirty = true;
    }

    /// Takes in a key, and gives what it asks for.
    pub fn press(&mut self, key: Press) -> Vec<Wish> {
        self.dirty = true;
        self.note.clear();
        match key {
            Press::Char('q') => vec![Wish::Quit],
            Press::Ctrl('c') => vec![Wish::Interrupt],
            _ => self.wishes(),
        }
    }

    /// What it needs by itself, because facts came in that an open pane shows. To be asked for before each frame.
    pub fn wishes(&mut self) -> Vec<Wish> {
        Vec::new()
    }

    /// Whether a frame would show anything new. Clocks tick once a second.
    pub fn needs_frame(&self, now: Timestamp) -> bool {
        self.dirty || self.drawn_at.is_none_or(|at| at.as_second() != now.as_second())
    }

    pub fn draw(&mut self, frame: &mut Frame<'_>, now: Timestamp) {
        let area = frame.area();
        frame.buffer_mut().set_stringn(
            0,
            0,
            &self.note,
            usize::from(area.width),
            ratatui::style::Style::new(),
        );
        (self.dirty, self.drawn_at) = (false, Some(now));
    }
}
