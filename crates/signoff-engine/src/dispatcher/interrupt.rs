//! Ending before the work is done: step by step, as a person asks for it.

use super::{Dispatcher, Input, Interrupt, Notice};

impl Dispatcher<'_> {
    pub(super) fn interrupted(&mut self, interrupt: Interrupt) {
        self.summary.interrupted = true;
        self.interrupt = self.interrupt.max(Some(interrupt));
        self.renderer.take(&Notice::Ending);
        match interrupt {
            Interrupt::Finish => self
                .renderer
                .take(&Notice::Note("Finishing what is at work; press Ctrl-C again to stop the agents now.")),
            Interrupt::Stop | Interrupt::Kill => self.stop_all(interrupt),
        }
    }

    pub(super) fn stop_all(&self, interrupt: Interrupt) {
        for stopper in self.runs.values().flat_map(|run| run.at_work.values()).flatten() {
            match interrupt {
                Interrupt::Kill => stopper.kill(),
                Interrupt::Finish | Interrupt::Stop => stopper.stop(),
            }
        }
    }

    /// After an error that ends the drive: nothing of ours stays at work.
    pub(super) async fn await_agents(&mut self) {
        while self.runs.values().any(|run| !run.at_work.is_empty()) {
            let Some(input) = self.inputs.recv().await else { return };
            match input {
                Input::Running { stopper, .. } => stopper.kill(),
                Input::Reported(report) => {
                    if let Some(driven) = self.runs.get_mut(&report.run) {
                        driven.at_work.remove(&(report.loop_id, report.attempt));
                    }
                }
                Input::Placed { .. }
                | Input::Said { .. }
                | Input::Elapsed { .. }
                | Input::Offered { .. }
                | Input::Lost { .. }
                | Input::Closed { .. }
                | Input::Landed { .. }
                | Input::Interrupted(_)
                | Input::Note(_)
                | Input::Tick => {}
            }
        }
    }
}
