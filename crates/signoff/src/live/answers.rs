//! The way of a person's answers from the screen to the dispatcher.

use std::sync::{Arc, OnceLock};

use signoff_core::command::Command;
use signoff_engine::dispatcher::Input;
use signoff_term::dialogue::Decided;
use tokio::sync::mpsc::UnboundedSender;

use crate::door;

/// Who draws is there before who decides; until then nobody asks anything.
#[derive(Debug, Clone, Default)]
pub struct Answers(Arc<OnceLock<UnboundedSender<Input>>>);

impl Answers {
    pub fn go_to(&self, dispatcher: UnboundedSender<Input>) {
        self.0.set(dispatcher).ok();
    }

    /// Hands a decision over, as `signoff answer` does.
    pub fn decided(&self, decided: &Decided) {
        self.send(match decided.clone() {
            Decided::Answer { run, loop_id, question, choice } => {
                let (question, choice) = (Some(question), choice.word().to_owned());
                Input::Decided {
                    run,
                    loop_id,
                    command: Command::Answer { question, choice, by: door::person() },
                }
            }
            Decided::Later { run, loop_id, question, how: _ } => Input::Left { run, loop_id, question },
        });
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
