//! Stops a drive before the work is done, in steps that the user controls.

use super::{ActiveRun, Dispatcher, DispatcherInput, DispatcherNotice, Interrupt, RunLanding};

impl Dispatcher<'_> {
    pub(super) fn interrupt_requested(&mut self, interrupt: Interrupt) {
        self.summary.interrupted = true;
        self.interrupt = self.interrupt.max(Some(interrupt));
        self.renderer.show(&DispatcherNotice::Stopping);
        match interrupt {
            Interrupt::Finish => self.renderer.show(&DispatcherNotice::Note(
                "Finishing the running agents; press Ctrl-C again to stop the agents now.",
            )),
            Interrupt::Stop | Interrupt::Kill => self.stop_all(interrupt),
        }
    }

    pub(super) fn stop_all(&self, interrupt: Interrupt) {
        for stopper in self.runs.values().flat_map(ActiveRun::stoppers) {
            match interrupt {
                Interrupt::Kill => stopper.kill(),
                Interrupt::Finish | Interrupt::Stop => stopper.stop(),
            }
        }
    }

    /// Kills and awaits all agents after an error that ends the drive.
    pub(super) async fn await_agents(&mut self) {
        while self.runs.values().any(ActiveRun::is_running) {
            let Some(input) = self.inputs.recv().await else { return };
            match input {
                DispatcherInput::Running { stopper, .. } | DispatcherInput::Landing { stopper, .. } => stopper.kill(),
                DispatcherInput::AttemptEnded(key, _) => {
                    if let Some(active) = self.runs.get_mut(&key.run) {
                        active.running.remove(&(key.loop_id, key.attempt));
                    }
                }
                // The next drive finds what landed.
                DispatcherInput::Landed { run, .. } => {
                    if let Some(active) = self.runs.get_mut(&run) {
                        active.landing = RunLanding::Idle;
                    }
                }
                DispatcherInput::WorkspaceCreated { .. }
                | DispatcherInput::OutputLine { .. }
                | DispatcherInput::PauseElapsed { .. }
                | DispatcherInput::Offered { .. }
                | DispatcherInput::ClaimLost { .. }
                | DispatcherInput::Closed { .. }
                | DispatcherInput::Interrupted(_)
                | DispatcherInput::Decided { .. }
                | DispatcherInput::QuestionDeferred { .. }
                | DispatcherInput::Attended(_)
                | DispatcherInput::Note(_)
                | DispatcherInput::Tick => {}
            }
        }
    }
}
