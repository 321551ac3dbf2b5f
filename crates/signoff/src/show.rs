//! What a person sees while it runs: lines, events as JSON, or a spinner per loop on a terminal.

use std::collections::BTreeMap;

use signoff_core::ids::RunId;
use signoff_engine::dispatcher::{Notice, Renderer};
use signoff_term::line::{LineRenderer, Naming};
use signoff_term::{json, progress};

use crate::console::Console;
use crate::spinner::Spinners;

/// The renderer that the command line asks for.
pub struct Shown {
    console: Console,
    naming: Naming,
    lines: BTreeMap<RunId, LineRenderer>,
    ends: bool,
    spinners: Option<Spinners>,
}

impl Shown {
    pub fn new(console: &Console, naming: Naming) -> Self {
        let spinners = console.is_live().then(Spinners::new);
        Self { console: *console, naming, lines: BTreeMap::new(), ends: false, spinners }
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

    /// Takes the spinners away.
    pub fn finish(self) {
        if let Some(spinners) = self.spinners {
            spinners.clear();
        }
    }

    fn say(&self, line: &str) {
        let put = || self.console.progress(&format!("{line}\n"));
        match &self.spinners {
            Some(spinners) => spinners.above(put),
            None => put(),
        }
    }
}

impl Renderer for Shown {
    fn take(&mut self, notice: &Notice<'_>) {
        match notice {
            Notice::Recorded(recorded) => {
                if self.console.json_events {
                    self.console.progress(&format!("{}\n", json::event(recorded)));
                    return;
                }
                let lines = self.renderer(recorded.run).take(recorded);
                self.tell_apart();
                if let (Some(spinners), Some(one)) = (&mut self.spinners, self.lines.get(&recorded.run)) {
                    spinners.show(recorded.run, &one.view().rows(), progress::line);
                }
                lines.iter().for_each(|line| self.say(line));
            }
            Notice::Said { run, loop_id, line, .. } => {
                if let Some(spinners) = &mut self.spinners {
                    spinners.said(*run, loop_id, line);
                }
            }
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
