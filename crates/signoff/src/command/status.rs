//! `signoff status`: every task and what it waits for.

use std::collections::BTreeSet;

use signoff_core::ids::RunId;
use signoff_core::view::{QuestionRow, RunRow, Status, TaskRow};
use signoff_store::Store;
use signoff_term::attention::{self, Scene};
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

/// Everything there is to list.
#[derive(Default)]
struct Listed {
    tasks: Vec<TaskRow>,
    questions: Vec<QuestionRow>,
    runs: Vec<RunRow>,
    driven: BTreeSet<u64>,
}

impl Listed {
    /// Loads tasks and runs. With `asks_git`, git finds out which tasks have landed, which is slow: only `--json` needs it.
    fn find(asks_git: bool) -> Result<Self, Failure> {
        let Some(desk) = Desk::find()? else { return Ok(Self::default()) };
        let (mut tasks, runs) = (desk.tasks()?, desk.runs()?);
        if asks_git {
            desk.note_landed(&mut tasks);
        }
        let driven = driven(&*desk.store, &tasks, &runs)?;
        Ok(Self { questions: desk.store.questions()?, tasks, runs, driven })
    }

    fn scene(&self) -> Scene<'_> {
        Scene { tasks: &self.tasks, runs: &self.runs, driven: &self.driven }
    }

    fn report(self) -> StatusReport {
        StatusReport::of(self.tasks, self.questions, self.runs)
    }
}

/// What `status --json` prints.
pub fn report() -> Result<StatusReport, Failure> {
    Ok(Listed::find(true)?.report())
}

/// Runs the command.
pub fn run(_args: &Args, console: &Console) -> Result<Exit, Failure> {
    let listed = Listed::find(console.json)?;
    if console.json {
        console.json(&listed.report())?;
    } else if listed.tasks.is_empty() && listed.runs.is_empty() {
        console.note("No tasks yet: `signoff add \"…\"` adds one");
    } else {
        console.text(&status::text(&listed.scene(), &listed.questions, console.title_width()))?;
    }
    Ok(Exit::Done)
}

/// What needs attention, what runs, and how to go on: the answer to a bare `signoff`.
pub fn attention(console: &Console) -> Result<Exit, Failure> {
    let listed = Listed::find(console.json)?;
    if console.json {
        console.json(&listed.report())?;
    } else {
        console.text(&attention::text(&listed.scene(), &listed.questions, console.title_width()))?;
    }
    Ok(Exit::Done)
}

/// Which of these runs, and of those of these tasks, some program works on now.
pub fn driven(store: &dyn Store, tasks: &[TaskRow], runs: &[RunRow]) -> Result<BTreeSet<u64>, Failure> {
    let is_taken_up = |row: &&TaskRow| matches!(row.status, Status::InProgress | Status::Paused);
    let taken_up = tasks.iter().filter(is_taken_up).filter_map(|row| row.run_id);
    let open = runs.iter().filter(|run| run.status == "running").map(|run| run.id);
    let mut driven = BTreeSet::new();
    for run in taken_up.chain(open).collect::<BTreeSet<u64>>() {
        if store.is_held(RunId(run))? {
            driven.insert(run);
        }
    }
    Ok(driven)
}

/// The list as `status` prints it.
pub fn print(store: &dyn Store, console: &Console) -> Result<(), Failure> {
    let tasks = store.tasks()?;
    let scene = Scene { tasks: &tasks, runs: &[], driven: &BTreeSet::new() };
    console.text(&status::text(&scene, &store.questions()?, console.title_width()))
}
