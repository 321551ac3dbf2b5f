//! Renders a run while it is worked: as lines, as JSON events, and on a terminal also on the screen.
//!
//! Lines are always produced. While the screen is shown they are buffered and printed when it closes.

use std::collections::BTreeMap;

use signoff_core::ids::RunId;
use signoff_core::view::Transition;
use signoff_engine::dispatcher::{DispatcherNotice, Renderer};
use signoff_engine::executor::AttemptKey;
use signoff_term::json;
use signoff_term::line::{LineNaming, LineRenderer};

use crate::Console;
use crate::screen::{Screen, ScreenMessage};

/// The renderer selected by the command line.
pub struct RunRenderer {
    console: Console,
    lines: LineOutput,
    screen: Option<Screen>,
}

impl RunRenderer {
    pub fn new(console: &Console, naming: LineNaming, screen: Option<Screen>) -> Self {
        Self { console: *console, lines: LineOutput::new(naming), screen }
    }

    /// Closes the screen and restores the terminal.
    pub fn finish(self) {
        drop(self.screen);
    }

    fn print(&self, lines: &[String]) {
        lines.iter().for_each(|line| self.console.progress(&format!("{line}\n")));
    }
}

impl Renderer for RunRenderer {
    fn show(&mut self, notice: &DispatcherNotice<'_>) {
        if let Some(screen) = &self.screen {
            forward(screen, notice);
        }
        match notice {
            DispatcherNotice::Recorded(transition) if self.console.json_events => {
                self.console.progress(&format!("{}\n", json::event(&transition.event)));
            }
            DispatcherNotice::Recorded(transition) => {
                let lines = self.lines.apply(transition);
                self.print(&lines);
            }
            DispatcherNotice::Replayed(transition) => self.lines.replay(transition),
            DispatcherNotice::OutputLine { .. } => {}
            DispatcherNotice::Note(note) => self.console.note(note),
            DispatcherNotice::Stopping => self.lines.end_soon(),
            DispatcherNotice::Resumed { run } => {
                let lines = self.lines.caught_up(*run);
                if !self.console.json_events {
                    self.print(&lines);
                }
            }
        }
    }
}

/// Forwards a notice to the screen.
fn forward(screen: &Screen, notice: &DispatcherNotice<'_>) {
    let sender = screen.sender();
    match notice {
        DispatcherNotice::Recorded(transition) | DispatcherNotice::Replayed(transition) => {
            sender.send(ScreenMessage::Transitions { transitions: vec![(*transition).clone()], applied: None });
        }
        DispatcherNotice::Resumed { .. } => {}
        DispatcherNotice::OutputLine { run, loop_id, attempt, line, backpressure } => {
            sender.agent_line(AttemptKey::new(*run, loop_id, *attempt), line, backpressure);
        }
        DispatcherNotice::Note(note) => sender.send(ScreenMessage::Note((*note).to_owned())),
        DispatcherNotice::Stopping => sender.send(ScreenMessage::ShuttingDown),
    }
}

/// Line renderers, one for each run.
pub struct LineOutput {
    naming: LineNaming,
    renderers: BTreeMap<RunId, LineRenderer>,
    ending: bool,
}

impl LineOutput {
    pub fn new(naming: LineNaming) -> Self {
        Self { naming, renderers: BTreeMap::new(), ending: false }
    }

    /// Returns the lines of a new event.
    pub fn apply(&mut self, transition: &Transition) -> Vec<String> {
        let lines = self.renderer(transition.event.run).apply(transition);
        self.name_parallel_loops();
        lines
    }

    /// Takes in an event from before a run was resumed.
    pub fn replay(&mut self, transition: &Transition) {
        self.renderer(transition.event.run).replay(transition);
    }

    /// Returns the lines about a run whose past events were replayed.
    pub fn caught_up(&mut self, run: RunId) -> Vec<String> {
        let lines = self.renderer(run).caught_up();
        self.name_parallel_loops();
        lines
    }

    /// Stops announcing next steps, because the program is about to end.
    pub fn end_soon(&mut self) {
        self.ending = true;
    }

    /// Returns the renderer of a run, updated with the state shared by all runs.
    fn renderer(&mut self, run: RunId) -> &mut LineRenderer {
        let others: usize =
            self.renderers.iter().filter(|(other, _)| **other != run).map(|(_, renderer)| renderer.active()).sum();
        let renderer = self.renderers.entry(run).or_insert_with(|| LineRenderer::new(self.naming));
        if others > 0 {
            renderer.set_other_runs_active();
        }
        if self.ending {
            renderer.set_shutting_down();
        }
        renderer
    }

    /// Once several loops have been active at a time, every line names its task, even when only one is left.
    fn name_parallel_loops(&mut self) {
        if self.renderers.values().map(LineRenderer::active).sum::<usize>() > 1 {
            self.naming = LineNaming::Always;
            self.renderers.values_mut().for_each(LineRenderer::set_other_runs_active);
        }
    }
}
