//! `signoff retry`: continues a failed task from the failed phase.

use signoff_core::command::LoopCommand;
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::machine::Reason;
use signoff_core::task::TaskType;
use signoff_store::Store;

use super::decide::{DecisionResult, decide};
use super::run::resume;
use super::work::{self, WorkOptions};
use crate::run_loop::{TaskOrRun, task_or_run};
use crate::{CliError, CommandExit, Console, Project, ReadOnlyProject, host, preflight};

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
fn loop_to_retry(project: &ReadOnlyProject, task: TaskId) -> Result<(RunId, LoopId), CliError> {
    let row = project.task(task)?;
    if row.kind == TaskType::Review && row.reason == Some(Reason::NothingToReview) {
        return Err(CliError::usage(format!("there is nothing to retry: task {task} has no change to review"))
            .hint(format!("commit to its branch, then `signoff review {task}`")));
    }
    if row.kind == TaskType::Review && row.reason == Some(Reason::GateFailed) {
        return Err(CliError::usage(format!("there is nothing to retry: review {task} is done"))
            .hint(format!("`signoff improve {task}` improves what it found, `signoff review {task}` looks again")));
    }
    project.loop_of(task)
}

/// Records a retry. A process that drives the run continues at once.
pub fn retry(project: &ReadOnlyProject, task: TaskId) -> Result<DecisionResult, CliError> {
    let (run, loop_id) = loop_to_retry(project, task)?;
    decide(project, run, &loop_id, LoopCommand::Retry { by: host::user_name() })
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit, CliError> {
    match args.id {
        TaskOrRun::Task(task) => retry_task(task, args.queue, console),
        TaskOrRun::Run(run) => retry_final_review(run, args.queue, console),
    }
}

fn retry_final_review(run: RunId, queue: bool, console: &Console) -> Result<CommandExit, CliError> {
    let (project, loop_id) = (ReadOnlyProject::for_run(run)?, LoopId::final_review());
    project.check_final_review(run)?;
    if !queue && !project.store.is_held(run)? {
        preflight::check_run(&Project::open()?, run, Some(&loop_id), &[])?;
    }
    let result = decide(&project, run, &loop_id, LoopCommand::Retry { by: host::user_name() })?;
    result.print_note(console);
    if queue || result == DecisionResult::HandedOver {
        let text = format!("The final review of run {run} goes on\n");
        return super::print_run(&project, run, &text, console);
    }
    drop(project);
    resume::resume_run(run, console)
}

fn retry_task(task: TaskId, queue: bool, console: &Console) -> Result<CommandExit, CliError> {
    let project = ReadOnlyProject::for_task(task)?;
    let (run, loop_id) = loop_to_retry(&project, task)?;
    // The process that drives the run has already checked this; a queued task is checked when it starts.
    if !queue && !project.store.is_held(run)? {
        preflight::check_run(&Project::open()?, run, Some(&loop_id), &[task])?;
    }
    let result = decide(&project, run, &loop_id, LoopCommand::Retry { by: host::user_name() })?;
    result.print_note(console);
    if queue || result == DecisionResult::HandedOver {
        return super::print_task(&project, task, &format!("Task #{task} goes on\n"), console);
    }
    drop(project);
    work::work(Project::open()?, &WorkOptions { tasks: &[task], ..WorkOptions::default() }, console)
}
