//! `signoff retry`: continues a failed task from the failed phase.

use signoff_core::command::LoopCommand;
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::view::inbox::{FinishedReview, NextStep};
use signoff_store::Store;

use super::decide::{DecisionResult, decide};
use super::run::resume;
use super::work;
use crate::run_loop::{TaskOrRun, task_or_run};
use crate::{CliError, CommandExit, Console, ReadOnlyProject, Result, host, preflight};

/// Retry a failed or stopped task, or the final review of a run
///
/// It continues from the failed phase; finished phases are not repeated. A task that has used up its reviews or
/// attempts is granted one more.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff retry 29")]
pub struct Args {
    /// The task, or `run-N` for the final review of a run
    #[arg(value_name = "ID", value_parser = task_or_run)]
    id: TaskOrRun,
    /// Add it to the queue for the next `signoff work` instead of starting it
    #[arg(long)]
    queue: bool,
}

/// Returns the loop to retry. Fails if there is nothing to retry.
fn loop_to_retry(project: &ReadOnlyProject, task: TaskId) -> Result<(RunId, LoopId)> {
    let row = project.task(task)?;
    let why = match FinishedReview::for_task(&row) {
        None => return project.loop_of(task),
        Some(FinishedReview::NothingToReview) => format!("task {task} has no change to review"),
        Some(FinishedReview::NotApproved) => format!("review {task} is done"),
    };
    let next = NextStep::to_approve(&row, std::slice::from_ref(&row));
    Err(CliError::usage(format!("there is nothing to retry: {why}")).hint(next.to_string()))
}

/// Records a retry. A process that drives the run continues at once.
pub fn retry(project: &ReadOnlyProject, task: TaskId) -> Result<DecisionResult> {
    let (run, loop_id) = loop_to_retry(project, task)?;
    decide(project, run, &loop_id, LoopCommand::Retry { by: host::user_name() })
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    let (project, (run, loop_id), tasks) = match args.id {
        TaskOrRun::Task(task) => {
            let project = ReadOnlyProject::for_task(task)?;
            let target = loop_to_retry(&project, task)?;
            (project, target, vec![task])
        }
        TaskOrRun::Run(run) => {
            let project = ReadOnlyProject::for_run(run)?;
            project.check_final_review(run)?;
            (project, (run, LoopId::final_review()), Vec::new())
        }
    };
    // The process that drives the run has already checked this; a queued task is checked when it starts.
    if !args.queue && !project.store.is_held(run)? {
        preflight::check_run(&project.open_for_work()?, run, Some(&loop_id), &tasks)?;
    }
    let result = decide(&project, run, &loop_id, LoopCommand::Retry { by: host::user_name() })?;
    result.print_note(console);
    let is_done = args.queue || result == DecisionResult::HandedOver;
    match args.id {
        TaskOrRun::Task(task) if is_done => {
            super::print_task(&project, task, &format!("Task #{task} continues\n"), console)
        }
        TaskOrRun::Run(_) if is_done => {
            super::print_run(&project, run, &format!("The final review of run {run} continues\n"), console)
        }
        TaskOrRun::Task(task) => work::work(project.open_for_work()?, &work::Args::for_task(task), console),
        TaskOrRun::Run(_) => resume::resume_run(project.open_for_work()?, run, console),
    }
}
