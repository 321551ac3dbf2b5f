//! Sends the user's answers and interrupts from the screen to the dispatcher.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use signoff_core::command::LoopCommand;
use signoff_core::ids::{LoopId, QuestionId, RunId};
use signoff_core::machine::Choice;
use signoff_engine::dispatcher::{DispatcherInput, Interrupt};
use tokio::sync::mpsc::UnboundedSender;

use crate::host;

/// A handle to the dispatcher. The screen is opened before the dispatcher exists, so it is connected later.
#[derive(Debug, Clone, Default)]
pub struct DispatcherHandle(Arc<DispatcherLink>);

#[derive(Debug, Default)]
struct DispatcherLink {
    dispatcher: OnceLock<UnboundedSender<DispatcherInput>>,
    /// Number of interrupts so far, by key or signal.
    interrupts: AtomicU32,
}

impl DispatcherHandle {
    pub fn connect(&self, dispatcher: UnboundedSender<DispatcherInput>) {
        self.0.dispatcher.set(dispatcher).ok();
        if let Some(earlier) = interrupt_level(self.0.interrupts.load(Ordering::SeqCst)) {
            self.send(DispatcherInput::Interrupted(earlier));
        }
    }

    /// The first interrupt lets running agents finish, the second stops them, the third kills them.
    pub fn interrupt(&self) {
        let interrupts = self.0.interrupts.fetch_add(1, Ordering::SeqCst) + 1;
        interrupt_level(interrupts)
            .into_iter()
            .for_each(|interrupt| self.send(DispatcherInput::Interrupted(interrupt)));
    }

    /// Sends an answer, as `signoff answer` does.
    pub fn answer(&self, run: RunId, loop_id: LoopId, question: QuestionId, choice: Choice) {
        let (question, choice) = (Some(question), choice.as_str().to_owned());
        let command = LoopCommand::Answer { question, choice, by: host::user_name() };
        self.send(DispatcherInput::Decided { run, loop_id, command });
    }

    /// Leaves a question open and stops waiting for its answer.
    pub fn later(&self, run: RunId, loop_id: LoopId, question: QuestionId) {
        self.send(DispatcherInput::QuestionDeferred { run, loop_id, question });
    }

    /// Sets whether the user can be asked questions.
    pub fn set_attended(&self, attended: bool) {
        self.send(DispatcherInput::Attended(attended));
    }

    fn send(&self, input: DispatcherInput) {
        if let Some(dispatcher) = self.0.dispatcher.get() {
            dispatcher.send(input).ok();
        }
    }
}

/// The effect of the given number of interrupts.
fn interrupt_level(interrupts: u32) -> Option<Interrupt> {
    match interrupts {
        0 => None,
        1 => Some(Interrupt::Finish),
        2 => Some(Interrupt::Stop),
        3.. => Some(Interrupt::Kill),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_keys_at_once_are_two_interrupts() {
        let (tell, mut received) = tokio::sync::mpsc::unbounded_channel();
        let handle = DispatcherHandle::default();
        handle.interrupt();
        handle.connect(tell);
        (0..2).for_each(|_| handle.interrupt());
        let mut interrupts = Vec::new();
        while let Ok(DispatcherInput::Interrupted(interrupt)) = received.try_recv() {
            interrupts.push(format!("{interrupt:?}"));
        }
        assert_eq!(interrupts, ["Finish", "Stop", "Kill"]);
    }
}
