//! What a person sees while it runs: lines, events as JSON, and on a terminal a list of what is at work.

use std::collections::BTreeMap;

use signoff_core::ids::{LoopId, RunId};
use signoff_core::wire::{Fact, LoopFact, Recorded};
use signoff_engine::dispatcher::{Notice, Renderer};
use signoff_term::dialogue::Question;
use signoff_term::json;
use signoff_term::line::{LineRenderer, Naming};

use crate::console::Console;
use crate::live::{Answers, Live};

/// The renderer that the command line asks for.
pub struct Shown {
    console: Console,
    naming: Naming,
    lines: BTreeMap<RunId, LineRenderer>,
    ends: bool,
    live: Option<Live>,
}

impl Shown {
    /// `answers` is where the answers of the person go who sits there, if anybody does.
    pub fn new(console: &Console, naming: Naming, answers: Option<Answers>) -> Self {
        let live = console.is_live().then(|| Live::new(*console, answers));
        Self { console: *console, naming, lines: BTreeMap::new(), ends: false, live }
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

    /// Takes the list away.
    pub fn finish(self) {
        drop(self.live);
    }

    fn say(&self, line: &str) {
        match &self.live {
            Some(live) => live.line(line),
            None => self.console.progress(&format!("{line}\n")),
        }
    }

    fn note(&self, note: &str) {
        match &self.live {
            Some(live) => live.note(note),
            None => self.console.note(note),
        }
    }

    /// Tells the list what a fact changed.
    fn draw(&self, recorded: &Recorded) {
        let (Some(live), Some(one)) = (&self.live, self.lines.get(&recorded.run)) else { return };
        let view = one.view();
        live.run(recorded.run, view.overview());
        let row = shown_loop(&recorded.fact).and_then(|loop_id| view.row(&loop_id));
        if let Some(row) = row {
            live.row(recorded.run, row);
        }
        if let Fact::Loop(loop_id, LoopFact::Moved(_)) = &recorded.fact {
            live.asks((recorded.run, loop_id), Question::of(view, loop_id));
        }
    }

    /// Tells the list how a run stands that is taken up.
    fn draw_all(&self, run: RunId) {
        let (Some(live), Some(one)) = (&self.live, self.lines.get(&run)) else { return };
        live.run(run, one.view().overview());
        one.view().rows().into_iter().for_each(|row| live.row(run, row));
        for loop_id in one.view().asking() {
            live.asks((run, loop_id), Question::of(one.view(), loop_id));
        }
    }
}

/// The loop whose row a fact can change.
fn shown_loop(fact: &Fact) -> Option<LoopId> {
    match fact {
        Fact::Task(..) | Fact::Run(_) => None,
        Fact::Loop(loop_id, _) => Some(loop_id.of_checkpoint().map_or_else(|| loop_id.clone(), |(of, _)| of)),
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
                lines.iter().for_each(|line| self.say(line));
                self.draw(recorded);
            }
            Notice::Said { run, loop_id, line, unheard, .. } => {
                if let Some(live) = &self.live {
                    live.said((*run, loop_id), line, unheard);
                }
            }
            Notice::Note(note) => self.note(note),
            Notice::Ending => {
                self.ends = true;
                if let Some(live) = &self.live {
                    live.ask_no_more();
                }
            }
            Notice::TakenUp { run, log } => {
                let lines = self.renderer(*run).catch_up(log.iter());
                self.tell_apart();
                if !self.console.json_events {
                    lines.iter().for_each(|line| self.say(line));
                    self.draw_all(*run);
                }
            }
        }
    }
}
