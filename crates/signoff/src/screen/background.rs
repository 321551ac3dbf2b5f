//! Background threads of the screen: one looks things up, one records decisions. Both may be slow.

mod decisions;
mod lookups;

use std::path::PathBuf;
use std::sync::mpsc::{self, Sender};

use signoff_term::tui::{DataRequest, TuiRequest};

use self::decisions::UserDecision;
use super::ScreenSender;

/// The two background threads, each with its own connection to the store.
pub struct BackgroundWorker {
    lookups: Sender<DataRequest>,
    decisions: Sender<UserDecision>,
}

impl BackgroundWorker {
    /// Starts the threads for the repository at `root`.
    pub fn new(root: PathBuf, sender: &ScreenSender) -> Self {
        let ((looks, to_look), (decisions, to_decide)) = (mpsc::channel(), mpsc::channel());
        let (own, tell) = (root.clone(), sender.clone());
        std::thread::spawn(move || lookups::run(&own, &to_look, &tell));
        let tell = sender.clone();
        std::thread::spawn(move || decisions::run(&root, &to_decide, &tell));
        Self { lookups: looks, decisions }
    }

    /// Handles a request. The result is sent to the screen.
    pub fn handle(&self, request: TuiRequest) {
        match request {
            TuiRequest::Load(errand) => self.lookups.send(errand).ok(),
            TuiRequest::QuestionDecided(decided) => self.decisions.send(UserDecision::Question(decided)).ok(),
            TuiRequest::Decide(task, decision) => self.decisions.send(UserDecision::Task(task, decision)).ok(),
            TuiRequest::Quit | TuiRequest::Interrupt | TuiRequest::Replay(_) => None,
        };
    }
}
