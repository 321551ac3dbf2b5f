//! The way of a person's answers from the screen to the dispatcher.

use std::sync::{Arc, OnceLock};

use signoff_core::command::Command;
use signoff_core::ids::{LoopId, QuestionId, RunId};
use signoff_core::machine::Choice;
use signoff_engine::dispatcher::Input;
use tokio::sync::mpsc::UnboundedSender;

use crate::door;

/// Who draws is there before who decides; until then nobody asks anything.
#[derive(Debug, Clone, Default)]
pub struct Answers(Arc<OnceLock<UnboundedSender<Input>>>);

impl Answers {
    pub fn go_to(&self, dispatcher: UnboundedSender<Input>) {
        self.0.set(dispatcher).ok();
    }

    /// Hands an answer over, as `signoff answer` does.
    pub fn answer(&self, (run, loop_id): (RunId, LoopId), question: QuestionId, choice: Choice) {
        let (question, choice) = (Some(question), choice.word().to_owned());
        let command = Command::Answer { question, choice, by: door::person() };
        self.send(Input::Decided { run, loop_id, command });
    }

    /// A question stays open, and is not waited for.
    pub fn later(&self, (run, loop_id): (RunId, LoopId), question: QuestionId) {
        self.send(Input::Left { run, loop_id, question });
    }

    /// Whether anybody can be asked.
    pub fn attended(&self, attended: bool) {
        self.send(Input::Attended(attended));
    }

    fn send(&self, input: Input) {
        if let Some(dispatcher) = self.0.get() {
            dispatcher.send(input).ok();
        }
    }
}
