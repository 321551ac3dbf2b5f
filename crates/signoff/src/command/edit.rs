//! `signoff edit`: a person sets the final verdict, without a review.

use signoff_core::command::Command;
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::machine::Head;
use signoff_engine::board::Board;
use signoff_engine::git::{Git, Repository};
use signoff_store::Store;

use super::decide::{Taken, decide};
use crate::console::Console;
use crate::desk::Desk;
use crate::door;
use crate::drive::task_id;
use crate::failure::{Exit, Failure};

/// Set the final verdict of a task, without a review
///
/// The verdict is recorded with who set it, and shown as a person's. Only APPROVED lets other tasks build on it. Not
/// while an agent is changing files: what it has not finished would be lost.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  signoff edit 29 --verdict APPROVED --reason \"the finding is about generated code\""
)]
pub struct Args {
    /// The task
    #[arg(value_name = "ID", value_parser = task_id)]
    task: TaskId,
    /// APPROVED, CHANGES_REQUESTED, MAX_CYCLES_REACHED or NEEDS_DISCUSSION
    #[arg(long, value_name = "VERDICT")]
    verdict: String,
    /// Why
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
}

/// Asked beforehand to say what to do; who drives the run asks again.
fn check_nobody_writes(desk: &Desk, task: TaskId, (run, loop_id): (RunId, &LoopId)) -> Result<(), Failure> {
    let board = Board::of(run, &desk.store.log(run)?);
    if !board.loops.get(loop_id).is_some_and(|worked| worked.state.is_being_written()) {
        return Ok(());
    }
    let hint = if desk.store.is_held(run)? {
        format!("wait for it (`signoff logs {task} -f`), or call it off with `signoff cancel {task}`")
    } else {
        format!("`signoff work {task}` goes on with it; `signoff cancel {task}` calls it off")
    };
    Err(Failure::usage(format!("task {task} is being worked on")).hint(hint))
}

/// Sets the final verdict of a task.
pub fn edit(desk: &Desk, task: TaskId, verdict: &str, reason: &str) -> Result<Taken, Failure> {
    let (run, loop_id) = desk.loop_of(task)?;
    let (verdict, by) = (verdict.to_ascii_uppercase(), door::person());
    let wish = Command::Edit { verdict, by, reason: reason.to_owned(), head: head_of(desk, task)? };
    check_nobody_writes(desk, task, (run, &loop_id))?;
    decide(desk, run, &loop_id, wish)
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let desk = Desk::open(args.task)?;
    edit(&desk, args.task, &args.verdict, &args.reason)?.tell(console);
    let verdict = args.verdict.to_ascii_uppercase();
    super::told(
        &desk,
        args.task,
        &format!("Task #{} is {verdict} by {}\n", args.task, door::person()),
        console,
    )
}

/// Where the task's branch is, which is what a person looks at who decides about it.
pub fn head_of(desk: &Desk, task: TaskId) -> Result<Option<Head>, Failure> {
    let Some(branch) = desk.task(task)?.branch else { return Ok(None) };
    let repository = Repository::discover(&Git::new(door::environment()), &desk.root)?;
    Ok(repository.head_of(&branch)?)
}
