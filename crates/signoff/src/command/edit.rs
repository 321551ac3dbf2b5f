//! `signoff edit`: sets the final verdict without a review.

use signoff_core::command::{LoopCommand, parse_verdict};
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::machine::{FinalVerdict, Head};
use signoff_core::view::TaskState;
use signoff_core::view::inbox::{Action, NextStep};
use signoff_store::Store;

use super::decide::{DecisionResult, decide};
use crate::project::find_task;
use crate::queries::TaskContext;
use crate::run_loop::{TaskOrRun, task_or_run};
use crate::{CliError, CommandExit, Console, ReadOnlyProject, Result, host};

/// Set the final verdict of a task, or of a run's final review, without a review
///
/// The verdict is recorded in your name. Only APPROVED lets dependent tasks start. signoff refuses this before
/// the task has started, and while an agent changes files, because the agent's unfinished work would be lost.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  signoff edit 29 --verdict APPROVED --reason \"the finding is about generated code\""
)]
pub struct Args {
    /// The task, or `run-N` for the final review of a run
    #[arg(value_name = "ID", value_parser = task_or_run)]
    id: TaskOrRun,
    /// The verdict: APPROVED, CHANGES_REQUESTED, MAX_CYCLES_REACHED or NEEDS_DISCUSSION
    #[arg(long, value_name = "VERDICT")]
    verdict: String,
    /// The reason for the verdict
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
}

/// Fails with a hint if an agent is changing files. The process that drives the run checks it again.
fn check_no_writer(project: &ReadOnlyProject, task: Option<TaskId>, run: RunId, loop_id: &LoopId) -> Result<()> {
    let run_state = project.store.preload(run)?;
    if !run_state.loops.get(loop_id).is_some_and(|loop_state| loop_state.machine.is_being_written()) {
        return Ok(());
    }
    let Some(task) = task else {
        return Err(CliError::usage(format!("an agent is changing the files of the final review of run {run}"))
            .hint(format!("wait for it, or continue it with `{}`", Action::ResumeRun(Some(run.0)))));
    };
    let cancel = Action::Cancel(task.0);
    let hint = if project.store.is_held(run)? {
        format!("wait for it (`{}`), or cancel it with `{cancel}`", Action::FollowLog(task.0))
    } else {
        let context = TaskContext::load(project, project.tasks()?)?;
        let next = NextStep::for_task(&find_task(&context.tasks, task)?, &context.snapshot());
        format!("`{next}` continues it; `{cancel}` cancels it")
    };
    Err(CliError::usage(format!("an agent is changing the files of task {task}")).hint(hint))
}

/// Sets the final verdict of a task.
pub fn edit(
    project: &ReadOnlyProject,
    task: TaskId,
    verdict: FinalVerdict,
    by: String,
    reason: &str,
) -> Result<DecisionResult> {
    let (run, loop_id) = project.loop_of(task)?;
    let command = LoopCommand::Edit { verdict, by, reason: reason.to_owned(), head: branch_head(project, task)? };
    check_no_writer(project, Some(task), run, &loop_id)?;
    decide(project, run, &loop_id, command)
}

/// Fails if the run is already in the default branch: fixes on its branch would not land.
fn check_not_landed(project: &ReadOnlyProject, run: RunId) -> Result<()> {
    let mut rows = project.tasks()?;
    rows.retain(|row| row.run_id == Some(run.0));
    project.mark_landed(&mut rows);
    match rows.last().filter(|_| rows.iter().all(|row| row.state() == TaskState::Landed)) {
        Some(last) => Err(CliError::usage(format!("run {run} is already in the default branch"))
            .hint(format!("`{}` improves one of its tasks, `signoff add` adds a new one", Action::Improve(last.id)))),
        None => Ok(()),
    }
}

/// Sets the final verdict of a run's final review for the current tip of its branch.
fn edit_final_review(
    project: &ReadOnlyProject,
    run: RunId,
    verdict: FinalVerdict,
    reason: &str,
) -> Result<DecisionResult> {
    project.check_final_review(run)?;
    if verdict != FinalVerdict::Approved {
        check_not_landed(project, run)?;
    }
    let (loop_id, by) = (LoopId::final_review(), host::user_name());
    let head = project.repository()?.head_of(&run.branch())?;
    check_no_writer(project, None, run, &loop_id)?;
    decide(project, run, &loop_id, LoopCommand::Edit { verdict, by, reason: reason.to_owned(), head })
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    let user = host::user_name();
    match args.id {
        TaskOrRun::Task(task) => {
            let project = ReadOnlyProject::for_task(task)?;
            let verdict = parse_verdict(&args.verdict)?;
            edit(&project, task, verdict, host::user_name(), &args.reason)?.print_note(console);
            let text = format!("Task #{task} is {} by {user}\n", verdict.into_str());
            super::print_task(&project, task, &text, console)
        }
        TaskOrRun::Run(run) => {
            let project = ReadOnlyProject::for_run(run)?;
            let verdict = parse_verdict(&args.verdict)?;
            edit_final_review(&project, run, verdict, &args.reason)?.print_note(console);
            super::print_run(&project, run, &format!("Run {run} is {} by {user}\n", verdict.into_str()), console)
        }
    }
}

/// The tip of the task's branch, which the verdict is about.
pub fn branch_head(project: &ReadOnlyProject, task: TaskId) -> Result<Option<Head>> {
    let Some(branch) = project.task(task)?.branch else { return Ok(None) };
    Ok(project.repository()?.head_of(&branch)?)
}
