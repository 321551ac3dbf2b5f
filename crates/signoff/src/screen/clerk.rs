//! Whoever looks things up for the screen, and carries decisions to those who work: both may take a while.

mod decide;
mod look;

use std::path::PathBuf;
use std::sync::mpsc::{self, Sender};

use signoff_term::tui::Wish;

use super::Teller;

/// Two threads, each with a door of its own to the store.
pub struct Clerk {
    looks: Sender<Wish>,
    decisions: Sender<Wish>,
}

impl Clerk {
    /// For the repository whose top this is.
    pub fn new(root: PathBuf, teller: &Teller) -> Self {
        let ((looks, to_look), (decisions, to_decide)) = (mpsc::channel(), mpsc::channel());
        let (own, tell) = (root.clone(), teller.clone());
        std::thread::spawn(move || look::until_told_off(&own, &to_look, &tell));
        let tell = teller.clone();
        std::thread::spawn(move || decide::until_told_off(&root, &to_decide, &tell));
        Self { looks, decisions }
    }

    /// Takes a wish; what comes of it is told to the screen.
    pub fn fulfil(&self, wish: Wish) {
        match &wish {
            Wish::Report(_) | Wish::Diff(_) | Wish::Transcript { .. } => self.looks.send(wish).ok(),
            Wish::Answer { .. }
            | Wish::Retry(_)
            | Wish::Cancel(_)
            | Wish::Edit { .. }
            | Wish::Dispute { .. } => self.decisions.send(wish).ok(),
            Wish::Quit
            | Wish::Interrupt
            | Wish::Later { .. }
            | Wish::Faster
            | Wish::Slower
            | Wish::PauseReplay => None,
        };
    }
}
