//! Handles the requests of the screen while this process runs the dispatcher: sends it the answers and interrupts.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};

use signoff_core::command::LoopCommand;
use signoff_core::ids::QuestionId;
use signoff_core::machine::Choice;
use signoff_engine::dispatcher::{DispatcherInput, Interrupt};
use signoff_term::question_queue::QuestionDecision;
use signoff_term::tui::TuiRequest;
use tokio::sync::mpsc::UnboundedSender;

use super::{BackgroundWorker, CloseReason, RequestHandler};
use crate::console::write_stderr;
use crate::host;

/// Sends answers directly to the dispatcher; other decisions go through the store, as from another process.
pub struct WorkHandler {
    pub dispatcher: DispatcherHandle,
    /// Whether the user may be asked questions.
    pub attended: bool,
    pub background: BackgroundWorker,
    /// Ends the watch of the queue when it is dropped, as the screen is closed.
    pub queue: Option<Sender<()>>,
}

impl RequestHandler for WorkHandler {
    fn handle(&mut self, request: TuiRequest) {
        match request {
            TuiRequest::QuestionDecided(QuestionDecision::Answer { run, loop_id, question, choice }) => {
                let command = answer(question, choice);
                self.dispatcher.send(DispatcherInput::Decided { run, loop_id, command });
            }
            TuiRequest::QuestionDecided(QuestionDecision::Later { run, loop_id, question, answer_command }) => {
                // Printed when the screen closes.
                write_stderr(&format!("Question postponed: {answer_command}\n"));
                self.dispatcher.send(DispatcherInput::QuestionDeferred { run, loop_id, question });
            }
            TuiRequest::Interrupt => self.dispatcher.interrupt(),
            TuiRequest::Quit | TuiRequest::Decide(..) | TuiRequest::Load(_) | TuiRequest::Replay(_) => {
                self.background.handle(request)
            }
        }
    }

    fn set_visible(&mut self, visible: bool) {
        self.dispatcher.set_attended(visible && self.attended);
    }

    /// Work continues with progress lines, which cannot ask questions.
    fn closed(&mut self, _reason: CloseReason) {
        self.dispatcher.set_attended(false);
        drop(self.queue.take());
    }
}

/// Runs also after a panic of the drawing thread: the dispatcher must not wait for answers.
impl Drop for WorkHandler {
    fn drop(&mut self) {
        self.dispatcher.set_attended(false);
    }
}

/// The user's answer to a question, as `signoff answer` records it.
pub fn answer(question: QuestionId, choice: Choice) -> LoopCommand {
    LoopCommand::Answer { question: Some(question), choice, by: host::user_name() }
}

/// A handle to the dispatcher. The screen is opened before the dispatcher exists, so it is connected later.
#[derive(Debug, Clone, Default)]
pub struct DispatcherHandle {
    dispatcher: Arc<OnceLock<UnboundedSender<DispatcherInput>>>,
    /// Number of interrupts so far, by key or signal.
    interrupts: Arc<AtomicU32>,
}

impl DispatcherHandle {
    pub fn connect(&self, dispatcher: UnboundedSender<DispatcherInput>) {
        self.dispatcher.set(dispatcher).ok();
        if let Some(earlier) = interrupt_level(self.interrupts.load(Ordering::SeqCst)) {
            self.send(DispatcherInput::Interrupted(earlier));
        }
    }

    /// The first interrupt lets running agents finish, the second stops them, the third kills them.
    pub fn interrupt(&self) {
        let interrupts = self.interrupts.fetch_add(1, Ordering::SeqCst) + 1;
        if let Some(interrupt) = interrupt_level(interrupts) {
            self.send(DispatcherInput::Interrupted(interrupt));
        }
    }

    /// Sets whether the user can be asked questions.
    pub fn set_attended(&self, attended: bool) {
        self.send(DispatcherInput::Attended(attended));
    }

    fn send(&self, input: DispatcherInput) {
        if let Some(dispatcher) = self.dispatcher.get() {
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
        let (sender, mut received) = tokio::sync::mpsc::unbounded_channel();
        let handle = DispatcherHandle::default();
        handle.interrupt();
        handle.connect(sender);
        (0..2).for_each(|_| handle.interrupt());
        let mut interrupts = Vec::new();
        while let Ok(DispatcherInput::Interrupted(interrupt)) = received.try_recv() {
            interrupts.push(format!("{interrupt:?}"));
        }
        assert_eq!(interrupts, ["Finish", "Stop", "Kill"]);
    }
}
