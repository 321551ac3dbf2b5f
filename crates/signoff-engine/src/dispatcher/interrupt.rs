//! Ending before the work is done: step by step, as a person asks for it.

use super::{Dispatcher, Driven, Input, Interrupt, Notice, Onto};

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
        for stopper in self.runs.values().flat_map(Driven::stoppers) {
            match interrupt {
                Interrupt::Kill => stopper.kill(),
                Interrupt::Finish | Interrupt::Stop => stopper.stop(),
            }
        }
    }

    /// After an error that ends the drive: nothing of ours stays at work.
    pub(super) async fn await_agents(&mut self) {
        while self.runs.values().any(Driven::is_at_work) {
            let Some(input) = self.inputs.recv().await else { return };
            match input {
                Input::Running { stopper, .. } | Input::Landing { stopper, .. } => stopper.kill(),
                Input::Reported(report) => {
                    if let Some(driven) = self.runs.get_mut(&report.run) {
                        driven.at_work.remove(&(report.loop_id, report.attempt));
                    }
                }
                // What landed is found there next time.
                Input::Landed { run, .. } => {
                    if let Some(driven) = self.runs.get_mut(&run) {
                        driven.landing = Onto::Nothing;
                    }
                }
                Input::Placed { .. }
                | Input::Said { .. }
                | Input::Elapsed { .. }
                | Input::Offered { .. }
                | Input::Lost { .. }
                | Input::Closed { .. }
                | Input::Interrupted(_)
                | Input::Decided { .. }
                | Input::Left { .. }
                | Input::Attended(_)
                | Input::Note(_)
                | Input::Tick => {}
            }
        }
    }
}
