//! What happens, told in lines: of one run or of several at once.

use std::collections::BTreeMap;

use signoff_core::ids::RunId;
use signoff_core::wire::Recorded;
use signoff_term::line::{LineRenderer, Naming};

/// The lines of all runs, each with a renderer of its own.
pub struct Tale {
    naming: Naming,
    lines: BTreeMap<RunId, LineRenderer>,
    ends: bool,
}

impl Tale {
    pub fn new(naming: Naming) -> Self {
        Self { naming, lines: BTreeMap::new(), ends: false }
    }

    /// The lines of a new fact.
    pub fn take(&mut self, recorded: &Recorded) -> Vec<String> {
        let lines = self.renderer(recorded.run).take(recorded);
        self.tell_apart();
        lines
    }

    /// Takes in what was told before.
    pub fn catch_up(&mut self, run: RunId, log: &[Recorded]) -> Vec<String> {
        let lines = self.renderer(run).catch_up(log);
        self.tell_apart();
        lines
    }

    /// From now on nothing is announced that will not happen any more.
    pub fn end_soon(&mut self) {
        self.ends = true;
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
}
