//! `signoff retry`: once more, from where it failed.

use signoff_core::command::Command;
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::task::TaskType;
use signoff_store::Store;

use super::decide::{Taken, decide};
use super::run::resume;
use super::work;
use crate::console::Console;
use crate::desk::{Bench, Desk};
use crate::door;
use crate::drive::{TaskOrRun, task_or_run};
use crate::failure::{Exit, Failure};
use crate::preflight;

/// Go on with a task, or with the final review of a run, that failed or stopped
///
/// It goes on from the failed phase; what was finished is not repeated. A task that used up its reviews or attempts
/// is granted one more.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff retry 29")]
pub struct Args {
    /// The task, or `run-N` for the final review of a run
    #[arg(value_name = "ID", value_parser = task_or_run)]
    id: TaskOrRun,
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
    match args.id {
        TaskOrRun::Task(task) => retry_task(task, args.queue, console),
        TaskOrRun::Run(run) => retry_final_review(run, args.queue, console),
    }
}

fn retry_final_review(run: RunId, queue: bool, console: &Console) -> Result<Exit, Failure> {
    let (desk, loop_id) = (Desk::of_run(run)?, LoopId::whole());
    desk.check_final_review(run)?;
    if !queue && !desk.store.is_held(run)? {
        preflight::check_run(&Bench::open()?, run, (Some(&loop_id), &[]))?;
    }
    let taken = decide(&desk, run, &loop_id, Command::Retry { by: door::person() })?;
    taken.tell(console);
    if queue || taken == Taken::HandedOver {
        let text = format!("The final review of run {run} goes on\n");
        return super::told_of_run(&desk, run, &text, console);
    }
    drop(desk);
    resume::go_on(run, console)
}

fn retry_task(task: TaskId, queue: bool, console: &Console) -> Result<Exit, Failure> {
    let desk = Desk::open(task)?;
    let (run, loop_id) = retried(&desk, task)?;
    // Whoever drives it already has looked; what is only queued is looked at when it is taken up.
    if !queue && !desk.store.is_held(run)? {
        preflight::check_run(&Bench::open()?, run, (Some(&loop_id), &[task]))?;
    }
    let taken = decide(&desk, run, &loop_id, Command::Retry { by: door::person() })?;
    taken.tell(console);
    if queue || taken == Taken::HandedOver {
        return super::told(&desk, task, &format!("Task #{task} goes on\n"), console);
    }
    drop(desk);
    work::work(Bench::open()?, (&[task], false, None), console)
}
