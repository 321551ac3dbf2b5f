//! A person's decisions on the screen: taken in as if they had been typed.

use std::path::Path;
use std::sync::mpsc::Receiver;

use signoff_core::command::Command;
use signoff_core::ids::TaskId;
use signoff_term::dialogue::Decided;
use signoff_term::tui::Decision;

use super::Teller;
use crate::command::decide::{Taken, decide};
use crate::command::{cancel, dispute, edit, retry};
use crate::desk::Desk;
use crate::door;
use crate::failure::Failure;

/// What a person decided.
pub enum Heard {
    Settled(Decided),
    About(TaskId, Decision),
}

/// Takes decisions until nobody makes any more.
pub fn until_told_off(root: &Path, decisions: &Receiver<Heard>, teller: &Teller) {
    for heard in decisions {
        let told = decided(root, heard).unwrap_or_else(|failure| Some(failure.in_a_line()));
        if let Some(note) = told {
            teller.note(&note);
        }
    }
}

/// What the person should know of it.
fn decided(root: &Path, heard: Heard) -> Result<Option<String>, Failure> {
    let Some(desk) = Desk::at(root.to_owned())? else { return Ok(None) };
    Ok(match heard {
        Heard::Settled(Decided::Answer { run, loop_id, question, choice }) => {
            let (question, choice) = (Some(question), choice.word());
            let wish = Command::Answer { question, choice: choice.to_owned(), by: door::person() };
            Some(told(&decide(&desk, run, &loop_id, wish)?, format!("Answered {choice}; the task goes on")))
        }
        // It stays open; the screen has said how it can be answered.
        Heard::Settled(Decided::Later { .. }) => None,
        Heard::About(task, Decision::Retry) => {
            Some(told(&retry::retry(&desk, task)?, format!("Task #{task} goes on")))
        }
        Heard::About(task, Decision::Cancel) => Some(cancelled(task, cancel::cancel(&desk, task)?)),
        Heard::About(task, Decision::Edit { verdict, reason }) => {
            let word = verdict.word();
            let taken = edit::edit(&desk, task, (word, door::person()), &reason)?;
            let note = taken.note().map(|note| format!("; {note}")).unwrap_or_default();
            Some(format!("Task #{task} is {word} by {}{note}", door::person()))
        }
        Heard::About(task, Decision::Dispute { finding, reason }) => {
            let (place, _) = dispute::dispute(&desk, finding.as_str(), Some(task), &reason)?;
            Some(format!("Finding {} is refuted by {}", place.finding, door::person()))
        }
    })
}

/// Where nobody drives the run, somebody has to.
fn told(taken: &Taken, text: String) -> String {
    match taken {
        Taken::HandedOver => text,
        Taken::Recorded { note: None } => format!("{text}: `signoff work` does"),
        Taken::Recorded { note: Some(note) } => format!("{text}: `signoff work` does; {note}"),
    }
}

fn cancelled(task: TaskId, notes: Vec<String>) -> String {
    let told: Vec<_> = [format!("Task #{task} cancelled")].into_iter().chain(notes).collect();
    told.join("; ")
}
