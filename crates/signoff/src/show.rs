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
    lines: BTreeMap<RunId, LineRenderer>,
    spinners: Option<Spinners>,
}

impl Shown {
    pub fn new(console: &Console) -> Self {
        let spinners = console.is_live().then(Spinners::new);
        Self { console: *console, lines: BTreeMap::new(), spinners }
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

fn new_renderer() -> LineRenderer {
    LineRenderer::new(Naming::WhenNeeded)
}

impl Renderer for Shown {
    fn take(&mut self, notice: &Notice<'_>) {
        match notice {
            Notice::Recorded(recorded) => {
                if self.console.json_events {
                    self.console.progress(&format!("{}\n", json::event(recorded)));
                    return;
                }
                let others = self.lines.iter().any(|(run, one)| *run != recorded.run && one.is_active());
                let renderer = self.lines.entry(recorded.run).or_insert_with(new_renderer);
                renderer.beside_others(others);
                let lines = renderer.take(recorded);
                if let Some(spinners) = &mut self.spinners {
                    spinners.show(recorded.run, &renderer.view().rows(), progress::line);
                }
                lines.iter().for_each(|line| self.say(line));
            }
            Notice::Said { run, loop_id, line, .. } => {
                if let Some(spinners) = &mut self.spinners {
                    spinners.said(*run, loop_id, line);
                }
            }
            Notice::Note(note) => self.console.note(note),
            Notice::TakenUp { run, log } => {
                let lines = self.lines.entry(*run).or_insert_with(new_renderer).catch_up(log.iter());
                if !self.console.json_events {
                    lines.iter().for_each(|line| self.say(line));
                }
            }
        }
    }
}
