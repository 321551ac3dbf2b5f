//! `signoff cancel`: cancels a task.

use signoff_core::command::{CommandRefusal, LoopCommand};
use signoff_core::ids::{RunId, TaskId};
use signoff_core::view::TaskStatus;
use signoff_engine::clock;
use signoff_engine::tracker::Tracker;
use signoff_store::Store;

use super::decide::decide;
use crate::run_loop::{self, task_id};
use crate::{CommandExit, Console, ReadOnlyProject, Result, host, queries};

/// Cancel a task
///
/// Stops its agents and keeps its branch and worktree. A bead that was claimed for it is opened again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff cancel 29")]
pub struct Args {
    /// The task
    #[arg(value_name = "ID", value_parser = task_id)]
    task: TaskId,
}

/// Cancels a task and returns notes for the user.
pub fn cancel(project: &ReadOnlyProject, task: TaskId) -> Result<Vec<String>> {
    if project.task(task)?.status == TaskStatus::Cancelled {
        return Err(CommandRefusal::Ended.into());
    }
    let Some((run, loop_id)) = project.store.loop_for_task(task)? else {
        project.store.withdraw(clock::now(), task, &host::user_name())?;
        return Ok(Vec::new());
    };
    let result = decide(project, run, &loop_id, LoopCommand::Cancel { by: host::user_name() })?;
    let notes = result.note().map(str::to_owned).into_iter();
    Ok(notes.chain(release_in_tracker(project, task, run)?).collect())
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    let project = ReadOnlyProject::for_task(args.task)?;
    cancel(&project, args.task)?.iter().for_each(|note| console.note(note));
    super::print_task(&project, args.task, &format!("Task #{} cancelled\n", args.task), console)
}

/// Releases the task in its tracker. An error there does not undo the cancellation.
fn release_in_tracker(project: &ReadOnlyProject, task: TaskId, run: RunId) -> Result<Option<String>> {
    let Some(tracked) = project.store.task_spec(task)?.and_then(|spec| spec.tracker) else { return Ok(None) };
    let run_state = queries::run_state(&*project.store, run)?;
    let Some(policy) = run_state.run_policy().filter(|policy| policy.task_source.closes_tasks()) else {
        return Ok(None);
    };
    let repository = project.repository()?;
    let tracker = Tracker { source: policy.task_source.clone(), repository, options: run_loop::tracker_options() };
    let id = &tracked.id;
    Ok(match tracker.give_back(id) {
        Ok(None) => None,
        Ok(Some(why)) => Some(format!("{id} was not changed in the tracker: {why}")),
        Err(error) => Some(format!("warning: {id} is still in progress in the tracker: {error}")),
    })
}
