//! Records decisions made on the screen, like the commands of the same names.

use std::path::Path;
use std::sync::mpsc::Receiver;

use signoff_core::command::LoopCommand;
use signoff_core::ids::TaskId;
use signoff_term::dialogue::QuestionDecision;
use signoff_term::tui::TaskDecision;

use super::ScreenSender;
use crate::command::decide::{DecisionResult, decide};
use crate::command::{cancel, dispute, edit, retry};
use crate::{CliError, ReadOnlyProject, host};

/// A decision by the user.
pub enum UserDecision {
    Question(QuestionDecision),
    Task(TaskId, TaskDecision),
}

/// Records decisions until the channel closes.
pub fn run(root: &Path, decisions: &Receiver<UserDecision>, sender: &ScreenSender) {
    for decision in decisions {
        let note = record(root, decision).unwrap_or_else(|failure| Some(failure.one_line()));
        if let Some(note) = note {
            sender.note(&note);
        }
    }
}

/// Records a decision and returns the note to show.
fn record(root: &Path, decision: UserDecision) -> Result<Option<String>, CliError> {
    let Some(project) = ReadOnlyProject::open_at(root.to_owned())? else { return Ok(None) };
    Ok(match decision {
        UserDecision::Question(QuestionDecision::Answer { run, loop_id, question, choice }) => {
            let (question, choice) = (Some(question), choice.as_str());
            let command = LoopCommand::Answer { question, choice: choice.to_owned(), by: host::user_name() };
            Some(with_next_step(
                &decide(&project, run, &loop_id, command)?,
                format!("Answered {choice}; the task goes on"),
            ))
        }
        // The question stays open; the screen has shown how to answer it later.
        UserDecision::Question(QuestionDecision::Later { .. }) => None,
        UserDecision::Task(task, TaskDecision::Retry) => {
            Some(with_next_step(&retry::retry(&project, task)?, format!("Task #{task} goes on")))
        }
        UserDecision::Task(task, TaskDecision::Cancel) => Some(cancelled(task, cancel::cancel(&project, task)?)),
        UserDecision::Task(task, TaskDecision::Edit { verdict, reason }) => {
            let word = verdict.as_str();
            let result = edit::edit(&project, task, word, host::user_name(), &reason)?;
            let note = result.note().map(|note| format!("; {note}")).unwrap_or_default();
            Some(format!("Task #{task} is {word} by {}{note}", host::user_name()))
        }
        UserDecision::Task(task, TaskDecision::Dispute { finding, reason }) => {
            let (place, _) = dispute::dispute(&project, finding.as_str(), Some(task), &reason)?;
            Some(format!("Finding {} is refuted by {}", place.finding, host::user_name()))
        }
    })
}

/// Adds how to continue if no process is driving the run.
fn with_next_step(result: &DecisionResult, text: String) -> String {
    match result {
        DecisionResult::HandedOver => text,
        DecisionResult::Recorded { note: None } => format!("{text}: `signoff work` does"),
        DecisionResult::Recorded { note: Some(note) } => format!("{text}: `signoff work` does; {note}"),
    }
}

fn cancelled(task: TaskId, notes: Vec<String>) -> String {
    let notes_with_title: Vec<_> = [format!("Task #{task} cancelled")].into_iter().chain(notes).collect();
    notes_with_title.join("; ")
}
