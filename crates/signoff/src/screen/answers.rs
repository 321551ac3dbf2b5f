//! The way of a person's answers from the screen to the dispatcher.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use signoff_core::command::Command;
use signoff_core::ids::{LoopId, QuestionId, RunId};
use signoff_core::machine::Choice;
use signoff_engine::dispatcher::{Input, Interrupt};
use tokio::sync::mpsc::UnboundedSender;

use crate::door;

/// Who draws is there before who decides; until then nobody asks anything.
#[derive(Debug, Clone, Default)]
pub struct Answers(Arc<Way>);

#[derive(Debug, Default)]
struct Way {
    dispatcher: OnceLock<UnboundedSender<Input>>,
    /// How often somebody interrupted, with a key or with a signal.
    interrupts: AtomicU32,
}

impl Answers {
    pub fn go_to(&self, dispatcher: UnboundedSender<Input>) {
        self.0.dispatcher.set(dispatcher).ok();
        if let Some(earlier) = stronger(self.0.interrupts.load(Ordering::SeqCst)) {
            self.send(Input::Interrupted(earlier));
        }
    }

    /// First: finish what is at work. Second: stop the agents. Third: at once.
    pub fn interrupt(&self) {
        let heard = self.0.interrupts.fetch_add(1, Ordering::SeqCst) + 1;
        stronger(heard).into_iter().for_each(|interrupt| self.send(Input::Interrupted(interrupt)));
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
        if let Some(dispatcher) = self.0.dispatcher.get() {
            dispatcher.send(input).ok();
        }
    }
}

/// What so many interrupts mean.
fn stronger(heard: u32) -> Option<Interrupt> {
    match heard {
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
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let answers = Answers::default();
        answers.interrupt();
        answers.go_to(tell);
        (0..2).for_each(|_| answers.interrupt());
        let mut heard = Vec::new();
        while let Ok(Input::Interrupted(interrupt)) = told.try_recv() {
            heard.push(format!("{interrupt:?}"));
        }
        assert_eq!(heard, ["Finish", "Stop", "Kill"]);
    }
}
