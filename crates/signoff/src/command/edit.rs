//! `signoff edit`: a person sets the final verdict, without a review.

use signoff_core::command::Command;
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::machine::{FinalWord, Head};
use signoff_core::view::TaskState;
use signoff_engine::board::Board;
use signoff_engine::git::{Git, Repository};
use signoff_store::Store;

use super::decide::{Taken, decide};
use crate::console::Console;
use crate::desk::Desk;
use crate::door;
use crate::drive::{TaskOrRun, task_or_run};
use crate::failure::{Exit, Failure};

/// Set the final verdict of a task, or of a run's final review, without a review
///
/// The verdict is recorded with who set it, and shown as a person's. Only APPROVED lets other tasks build on it. Not
/// while an agent is changing files: what it has not finished would be lost.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  signoff edit 29 --verdict APPROVED --reason \"the finding is about generated code\""
)]
pub struct Args {
    /// The task, or `run-N` for the final review of a run
    #[arg(value_name = "ID", value_parser = task_or_run)]
    id: TaskOrRun,
    /// APPROVED, CHANGES_REQUESTED, MAX_CYCLES_REACHED or NEEDS_DISCUSSION
    #[arg(long, value_name = "VERDICT")]
    verdict: String,
    /// Why
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
}

/// Asked beforehand to say what to do; who drives the run asks again.
fn check_nobody_writes(
    desk: &Desk,
    task: Option<TaskId>,
    (run, loop_id): (RunId, &LoopId),
) -> Result<(), Failure> {
    let board = Board::of(run, &desk.store.log(run)?);
    if !board.loops.get(loop_id).is_some_and(|worked| worked.state.is_being_written()) {
        return Ok(());
    }
    let Some(task) = task else {
        return Err(Failure::usage(format!("the final review of run {run} is being worked on"))
            .hint(format!("wait for it, or go on with `signoff run --resume {run}`")));
    };
    let hint = if desk.store.is_held(run)? {
        format!("wait for it (`signoff logs {task} -f`), or call it off with `signoff cancel {task}`")
    } else {
        format!("`signoff work {task}` goes on with it; `signoff cancel {task}` calls it off")
    };
    Err(Failure::usage(format!("task {task} is being worked on")).hint(hint))
}

/// Sets the final verdict of a task.
pub fn edit(
    desk: &Desk,
    task: TaskId,
    (verdict, by): (&str, String),
    reason: &str,
) -> Result<Taken, Failure> {
    let (run, loop_id) = desk.loop_of(task)?;
    let verdict = verdict.to_ascii_uppercase();
    let wish = Command::Edit { verdict, by, reason: reason.to_owned(), head: head_of(desk, task)? };
    check_nobody_writes(desk, Some(task), (run, &loop_id))?;
    decide(desk, run, &loop_id, wish)
}

/// A run that is in the default branch cannot be refused any more: fixes of its branch would not land.
fn check_not_landed(desk: &Desk, run: RunId) -> Result<(), Failure> {
    let mut rows = desk.tasks()?;
    rows.retain(|row| row.run_id == Some(run.0));
    desk.note_landed(&mut rows);
    match rows.last().filter(|_| rows.iter().all(|row| row.state() == TaskState::Landed)) {
        Some(last) => Err(Failure::usage(format!("run {run} is in the default branch already")).hint(
            format!("`signoff improve {}` goes on with a task of it, `signoff add` adds another", last.id),
        )),
        None => Ok(()),
    }
}

/// Sets the final verdict of a run's final review, about the run's branch as it is.
fn edit_final_review(desk: &Desk, run: RunId, verdict: &str, reason: &str) -> Result<Taken, Failure> {
    desk.check_final_review(run)?;
    if !verdict.eq_ignore_ascii_case(FinalWord::Approved.word()) {
        check_not_landed(desk, run)?;
    }
    let (loop_id, verdict, by) = (LoopId::whole(), verdict.to_ascii_uppercase(), door::person());
    let head = desk.repository()?.head_of(&run.branch())?;
    check_nobody_writes(desk, None, (run, &loop_id))?;
    decide(desk, run, &loop_id, Command::Edit { verdict, by, reason: reason.to_owned(), head })
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let (verdict, person) = (args.verdict.to_ascii_uppercase(), door::person());
    match args.id {
        TaskOrRun::Task(task) => {
            let desk = Desk::open(task)?;
            edit(&desk, task, (&args.verdict, door::person()), &args.reason)?.tell(console);
            super::told(&desk, task, &format!("Task #{task} is {verdict} by {person}\n"), console)
        }
        TaskOrRun::Run(run) => {
            let desk = Desk::of_run(run)?;
            edit_final_review(&desk, run, &args.verdict, &args.reason)?.tell(console);
            super::told_of_run(&desk, run, &format!("Run {run} is {verdict} by {person}\n"), console)
        }
    }
}

/// Where the task's branch is, which is what a person looks at who decides about it.
pub fn head_of(desk: &Desk, task: TaskId) -> Result<Option<Head>, Failure> {
    let Some(branch) = desk.task(task)?.branch else { return Ok(None) };
    let repository = Repository::discover(&Git::new(door::environment()), &desk.root)?;
    Ok(repository.head_of(&branch)?)
}
