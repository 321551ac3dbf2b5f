//! `signoff improve`: another go at a task's branch, from its last review.

use signoff_core::ids::TaskId;
use signoff_core::task::{TaskSpec, TaskType};
use signoff_core::view::{Status, TaskRow};
use signoff_engine::artifact;
use signoff_store::Store;

use super::{add, work};
use crate::console::Console;
use crate::desk::{Bench, not_started};
use crate::drive::task_id;
use crate::failure::{Exit, Failure};
use crate::preflight;

/// Have a task's work improved from its last review
///
/// It is a new task on the same branch, worked at once. Where a reviewer or a check exists, or with --review, the result
/// is reviewed, and improved until it is approved.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff improve 29 --review \"keep the public API as it is\"")]
pub struct Args {
    /// The task whose work is improved
    #[arg(value_name = "ID", value_parser = task_id)]
    task: TaskId,
    /// What you want to add to the review
    guidance: Option<String>,
    /// Review the result, and improve until it is approved, also where no reviewer and no check is configured
    #[arg(long)]
    review: bool,
    /// Only queue it, for the next `signoff work`
    #[arg(long)]
    queue: bool,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let bench = Bench::open()?;
    let row = continued(&bench, args.task)?;
    let root = TaskId(row.continues.unwrap_or(row.id));
    let Some((review, number)) = artifact::latest(&bench.layout.reviews(), &family(&bench, root)?) else {
        return Err(Failure::usage(format!("task {} has no review to improve from", args.task))
            .hint(format!("`signoff review {}` makes one", args.task)));
    };
    let before = bench.store.task_spec(root)?.unwrap_or_default();
    let spec = TaskSpec {
        kind: TaskType::Improve,
        auto_review: args.review.then_some(true),
        continues: Some(root),
        first_review: Some(number),
        answers: Some(review),
        guidance: args.guidance.clone(),
        max_review_cycles: before.max_review_cycles,
        title: before.title,
        description: before.description,
        model: before.model,
        plan: before.plan,
        ..TaskSpec::default()
    };
    if !args.queue {
        preflight::check(&bench, &spec)?;
    }
    let task = add::add(&bench, spec)?;
    if args.queue {
        return add::added(&bench, task, console);
    }
    work::work(bench, (&[task], false, None), console)
}

/// All tasks of a branch.
fn family(bench: &Bench, root: TaskId) -> Result<Vec<TaskId>, Failure> {
    let own = |row: &TaskRow| row.id == root.0 || row.continues == Some(root.0);
    Ok(bench.store.tasks()?.iter().filter(|row| own(row)).map(|row| TaskId(row.id)).collect())
}

/// A task whose branch is there and that nobody is working on.
pub fn continued(bench: &Bench, task: TaskId) -> Result<TaskRow, Failure> {
    let Some(row) = bench.store.task(task)? else {
        return Err(
            Failure::usage(format!("there is no task {task}")).hint("`signoff status` lists the tasks")
        );
    };
    if row.base.is_none() {
        return Err(not_started(&row));
    }
    match row.status {
        Status::InProgress | Status::Waiting | Status::Paused => {
            Err(Failure::usage(format!("task {task} is not through: it is {}", row.status.word()))
                .hint(format!("wait for it, or `signoff cancel {task}`")))
        }
        Status::Pending
        | Status::Completed
        | Status::Failed
        | Status::Stuck
        | Status::Blocked
        | Status::Cancelled => Ok(row),
    }
}
