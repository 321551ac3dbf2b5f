//! `signoff retry`: once more, from where it failed.

use signoff_core::command::Command;
use signoff_core::ids::TaskId;
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

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let desk = Desk::open(args.task)?;
    let row = desk.task(args.task)?;
    if row.kind == TaskType::Review && row.reason.as_deref() == Some("gate_failed") {
        let task = args.task;
        return Err(Failure::usage(format!("there is nothing to retry: review {task} is done")).hint(
            format!("`signoff improve {task}` improves what it found, `signoff review {task}` looks again"),
        ));
    }
    let (run, loop_id) = desk.loop_of(args.task)?;
    // Whoever drives it already has looked; what is only queued is looked at when it is taken up.
    if !args.queue && !desk.store.is_held(run)? {
        preflight::check_run(&Bench::open()?, run, (Some(&loop_id), &[args.task]))?;
    }
    let taken = decide(&desk, run, &loop_id, Command::Retry { by: door::person() }, console)?;
    if args.queue || taken == Taken::HandedOver {
        return super::told(&desk, args.task, &format!("Task #{} goes on\n", args.task), console);
    }
    drop(desk);
    work::work(Bench::open()?, (&[args.task], false, None), console)
}
