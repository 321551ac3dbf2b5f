//! Renders a run while it is worked: as lines, as JSON events, and on a terminal also on the screen.
//!
//! Lines are always produced. While the screen is shown they are buffered and printed when it closes.

mod line_output;

pub use line_output::LineOutput;

use std::sync::Arc;

use signoff_engine::dispatcher::{DispatcherNotice, Renderer};
use signoff_engine::executor::AttemptKey;
use signoff_term::json;
use signoff_term::line::Naming;

use crate::Console;
use crate::screen::Screen;

/// The renderer selected by the command line.
pub struct RunRenderer {
    console: Console,
    lines: LineOutput,
    screen: Option<Screen>,
}

impl RunRenderer {
    pub fn new(console: &Console, naming: Naming, screen: Option<Screen>) -> Self {
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
            sender.transitions(vec![(*transition).clone()], &Arc::default());
        }
        DispatcherNotice::Resumed { .. } => {}
        DispatcherNotice::OutputLine { run, loop_id, attempt, line, backpressure: unheard } => {
            sender.agent_line(AttemptKey::new(*run, loop_id, *attempt), line, unheard);
        }
        DispatcherNotice::Note(note) => sender.note(note),
        DispatcherNotice::Stopping => sender.ending(),
    }
}
