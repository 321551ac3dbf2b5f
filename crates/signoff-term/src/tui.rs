//! The screen: what runs look like while somebody watches them, and what their keys mean.
//!
//! Values go in, frames and wishes come out. Whoever has the terminal hands in facts, keys and the time, draws a frame
//! when [`Tui::needs_frame`] says so, and fulfils the wishes.

mod act;
mod dialog;
mod fold;
mod head;
mod ink;
mod keys;
mod list;
mod pane;
mod press;
mod row;
mod screen;
mod sheet;
mod standings;
mod tally;
mod wish;

use jiff::Timestamp;
use signoff_core::ids::{AttemptId, LoopId, RunId};
use signoff_core::view::TaskRow;
use signoff_core::wire::{Fact, LoopFact, Recorded};

use self::dialog::Dialog;
use self::fold::Fold;
use self::list::List;
use self::pane::Opened;
use crate::dialogue::Dialogue;

pub use ink::Ink;
pub use press::Press;
pub use standings::Standings;
pub use wish::{Decision, Errand, Material, Pace, Tempo, Wish};

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

/// All that the screen shows.
#[derive(Debug)]
pub struct Tui {
    mode: Mode,
    ink: Ink,
    project: String,
    fold: Fold,
    list: List,
    opened: Option<Opened>,
    dialog: Option<Dialog>,
    dialogue: Dialogue,
    pace: Option<Pace>,
    note: String,
    /// Interrupted: it comes to an end.
    ending: bool,
    dirty: bool,
    /// When a key was last meant for the list.
    listed_at: Option<Timestamp>,
    drawn_at: Option<Timestamp>,
}

impl Tui {
    pub fn new(mode: Mode, ink: Ink) -> Self {
        Self {
            mode,
            ink,
            project: String::new(),
            fold: Fold::default(),
            list: List::default(),
            opened: None,
            dialog: None,
            dialogue: Dialogue::default(),
            pace: None,
            note: String::new(),
            ending: false,
            dirty: true,
            listed_at: None,
            drawn_at: None,
        }
    }

    /// What people call the project, for the first line.
    pub fn name(&mut self, project: &str) {
        project.clone_into(&mut self.project);
        self.dirty = true;
    }

    /// Takes in a run's log so far.
    pub fn catch_up<'a>(&mut self, log: impl IntoIterator<Item = &'a Recorded>) {
        log.into_iter().for_each(|recorded| self.take(recorded));
    }

    /// Takes in one new fact.
    pub fn take(&mut self, recorded: &Recorded) {
        self.fold.take(recorded);
        self.dirty = true;
        let (Some(opened), Fact::Loop(loop_id, fact)) = (&mut self.opened, &recorded.fact) else { return };
        let own = opened.key.run == recorded.run && opened.key.loop_id == *loop_id;
        // What is only said changes no report.
        if own && !matches!(fact, LoopFact::Said { .. }) {
            opened.moved();
        }
        if let (true, LoopFact::Said { attempt, line }) = (own, fact) {
            opened.said((recorded.run, loop_id, *attempt), line);
        }
    }

    /// A live line of an agent, which nobody records.
    pub fn said(&mut self, run: RunId, loop_id: &LoopId, attempt: AttemptId, line: &str) {
        self.fold.said(run, loop_id, line);
        if let Some(opened) = &mut self.opened {
            opened.said((run, loop_id, attempt), line);
        }
        self.dirty = true;
    }

    /// The tasks that no run has taken up, all of them.
    pub fn queue(&mut self, tasks: Vec<TaskRow>) {
        self.fold.queue(tasks);
        self.dirty = true;
    }

    /// What `signoff` alone would say about the tasks. Until it is told, a row's own log counts.
    pub fn standings(&mut self, standings: Standings) {
        self.fold.standings(standings, self.mode == Mode::Driving);
        self.dirty = true;
    }

    /// What was shown is not there any more: it begins as if nothing had ever been told.
    pub fn begin_anew(&mut self) {
        let project = std::mem::take(&mut self.project);
        *self = Self { project, ..Self::new(self.mode, self.ink) };
    }

    /// What was wished for.
    pub fn supply(&mut self, material: Material) {
        self.dirty = true;
        if let Material::Pace(pace) = material {
            self.pace = Some(pace);
        } else if let Some(opened) = &mut self.opened {
            opened.supply(material);
        }
    }

    /// A line at the bottom: why something was refused, what to do next. It stays until the next key.
    pub fn note(&mut self, text: &str) {
        text.clone_into(&mut self.note);
        self.dirty = true;
    }

    /// Interrupted: what is under way is finished, and nobody is asked any more.
    pub fn ending(&mut self) {
        self.ending = true;
        self.dialogue.close();
        self.dialog = None;
        self.dirty = true;
    }

    /// What it needs by itself, because facts came in that an open pane shows. To be asked for before each frame.
    pub fn wishes(&mut self) -> Vec<Wish> {
        let fold = &self.fold;
        self.opened.as_mut().map(|opened| opened.wishes(fold)).unwrap_or_default()
    }

    /// Whether a frame would show anything new. Clocks tick once a second.
    pub fn needs_frame(&self, now: Timestamp) -> bool {
        self.dirty || self.drawn_at.is_none_or(|at| at.as_second() != now.as_second())
    }

    /// Brings rows and questions up to date.
    fn refresh(&mut self) {
        self.fold.refresh(&mut self.dialogue);
        self.list.settle(&self.fold);
        if let Some(opened) = &mut self.opened {
            opened.follow(&self.fold);
        }
        let asks = self.mode != Mode::Replaying && self.dialogue.is_open();
        match &self.dialog {
            // A question waits until the person is done with what they are at.
            None if asks && self.opened.is_none() => self.dialog = Some(Dialog::Question),
            Some(Dialog::Question) if !asks => self.dialog = None,
            Some(_) | None => {}
        }
    }
}
