//! `signoff cancel`: calls a task off.

use signoff_core::command::{Command, Refusal};
use signoff_core::ids::TaskId;
use signoff_core::view::Status;
use signoff_engine::clock;
use signoff_store::Store;

use super::decide::decide;
use crate::console::Console;
use crate::desk::Desk;
use crate::door;
use crate::drive::task_id;
use crate::failure::{Exit, Failure};

/// Call a task off
///
/// Its agents are stopped. Its branch and its worktree stay.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff cancel 29")]
pub struct Args {
    /// The task
    #[arg(value_name = "ID", value_parser = task_id)]
    task: TaskId,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let desk = Desk::open(args.task)?;
    if desk.task(args.task)?.status == Status::Cancelled {
        return Err(Refusal::Ended.into());
    }
    match desk.store.loop_of(args.task)? {
        None => desk.store.withdraw(clock::now(), args.task, &door::person())?,
        Some((run, loop_id)) => {
            decide(&desk, run, &loop_id, Command::Cancel { by: door::person() })?;
        }
    }
    super::told(&desk, args.task, &format!("Task #{} cancelled\n", args.task), console)
}
