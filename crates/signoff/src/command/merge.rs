//! `signoff merge`: one approved task joins the default branch.

use signoff_core::command::Command;
use signoff_core::ids::{RunId, TaskId};
use signoff_core::machine::Stage;
use signoff_core::view::Status;
use signoff_engine::board::{Board, Worked};
use signoff_store::Store;
use signoff_term::json::{LandReport, LandedTask};

use super::decide::decide;
use super::edit::head_of;
use super::landing::{self, Arrival, Landed};
use crate::console::Console;
use crate::desk::Desk;
use crate::door;
use crate::drive::task_id;
use crate::failure::{Exit, Failure};

/// Bring an approved task into the default branch
///
/// With a merge commit, or with `landing = "rebase"` with the same changes on top; after the project's checks have
/// passed on the two together. Where the default branch is checked out and clean, its files follow. A conflict goes back
/// to the task: its fixer resolves it, it is reviewed again, and lands then.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff merge 29")]
pub struct Args {
    /// The task
    #[arg(value_name = "ID", value_parser = task_id)]
    task: TaskId,
    /// Approve it in your name if nobody has
    #[arg(long, requires = "reason")]
    force: bool,
    /// Why
    #[arg(long, value_name = "TEXT", requires = "force")]
    reason: Option<String>,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let task = args.task;
    let desk = Desk::open(task)?;
    if args.force {
        accept(&desk, task, args.reason.as_deref().unwrap_or_default(), console)?;
        if let Some(run) = waits_for_its_group(&desk, task)? {
            return tell_of_group(&desk, (task, run), console);
        }
    }
    drop(desk);
    let _turn = landing::wait_for_turn(console)?;
    match landing::land_task(task, console)? {
        Ok(landed) => tell(task, &landed, console),
        Err(exit) => Ok(exit),
    }
}

/// A person's word in place of an approval that is not there. It is recorded as theirs.
fn accept(desk: &Desk, task: TaskId, reason: &str, console: &Console) -> Result<(), Failure> {
    let (row, _) = desk.seen(task)?;
    if row.status == Status::Completed && row.final_verdict.as_deref() == Some("APPROVED") {
        return Ok(());
    }
    let (run, loop_id) = desk.loop_of(task)?;
    let (by, reason, head) = (door::person(), reason.to_owned(), head_of(desk, task)?);
    let wish = Command::Edit { verdict: "APPROVED".to_owned(), by, reason, head };
    decide(desk, run, &loop_id, wish)?.tell(console);
    Ok(())
}

/// The run of a task that is signed off and lands when all of its group are.
fn waits_for_its_group(desk: &Desk, task: TaskId) -> Result<Option<RunId>, Failure> {
    let (run, loop_id) = desk.loop_of(task)?;
    let board = Board::of(run, &desk.store.log(run)?);
    let waits = |worked: &Worked| matches!(worked.state.stage, Stage::AwaitingLanding { .. });
    Ok(board.loops.get(&loop_id).is_some_and(waits).then_some(run))
}

fn tell_of_group(desk: &Desk, (task, run): (TaskId, RunId), console: &Console) -> Result<Exit, Failure> {
    if console.json {
        let one = LandedTask { task_id: task.0, status: "waiting", commit: None, reason: None };
        console.json(&LandReport::of(run.branch(), vec![one]))?;
        return Ok(Exit::Done);
    }
    let person = door::person();
    console.text(&format!(
        "✓ Task #{task} is APPROVED by {person}, and lands with its group on {}\n",
        run.branch()
    ))?;
    if !desk.store.is_held(run)? {
        console.note(&format!("`signoff run --resume {run}` goes on"));
    }
    Ok(Exit::Done)
}

fn tell(task: TaskId, landed: &Landed, console: &Console) -> Result<Exit, Failure> {
    if console.json {
        let (target, commit) = (landed.target.clone(), landed.commit.clone());
        let status = if landed.arrival.is_now() { "landed" } else { "already" };
        let one = LandedTask { task_id: task.0, status, commit: Some(commit), reason: None };
        console.json(&LandReport::of(target, vec![one]))?;
    } else {
        console.text(&format!("{}\n", words(task, landed)))?;
    }
    Ok(Exit::Done)
}

/// What became of a task, in a line.
pub fn words(task: TaskId, landed: &Landed) -> String {
    let Landed { target, commit, arrival } = landed;
    let commit = commit.get(..12).unwrap_or(commit);
    match arrival {
        Arrival::Now => format!("✓ Task #{task} is in {target} ({commit})"),
        Arrival::Before => format!("✓ Task #{task} was in {target} before"),
        Arrival::Nothing => format!("Task #{task} changes nothing: there is nothing to land"),
    }
}
