//! What a person sees while it runs: lines, events as JSON, and on a terminal the screen.
//!
//! The lines are told in any case. While the screen is shown they wait; when it is left, the terminal has the whole tale.

use std::collections::BTreeMap;

use signoff_core::ids::RunId;
use signoff_engine::dispatcher::{Notice, Renderer};
use signoff_term::json;
use signoff_term::line::{LineRenderer, Naming};

use crate::console::Console;
use crate::screen::Screen;

/// The renderer that the command line asks for.
pub struct Shown {
    console: Console,
    naming: Naming,
    lines: BTreeMap<RunId, LineRenderer>,
    ends: bool,
    screen: Option<Screen>,
}

impl Shown {
    pub fn new(console: &Console, naming: Naming, screen: Option<Screen>) -> Self {
        Self { console: *console, naming, lines: BTreeMap::new(), ends: false, screen }
    }

    /// The renderer of a run, which knows what holds for all of them.
    fn renderer(&mut self, run: RunId) -> &mut LineRenderer {
        let others: usize =
            self.lines.iter().filter(|(other, _)| **other != run).map(|(_, one)| one.active()).sum();
        let renderer = self.lines.entry(run).or_insert_with(|| LineRenderer::new(self.naming));
        if others > 0 {
            renderer.beside_others();
        }
        if self.ends {
            renderer.end_soon();
        }
        renderer
    }

    /// Loops that were at work at the same time are told apart from then on, also when only one is left.
    fn tell_apart(&mut self) {
        if self.lines.values().map(LineRenderer::active).sum::<usize>() > 1 {
            self.naming = Naming::Always;
            self.lines.values_mut().for_each(LineRenderer::beside_others);
        }
    }

    /// Gives the terminal back.
    pub fn finish(self) {
        drop(self.screen);
    }

    fn say(&self, line: &str) {
        self.console.progress(&format!("{line}\n"));
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
                let lines = self.renderer(recorded.run).take(recorded);
                self.tell_apart();
                lines.iter().for_each(|line| self.say(line));
            }
            Notice::Said { .. } => {}
            Notice::Note(note) => self.console.note(note),
            Notice::Ending => self.ends = true,
            Notice::TakenUp { run, log } => {
                let lines = self.renderer(*run).catch_up(log.iter());
                self.tell_apart();
                if !self.console.json_events {
                    lines.iter().for_each(|line| self.say(line));
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
