//! `signoff cancel`: calls a task off.

use signoff_core::command::{Command, Refusal};
use signoff_core::ids::{RunId, TaskId};
use signoff_core::view::Status;
use signoff_engine::board::Board;
use signoff_engine::clock;
use signoff_engine::git::{Git, Repository};
use signoff_engine::tracker::Tracker;
use signoff_store::Store;

use super::decide::decide;
use crate::console::Console;
use crate::desk::Desk;
use crate::door;
use crate::drive::{self, task_id};
use crate::failure::{Exit, Failure};

/// Call a task off
///
/// Its agents are stopped. Its branch and its worktree stay. A bead that was claimed for it is open again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff cancel 29")]
pub struct Args {
    /// The task
    #[arg(value_name = "ID", value_parser = task_id)]
    task: TaskId,
}

/// Calls a task off; gives what else the person should know.
pub fn cancel(desk: &Desk, task: TaskId) -> Result<Vec<String>, Failure> {
    if desk.task(task)?.status == Status::Cancelled {
        return Err(Refusal::Ended.into());
    }
    let Some((run, loop_id)) = desk.store.loop_of(task)? else {
        desk.store.withdraw(clock::now(), task, &door::person())?;
        return Ok(Vec::new());
    };
    let taken = decide(desk, run, &loop_id, Command::Cancel { by: door::person() })?;
    let notes = taken.note().map(str::to_owned).into_iter();
    Ok(notes.chain(give_back(desk, task, run)?).collect())
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let desk = Desk::open(args.task)?;
    cancel(&desk, args.task)?.iter().for_each(|note| console.note(note));
    super::told(&desk, args.task, &format!("Task #{} cancelled\n", args.task), console)
}

/// Lets others have in the tracker what we do not work on any more. What goes wrong there undoes no decision.
fn give_back(desk: &Desk, task: TaskId, run: RunId) -> Result<Option<String>, Failure> {
    let Some(tracked) = desk.store.task_spec(task)?.and_then(|spec| spec.tracked) else { return Ok(None) };
    let board = Board::of(run, &desk.store.log(run)?);
    let Some(policy) = board.run_policy().filter(|policy| policy.supply.is_told()) else {
        return Ok(None);
    };
    let repository = Repository::discover(&Git::new(door::environment()), &desk.root)?;
    let tracker = Tracker { supply: policy.supply.clone(), repository, manners: drive::manners() };
    let id = &tracked.id;
    Ok(match tracker.give_back(id) {
        Ok(None) => None,
        Ok(Some(why)) => Some(format!("{id} stays as it is in the tracker: {why}")),
        Err(error) => Some(format!("warning: {id} is still in progress in the tracker: {error}")),
    })
}
