//! What a person sees while it runs: lines, events as JSON, and on a terminal the screen.
//!
//! The lines are told in any case. While the screen is shown they wait; when it is left, the terminal has the whole tale.

mod tale;

pub use tale::Tale;

use signoff_engine::dispatcher::{Notice, Renderer};
use signoff_term::json;
use signoff_term::line::Naming;

use crate::console::Console;
use crate::screen::Screen;

/// The renderer that the command line asks for.
pub struct Shown {
    console: Console,
    tale: Tale,
    screen: Option<Screen>,
}

impl Shown {
    pub fn new(console: &Console, naming: Naming, screen: Option<Screen>) -> Self {
        Self { console: *console, tale: Tale::new(naming), screen }
    }

    /// Gives the terminal back.
    pub fn finish(self) {
        drop(self.screen);
    }

    fn say(&self, lines: &[String]) {
        lines.iter().for_each(|line| self.console.progress(&format!("{line}\n")));
    }
}

impl Renderer for Shown {
    fn take(&mut self, notice: &Notice<'_>) {
        if let Some(screen) = &self.screen {
            tell(screen, notice);
        }
        match notice {
            Notice::Recorded(recorded) if self.console.json_events => {
                self.console.progress(&format!("{}\n", json::event(recorded)));
            }
            Notice::Recorded(recorded) => {
                let lines = self.tale.take(recorded);
                self.say(&lines);
            }
            Notice::Said { .. } => {}
            Notice::Note(note) => self.console.note(note),
            Notice::Ending => self.tale.end_soon(),
            Notice::TakenUp { run, log } => {
                let lines = self.tale.catch_up(*run, log);
                if !self.console.json_events {
                    self.say(&lines);
                }
            }
        }
    }
}

/// Tells the screen what is new.
fn tell(screen: &Screen, notice: &Notice<'_>) {
    let teller = screen.teller();
    match notice {
        Notice::Recorded(recorded) => teller.facts(vec![(*recorded).clone()]),
        Notice::TakenUp { log, .. } => teller.facts(log.to_vec()),
        Notice::Said { run, loop_id, attempt, line, unheard } => {
            teller.said((*run, loop_id), *attempt, line, unheard);
        }
        Notice::Note(note) => teller.note(note),
        Notice::Ending => teller.ending(),
    }
}
