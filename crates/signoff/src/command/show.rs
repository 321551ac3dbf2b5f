//! `signoff show`: shows everything about one task.

use signoff_core::ids::TaskId;
use signoff_core::view::TaskRow;
use signoff_core::view::inbox::ProjectSnapshot;
use signoff_term::show::{TaskReport, text};

use crate::run_loop::task_id;
use crate::{CommandExit, Console, ReadOnlyProject, Result, queries};

/// Show a task: its cycles, findings, attempts, costs and files
///
/// The last line says what to type next.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff show 29")]
pub struct Args {
    /// The task
    #[arg(value_name = "ID", value_parser = task_id)]
    task: TaskId,
}

/// The report of a task, together with all tasks.
pub struct TaskDetails {
    pub report: TaskReport,
    pub tasks: Vec<TaskRow>,
    project: ReadOnlyProject,
}

/// Loads the report of a task.
pub fn load(task: TaskId) -> Result<TaskDetails> {
    let project = ReadOnlyProject::for_task(task)?;
    let (mut report, tasks) = queries::task_report(&project, task)?;
    project.mark_landed(std::slice::from_mut(&mut report.task));
    report.task.state = report.task.state();
    Ok(TaskDetails { report, tasks, project })
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    let TaskDetails { report, tasks, project } = load(args.task)?;
    if console.json {
        console.json(&report)?
    } else {
        let driven = queries::driven(&*project.store, &tasks, &[])?;
        console.text(&text(&report, &ProjectSnapshot { tasks: &tasks, runs: &project.runs()?, driven: &driven }))?
    }
    Ok(CommandExit::Done)
}
