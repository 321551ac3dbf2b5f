//! `signoff retry`: once more, from where it failed.

use signoff_core::command::Command;
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::task::TaskType;
use signoff_store::Store;

use super::decide::{Taken, decide};
use super::work;
use crate::console::Console;
use crate::desk::{Bench, Desk};
use crate::door;
use crate::drive::task_id;
use crate::failure::{Exit, Failure};
use crate::preflight;

/// Go on with a task that failed or stopped
///
/// It goes on from the failed phase; what was finished is not repeated. A task that used up its reviews or attempts
/// is granted one more.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff retry 29")]
pub struct Args {
    /// The task
    #[arg(value_name = "ID", value_parser = task_id)]
    task: TaskId,
    /// Only queue it, for the next `signoff work`
    #[arg(long)]
    queue: bool,
}

/// The loop that is to go on.
fn retried(desk: &Desk, task: TaskId) -> Result<(RunId, LoopId), Failure> {
    let row = desk.task(task)?;
    if row.kind == TaskType::Review && row.reason.as_deref() == Some("nothing_to_review") {
        return Err(Failure::usage(format!(
            "there is nothing to retry: task {task} has no change to review"
        ))
        .hint(format!("commit to its branch, then `signoff review {task}`")));
    }
    if row.kind == TaskType::Review && row.reason.as_deref() == Some("gate_failed") {
        return Err(Failure::usage(format!("there is nothing to retry: review {task} is done")).hint(
            format!("`signoff improve {task}` improves what it found, `signoff review {task}` looks again"),
        ));
    }
    desk.loop_of(task)
}

/// Has a task go on; whoever drives its run does so at once.
pub fn retry(desk: &Desk, task: TaskId) -> Result<Taken, Failure> {
    let (run, loop_id) = retried(desk, task)?;
    decide(desk, run, &loop_id, Command::Retry { by: door::person() })
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let desk = Desk::open(args.task)?;
    let (run, loop_id) = retried(&desk, args.task)?;
    // Whoever drives it already has looked; what is only queued is looked at when it is taken up.
    if !args.queue && !desk.store.is_held(run)? {
        preflight::check_run(&Bench::open()?, run, (Some(&loop_id), &[args.task]))?;
    }
    let taken = decide(&desk, run, &loop_id, Command::Retry { by: door::person() })?;
    taken.tell(console);
    if args.queue || taken == Taken::HandedOver {
        return super::told(&desk, args.task, &format!("Task #{} goes on\n", args.task), console);
    }
    drop(desk);
    work::work(Bench::open()?, (&[args.task], false, None), console)
}
