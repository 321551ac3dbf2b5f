//! The text of `signoff` alone: what needs a person, what runs, how much there is.

use std::collections::BTreeSet;

use signoff_core::view::{QuestionRow, Status, TaskRow};

use crate::fit::cut;
use crate::{status, words};

const EMPTY: &str = "\
Nothing to do yet.

  signoff add \"what is to be done\" -a    a task, reviewed until it is approved
  signoff work                           works the tasks
  signoff run PLAN                       works the tasks of a plan file

`signoff --help` lists all commands.
";

/// How much is told of what needs attention; `signoff status` has the rest.
const SHOWN: usize = 20;

/// What needs attention first, then what runs, then counts.
pub fn text(tasks: &[TaskRow], questions: &[QuestionRow], title: usize) -> String {
    if tasks.is_empty() && questions.is_empty() {
        return EMPTY.to_owned();
    }
    let continued: BTreeSet<u64> = tasks.iter().filter_map(|task| task.continues).collect();
    let is_open = |task: &&TaskRow| !continued.contains(&task.id);
    let mut troubled: Vec<(u8, &TaskRow)> =
        tasks.iter().filter(is_open).filter_map(|task| Some((urgency(task)?, task))).collect();
    troubled.sort_by_key(|(urgency, task)| (*urgency, task.id));
    let running: Vec<_> = tasks.iter().filter(|task| task.status == Status::InProgress).cloned().collect();
    let mut parts = Vec::new();
    if !questions.is_empty() || !troubled.is_empty() {
        parts.push(needed(questions, &troubled));
    }
    if !running.is_empty() {
        parts.push(format!("Running:\n{}", status::rows(&running, title)));
    }
    parts.push(counts(tasks));
    parts.join("\n")
}

fn needed(questions: &[QuestionRow], troubled: &[(u8, &TaskRow)]) -> String {
    let mut out = String::from("Needs attention:\n");
    for question in questions.iter().take(SHOWN) {
        out.push_str(&status::asked(question));
    }
    for (_, task) in troubled.iter().take(SHOWN) {
        let title = cut(&task.title, status::TITLE);
        let standing = status::in_words(task);
        out.push_str(&format!("  {} {}. {title}: {standing}\n", words::mark(task.status), task.id));
        out.push_str(&format!("      {}\n", next(task)));
    }
    let more = questions.len().saturating_sub(SHOWN) + troubled.len().saturating_sub(SHOWN);
    if more > 0 {
        out.push_str(&format!("  … and {more} more: signoff status\n"));
    }
    out
}

/// How soon somebody should look: the lower the sooner. Waiting tasks are told by their question.
fn urgency(task: &TaskRow) -> Option<u8> {
    match (task.status, task.outcome.as_deref()) {
        (Status::Failed, _) => Some(0),
        (Status::Stuck, _) => Some(1),
        (Status::Completed, Some("exhausted")) => Some(2),
        (Status::Completed, Some("discussion")) => Some(3),
        (Status::Completed, Some("completed_with_issues")) => Some(4),
        (Status::Blocked, _) => Some(5),
        (Status::Paused, _) => Some(6),
        (
            Status::Pending | Status::InProgress | Status::Waiting | Status::Completed | Status::Cancelled,
            _,
        ) => None,
    }
}

/// What to type about a task that needs somebody.
pub fn next(task: &TaskRow) -> String {
    let id = task.id;
    match (task.status, task.outcome.as_deref()) {
        (Status::Failed, _) if task.reason.as_deref() == Some("gate_failed") => {
            format!("signoff show {id}, then signoff improve {id} --review")
        }
        (Status::Failed | Status::Stuck, _) => format!("signoff show {id}, then signoff retry {id}"),
        (Status::Paused, _) => format!("raise the budget or wait, then signoff work {id}"),
        (Status::Blocked, _) => "its group waits for another task; settle that one first".to_owned(),
        (Status::Pending, _) => format!("signoff work {id}"),
        (Status::InProgress | Status::Waiting, _) => format!("signoff logs {id} -f"),
        (Status::Completed, Some("exhausted")) => {
            format!(
                "signoff show {id}, then signoff improve {id} --review or signoff edit {id} --verdict APPROVED"
            )
        }
        (Status::Completed, Some("discussion")) => {
            format!("signoff show {id}, then signoff retry {id} or signoff edit {id} --verdict APPROVED")
        }
        (Status::Completed, Some(_)) if task.reason.as_deref() == Some("changed_after_review") => {
            format!("signoff diff {id}, then signoff review {id}")
        }
        (Status::Completed, Some("completed_with_issues")) => {
            format!("signoff show {id}, then signoff improve {id} --review")
        }
        (Status::Completed, _) => {
            let branch = task.branch.as_deref().unwrap_or("its branch");
            format!("signoff diff {id}, then git merge {branch}")
        }
        (Status::Cancelled, _) => "signoff add adds it again".to_owned(),
    }
}

fn counts(tasks: &[TaskRow]) -> String {
    let number = |status: Status| tasks.iter().filter(|task| task.status == status).count();
    let counted = Status::ALL.into_iter().map(|status| (number(status), status.word()));
    let counted: Vec<_> =
        counted.filter(|(number, _)| *number > 0).map(|(number, word)| format!("{number} {word}")).collect();
    let hint = if number(Status::Pending) > 0 { "\n  signoff work    works what is pending" } else { "" };
    format!("{}{hint}\n", counted.join(", "))
}
