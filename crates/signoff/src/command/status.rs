//! `signoff status`: lists every task and what it waits for.

use std::collections::BTreeSet;

use signoff_core::view::inbox::ProjectSnapshot;
use signoff_core::view::{QuestionRow, RunRow, RunStatus, TaskRow, TaskStatus};
use signoff_store::Store;
use signoff_term::inbox;
use signoff_term::json::StatusReport;
use signoff_term::status;

use crate::console::TITLE_WIDTH;
use crate::{CliError, CommandExit, Console, ReadOnlyProject, queries};

/// List the tasks and the open questions
///
/// `signoff` without a command lists only what needs you and what is running.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff status --json")]
pub struct Args {}

/// The tasks, questions and runs to list.
#[derive(Default)]
struct StatusData {
    tasks: Vec<TaskRow>,
    questions: Vec<QuestionRow>,
    runs: Vec<RunRow>,
    driven: BTreeSet<u64>,
}

impl StatusData {
    /// Loads tasks and runs. With `asks_git`, git finds out which tasks have landed, which is slow: only `--json` needs
    /// it.
    fn load(asks_git: bool) -> Result<Self, CliError> {
        let Some(project) = ReadOnlyProject::find()? else { return Ok(Self::default()) };
        let (mut tasks, runs) = (project.tasks()?, project.runs()?);
        if asks_git {
            project.mark_landed(&mut tasks);
        }
        let driven = driven(&*project.store, &tasks, &runs)?;
        Ok(Self { questions: project.store.questions()?, tasks, runs, driven })
    }

    fn scene(&self) -> ProjectSnapshot<'_> {
        ProjectSnapshot { tasks: &self.tasks, runs: &self.runs, driven: &self.driven }
    }

    fn report(self) -> StatusReport {
        StatusReport::new(self.tasks, self.questions, self.runs)
    }
}

/// The report that `status --json` prints.
pub fn report() -> Result<StatusReport, CliError> {
    Ok(StatusData::load(true)?.report())
}

/// Runs the command.
pub fn run(_args: &Args, console: &Console) -> Result<CommandExit, CliError> {
    let listed = StatusData::load(console.json)?;
    if console.json {
        console.json(&listed.report())?;
    } else if listed.tasks.is_empty() && listed.runs.is_empty() {
        console.note("No tasks yet: `signoff add \"…\"` adds one");
    } else {
        console.text(&status::text(&listed.scene(), &listed.questions, TITLE_WIDTH))?;
    }
    Ok(CommandExit::Done)
}

/// Prints what needs attention, what is running and what to type next, for a bare `signoff`.
pub fn attention(console: &Console) -> Result<CommandExit, CliError> {
    let listed = StatusData::load(console.json)?;
    if console.json {
        console.json(&listed.report())?;
    } else {
        console.text(&inbox::text(&listed.scene(), &listed.questions, TITLE_WIDTH))?;
    }
    Ok(CommandExit::Done)
}

/// Returns those of these runs, and of the runs of these tasks, that a process is driving.
pub fn driven(store: &dyn Store, tasks: &[TaskRow], runs: &[RunRow]) -> Result<BTreeSet<u64>, CliError> {
    let is_taken_up = |row: &&TaskRow| matches!(row.status, TaskStatus::InProgress | TaskStatus::Paused);
    let taken_up = tasks.iter().filter(is_taken_up).filter_map(|row| row.run_id);
    let open = runs.iter().filter(|run| run.status == RunStatus::Running).map(|run| run.id);
    Ok(queries::held_runs(store, &taken_up.chain(open).collect::<BTreeSet<u64>>())?)
}

/// Prints the list of tasks.
pub fn print(store: &dyn Store, console: &Console) -> Result<(), CliError> {
    let tasks = store.tasks()?;
    let scene = ProjectSnapshot { tasks: &tasks, runs: &[], driven: &BTreeSet::new() };
    console.text(&status::text(&scene, &store.questions()?, TITLE_WIDTH))
}
