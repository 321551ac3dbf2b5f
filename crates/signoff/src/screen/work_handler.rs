//! Handles the requests of the screen while this process runs the dispatcher.

use signoff_term::dialogue::QuestionDecision;
use signoff_term::tui::TuiRequest;

use super::{BackgroundWorker, CloseReason, DispatcherHandle, QueueWatcher, RequestHandler};
use crate::console::write_stderr;

/// Sends answers directly to the dispatcher; other decisions go through the store, as from another process.
pub struct WorkHandler {
    pub dispatcher: DispatcherHandle,
    /// Whether the user may be asked questions.
    pub attended: bool,
    pub background: BackgroundWorker,
    /// Dropped when the screen is closed.
    pub queue: Option<QueueWatcher>,
}

impl RequestHandler for WorkHandler {
    fn handle(&mut self, request: TuiRequest) {
        match request {
            TuiRequest::QuestionDecided(QuestionDecision::Answer { run, loop_id, question, choice }) => {
                self.dispatcher.answer(run, loop_id, question, choice);
            }
            TuiRequest::QuestionDecided(QuestionDecision::Later { run, loop_id, question, answer_command: how }) => {
                // Printed when the screen closes.
                write_stderr(&format!("Left for later: {how}\n"));
                self.dispatcher.later(run, loop_id, question);
            }
            TuiRequest::Interrupt => self.dispatcher.interrupt(),
            TuiRequest::Quit | TuiRequest::Decide(..) | TuiRequest::Load(_) | TuiRequest::Replay(_) => {
                self.background.handle(request)
            }
        }
    }

    fn set_visible(&mut self, seen: bool) {
        self.dispatcher.set_attended(seen && self.attended);
    }

    /// Work continues with progress lines, which cannot ask questions.
    fn closed(&mut self, _left: CloseReason) {
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
