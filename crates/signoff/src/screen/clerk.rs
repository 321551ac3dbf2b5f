//! Whoever looks things up for the screen, and carries decisions to those who work: both may take a while.

mod decide;
mod look;

use std::path::PathBuf;
use std::sync::mpsc::{self, Sender};

use signoff_term::tui::{Errand, Wish};

use self::decide::Heard;
use super::Teller;

/// Two threads, each with a door of its own to the store.
pub struct Clerk {
    looks: Sender<Errand>,
    decisions: Sender<Heard>,
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
        match wish {
            Wish::Look(errand) => self.looks.send(errand).ok(),
            Wish::Settle(decided) => self.decisions.send(Heard::Settled(decided)).ok(),
            Wish::Decide(task, decision) => self.decisions.send(Heard::About(task, decision)).ok(),
            Wish::Quit | Wish::Interrupt | Wish::Replay(_) => None,
        };
    }
}
