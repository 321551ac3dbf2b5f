//! The dialogue with the person who sits there, and the terminal's keys while it lasts.

use std::sync::Arc;

use signoff_core::ids::{LoopId, RunId};
use signoff_term::dialogue::{Decided, Dialogue, Question};
use signoff_term::progress::Room;

use super::answers::Answers;
use super::keys::{Heard, Keys};

/// Where keys go.
type Tell = Arc<dyn Fn(Heard) + Send + Sync>;

pub struct Asking {
    dialogue: Dialogue,
    answers: Answers,
    tell: Tell,
    /// Ours only while there is something to ask.
    keys: Option<Keys>,
    /// Nobody can press keys any more.
    deaf: bool,
    /// What the dispatcher was told last.
    attended: bool,
}

impl Asking {
    pub fn new(answers: Answers, tell: Tell) -> Self {
        Self { dialogue: Dialogue::default(), answers, tell, keys: None, deaf: false, attended: true }
    }

    /// What a loop asks, if it does.
    pub fn take(&mut self, (run, loop_id): (RunId, &LoopId), question: Option<Question>) {
        self.dialogue.take((run, loop_id), question);
    }

    pub fn close(&mut self) {
        self.dialogue.close();
    }

    /// Takes a key in. Gives what the person should know.
    pub fn hear(&mut self, heard: Heard) -> Option<String> {
        let Heard::Key(key) = heard else {
            self.deaf = true;
            return None;
        };
        let decided = self.dialogue.press(key)?;
        self.answers.decided(&decided);
        match decided {
            Decided::Later { how, .. } => Some(format!("Left for later: {how}")),
            Decided::Answer { .. } => None,
        }
    }

    /// Takes the keys while there is something to ask and the terminal is ours, and gives them back otherwise.
    pub fn attend(&mut self) {
        let asks = self.dialogue.is_open();
        if !asks || self.deaf || !self.keys.as_ref().is_some_and(Keys::hold) {
            // Given back before they are taken anew.
            self.keys = None;
        }
        if asks && !self.deaf && self.keys.is_none() {
            let tell = self.tell.clone();
            self.keys = Keys::listen(move |heard| tell(heard));
        }
        if asks && self.attended != self.keys.is_some() {
            self.attended = self.keys.is_some();
            self.answers.attended(self.attended);
        }
    }

    pub fn lines(&self, room: Room) -> Vec<String> {
        if self.keys.is_some() { self.dialogue.lines(room) } else { Vec::new() }
    }
}
