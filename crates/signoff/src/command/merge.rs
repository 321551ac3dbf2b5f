//! `signoff merge`: lands one approved task on the default branch.

use signoff_core::command::LoopCommand;
use signoff_core::ids::{RunId, TaskId};
use signoff_core::machine::{FinalVerdict, Stage};
use signoff_core::view::LoopState;
use signoff_core::view::inbox::{self, Action};
use signoff_store::Store;
use signoff_term::json::{LandedStatus, LandedTask, MergeReport};

use super::decide::decide;
use super::edit::branch_head;
use super::landing::{self, LandedWhen, LandedWork};
use crate::run_loop::task_id;
use crate::{CommandExit, Console, ReadOnlyProject, Result, host, queries};

/// Land an approved task on the default branch
///
/// Creates a merge commit, or with `landing = "rebase"` commits on top, after the project's checks have passed on the
/// merged result. If the default branch is checked out and clean, its files are updated. A conflict goes back to the
/// task: its fixer resolves it, it is reviewed again, and then lands.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff merge 29")]
pub struct Args {
    /// The task
    #[arg(value_name = "ID", value_parser = task_id)]
    task: TaskId,
    /// Approve the task in your name if it is not approved
    #[arg(long, requires = "reason")]
    force: bool,
    /// The reason for the approval
    #[arg(long, value_name = "TEXT", requires = "force")]
    reason: Option<String>,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    let task = args.task;
    let project = ReadOnlyProject::for_task(task)?;
    if args.force {
        approve_in_users_name(&project, task, args.reason.as_deref().unwrap_or_default(), console)?;
        if let Some(run) = waits_for_its_group(&project, task)? {
            return print_waiting(&project, task, run, console);
        }
    }
    let _landing_lock = landing::acquire_landing_lock(console)?;
    match landing::land_task(&project, task, console)? {
        Some(landed) => print_landed(task, &landed, console),
        None => Ok(CommandExit::Interrupted),
    }
}

/// Approves a task in the user's name, unless it is already approved.
fn approve_in_users_name(project: &ReadOnlyProject, task: TaskId, reason: &str, console: &Console) -> Result<()> {
    let (row, _) = project.task_and_all(task)?;
    if inbox::may_land(&row) {
        return Ok(());
    }
    let (run, loop_id) = project.loop_of(task)?;
    let (by, reason, head) = (host::user_name(), reason.to_owned(), branch_head(project, task)?);
    let command = LoopCommand::Edit { verdict: FinalVerdict::Approved, by, reason, head };
    decide(project, run, &loop_id, command)?.print_note(console);
    Ok(())
}

/// Returns the run of a task that is approved and lands together with its group.
fn waits_for_its_group(project: &ReadOnlyProject, task: TaskId) -> Result<Option<RunId>> {
    let (run, loop_id) = project.loop_of(task)?;
    let run_state = queries::run_state(&*project.store, run)?;
    let waits = |loop_state: &LoopState| matches!(loop_state.machine.stage, Stage::AwaitingLanding { .. });
    Ok(run_state.loops.get(&loop_id).is_some_and(|loop_state| waits(loop_state)).then_some(run))
}

fn print_waiting(project: &ReadOnlyProject, task: TaskId, run: RunId, console: &Console) -> Result<CommandExit> {
    if console.json {
        let landed_task = LandedTask { task_id: task.0, status: LandedStatus::Waiting, commit: None, reason: None };
        console.json(&MergeReport::new(run.branch(), vec![landed_task]))?;
        return Ok(CommandExit::Done);
    }
    let user = host::user_name();
    console.text(&format!("✓ Task #{task} is APPROVED by {user}, and lands with its group on {}\n", run.branch()))?;
    if !project.store.is_held(run)? {
        console.note(&format!("`{}` continues", Action::ResumeRun(Some(run.0))));
    }
    Ok(CommandExit::Done)
}

fn print_landed(task: TaskId, landed: &LandedWork, console: &Console) -> Result<CommandExit> {
    let (status, commit) = (landed.when.status(), Some(landed.commit.clone()));
    let landed_task = LandedTask { task_id: task.0, status, commit, reason: None };
    let report = MergeReport::new(landed.target.clone(), vec![landed_task]);
    console.print(&report, || format!("{}\n", landed_line(task, landed)))
}

/// One line about a landed task.
pub fn landed_line(task: TaskId, landed: &LandedWork) -> String {
    let LandedWork { target, commit, when } = landed;
    let commit = commit.get(..12).unwrap_or(commit);
    match when {
        LandedWhen::Now => format!("✓ Task #{task} is in {target} ({commit})"),
        LandedWhen::Before => format!("✓ Task #{task} is already in {target}"),
        LandedWhen::NoChanges => format!("Task #{task} has no changes to land"),
    }
}
