//! What people do on the page, done as the commands of the same names do it.

use std::path::Path;

use signoff_core::ids::TaskId;
use signoff_core::task::{TaskSpec, TaskType};
use signoff_engine::git::Repository;
use signoff_serve::web::{Done, NewTask, Refused, Why, Wish};
use signoff_store::Store;
use signoff_term::line;

use super::refused;
use crate::command::decide::Taken;
use crate::command::{add, answer, cancel, dispute, edit, retry};
use crate::desk::{Bench, Desk, persons_git, with_checks};
use crate::door;
use crate::failure::Failure;
use crate::settings;

/// Does it.
pub fn fulfil(wish: Wish) -> Result<Done, Refused> {
    let unfitting = |failure: Failure| refused(&failure, Why::Unfitting);
    match wish {
        Wish::Answer { question, choice } => answered(&question, &choice).map_err(unfitting),
        Wish::Retry { task } => retried(&desk(task)?, task).map_err(unfitting),
        Wish::Cancel { task } => cancelled(&desk(task)?, task).map_err(unfitting),
        Wish::Edit { task, verdict, reason } => {
            edited(&desk(task)?, task, &verdict, &reason).map_err(unfitting)
        }
        Wish::Dispute { finding, task, reason } => disputed(&finding, task, &reason).map_err(unfitting),
        Wish::Add(new) => added(new).map_err(|failure| refused(&failure, Why::Unclear)),
    }
}

/// The desk of a task that must be there.
fn desk(task: u64) -> Result<Desk, Refused> {
    let found = Desk::open(TaskId(task)).and_then(|desk| desk.task(TaskId(task)).map(|_| desk));
    found.map_err(|failure| refused(&failure, Why::Unknown))
}

fn done(message: String, hint: Option<String>) -> Done {
    Done { message, hint, added: None }
}

fn answered(question: &str, choice: &str) -> Result<Done, Failure> {
    let none = || {
        Failure::usage("there is no open question").hint("`signoff status` shows what each task waits for")
    };
    let desk = Desk::find()?.ok_or_else(none)?;
    let answer::Answered { question, place, taken } = answer::answer(&desk, question, choice)?;
    let message = format!("{} answered: {choice}", question.id);
    let hint = match &taken {
        Taken::HandedOver => None,
        Taken::Recorded { note } => {
            let ended = line::end(&desk.store.log(place.run)?, &place.loop_id);
            let next = answer::next(&desk, (place.run, &place.loop_id), &ended)?;
            joined(note.iter().cloned().chain(next))
        }
    };
    Ok(done(message, hint))
}

fn retried(desk: &Desk, task: u64) -> Result<Done, Failure> {
    let taken = retry::retry(desk, TaskId(task))?;
    Ok(done(format!("Task #{task} goes on"), going_on(&taken, task)))
}

/// Who goes on, where nobody is at work.
fn going_on(taken: &Taken, task: u64) -> Option<String> {
    match taken {
        Taken::HandedOver => None,
        Taken::Recorded { note } => {
            joined(note.iter().cloned().chain([format!("`signoff work {task}` works it")]))
        }
    }
}

fn cancelled(desk: &Desk, task: u64) -> Result<Done, Failure> {
    let notes = cancel::cancel(desk, TaskId(task))?;
    Ok(done(format!("Task #{task} cancelled"), joined(notes.into_iter())))
}

fn edited(desk: &Desk, task: u64, verdict: &str, reason: &str) -> Result<Done, Failure> {
    let taken = edit::edit(desk, TaskId(task), (verdict, door::person()), reason)?;
    let message = format!("Task #{task} is {} by {}", verdict.to_ascii_uppercase(), door::person());
    Ok(done(message, taken.note().map(str::to_owned)))
}

fn disputed(finding: &str, task: Option<u64>, reason: &str) -> Result<Done, Failure> {
    let none = || {
        Failure::usage(format!("there is no finding {finding}"))
            .hint("`signoff show ID` lists the findings of a task")
    };
    let desk = Desk::find()?.ok_or_else(none)?;
    let (place, taken) = dispute::dispute(&desk, finding, task.map(TaskId), reason)?;
    let message = format!("Finding {} is refuted by {}", place.finding, door::person());
    Ok(done(message, taken.note().map(str::to_owned)))
}

fn added(new: NewTask) -> Result<Done, Failure> {
    let spec = spec(new)?;
    let (bench, title) = (Bench::open()?, spec.title.clone());
    // Drop a choice that equals the default.
    let usual = bench.settings.expected(&TaskSpec { auto_review: None, ..spec.clone() })?.auto_review;
    let spec = TaskSpec { auto_review: spec.auto_review.filter(|asked| *asked != usual), ..spec };
    add::check_dependencies(&bench, &spec)?;
    let task = add::add(&bench, spec)?;
    Ok(Done {
        message: format!("Added task #{task}: {title}"),
        hint: Some("`signoff work` works it".to_owned()),
        added: Some(task.0),
    })
}

/// Whether a task that says nothing about it is reviewed: how the form for a new one is ticked.
pub fn reviews(root: &Path) -> bool {
    let settings =
        settings::load(Some(root)).map(|settings| match Repository::discover(&persons_git(), root) {
            Ok(repository) => with_checks(&repository, settings),
            Err(_) => settings,
        });
    let expected = settings.and_then(|settings| Ok(settings.expected(&TaskSpec::default())?));
    // What is wrong with the settings is told when the task is added.
    expected.is_ok_and(|expected| expected.auto_review)
}

fn spec(new: NewTask) -> Result<TaskSpec, Failure> {
    let kind = match new.kind.as_str() {
        "" => TaskType::default(),
        word => TaskType::from_word(word).ok_or_else(|| {
            let known = TaskType::ALL.map(TaskType::word).join(", ");
            Failure::usage(format!("there is no type `{word}`")).hint(format!("there are {known}"))
        })?,
    };
    if new.max_cycles == Some(0) {
        return Err(
            Failure::usage("a task needs at least one review").hint("leave the number out, or write 1")
        );
    }
    Ok(TaskSpec {
        kind,
        auto_review: Some(new.auto_review),
        max_review_cycles: new.max_cycles,
        depends_on: new.depends_on.into_iter().map(TaskId).collect(),
        ..TaskSpec::of(&new.text)
    })
}

fn joined(notes: impl Iterator<Item = String>) -> Option<String> {
    let all: Vec<String> = notes.collect();
    (!all.is_empty()).then(|| all.join("; "))
}
