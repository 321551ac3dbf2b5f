//! `signoff status`: every task and what it waits for.

use std::collections::BTreeSet;

use signoff_core::ids::RunId;
use signoff_core::view::{QuestionRow, Status, TaskRow};
use signoff_store::Store;
use signoff_term::attention::{self, Scene};
use signoff_term::exit::{Invocation, Standing};
use signoff_term::json::StatusReport;
use signoff_term::status;

use crate::console::Console;
use crate::desk::Desk;
use crate::failure::{Exit, Failure};

/// List the tasks and the open questions
///
/// `signoff` alone lists only what needs you and what runs.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff status --json")]
pub struct Args {}

/// With `--strict` the exit code tells whether something needs a look.
fn end(tasks: &[TaskRow], questions: &[QuestionRow], console: &Console) -> Exit {
    let strict = console.strict;
    let waits = |row: &&TaskRow| !matches!(row.status, Status::Pending | Status::InProgress);
    let tasks: Vec<TaskRow> = tasks.iter().filter(waits).cloned().collect();
    let invocation =
        Invocation { tasks: &tasks, questions, run: None, strict, no_ask: false, interrupted: false };
    match invocation.standing() {
        Standing::Attention | Standing::Failed if strict => Exit::Attention,
        Standing::Done | Standing::Attention | Standing::Failed => Exit::Done,
    }
}

/// Runs the command.
pub fn run(_args: &Args, console: &Console) -> Result<Exit, Failure> {
    let (tasks, questions) = match Desk::find()? {
        Some(desk) => (desk.tasks()?, desk.store.questions()?),
        None => (Vec::new(), Vec::new()),
    };
    let end = end(&tasks, &questions, console);
    if console.json {
        console.json(&StatusReport::of(tasks, questions))?;
    } else if tasks.is_empty() {
        console.note("No tasks yet: `signoff add \"…\"` adds one");
    } else {
        console.text(&status::text(&tasks, &questions, console.title_width()))?;
    }
    Ok(end)
}

/// What needs attention, what runs, and how to go on: the answer to a bare `signoff`.
pub fn attention(console: &Console) -> Result<Exit, Failure> {
    let (tasks, questions, driven) = match Desk::find()? {
        Some(desk) => {
            let tasks = desk.tasks()?;
            let driven = driven(&*desk.store, &tasks)?;
            (tasks, desk.store.questions()?, driven)
        }
        None => (Vec::new(), Vec::new(), BTreeSet::new()),
    };
    let end = end(&tasks, &questions, console);
    if console.json {
        console.json(&StatusReport::of(tasks, questions))?;
    } else {
        let scene = Scene { tasks: &tasks, driven: &driven };
        console.text(&attention::text(&scene, &questions, console.title_width()))?;
    }
    Ok(end)
}

/// The runs of these tasks that some program works on now.
pub fn driven(store: &dyn Store, tasks: &[TaskRow]) -> Result<BTreeSet<u64>, Failure> {
    let taken_up = tasks.iter().filter(|row| row.status == Status::InProgress);
    let mut driven = BTreeSet::new();
    for run in taken_up.filter_map(|row| row.run_id).collect::<BTreeSet<u64>>() {
        if store.is_held(RunId(run))? {
            driven.insert(run);
        }
    }
    Ok(driven)
}

/// The list as `status` prints it.
pub fn print(store: &dyn Store, console: &Console) -> Result<(), Failure> {
    console.text(&status::text(&store.tasks()?, &store.questions()?, console.title_width()))
}
