//! Formats the facts of one or several runs as progress lines.

use std::collections::BTreeMap;

use signoff_core::ids::RunId;
use signoff_core::wire::RecordedFact;
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

    /// Applies a new fact and returns its lines.
    pub fn apply(&mut self, recorded: &RecordedFact) -> Vec<String> {
        let lines = self.renderer(recorded.run).apply(recorded);
        self.name_parallel_loops();
        lines
    }

    /// Applies the facts recorded before a run was resumed.
    pub fn catch_up(&mut self, run: RunId, log: &[RecordedFact]) -> Vec<String> {
        let lines = self.renderer(run).catch_up(log);
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
