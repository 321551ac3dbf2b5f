//! Formats the events of one or several runs as progress lines.

use std::collections::BTreeMap;

use signoff_core::ids::RunId;
use signoff_core::view::Transition;
use signoff_term::line::{LineRenderer, Naming};

/// Line renderers, one for each run.
pub struct LineOutput {
    naming: Naming,
    renderers: BTreeMap<RunId, LineRenderer>,
    ending: bool,
}

impl LineOutput {
    pub fn new(naming: Naming) -> Self {
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
            self.renderers.iter().filter(|(other, _)| **other != run).map(|(_, one)| one.active()).sum();
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
            self.naming = Naming::Always;
            self.renderers.values_mut().for_each(LineRenderer::set_other_runs_active);
        }
    }
}
