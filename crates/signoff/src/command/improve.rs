//! `signoff improve`: improves a task's branch by its last review.

use signoff_core::ids::TaskId;
use signoff_core::task::{TaskSpec, TaskType};
use signoff_core::view::TaskRow;
use signoff_core::view::inbox::{self, Action};
use signoff_engine::artifact;
use signoff_store::Store;

use super::add;
use super::work;
use crate::project::not_started;
use crate::run_loop::task_id;
use crate::{CliError, CommandExit, Console, Project, Result, preflight};

/// Improve a task's work by its last review
///
/// Starts a new task on the same branch. If a reviewer or a check is configured, or with --review, the result is
/// reviewed and improved until it is approved.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff improve 29 --review \"keep the public API as it is\"")]
pub struct Args {
    /// The task to improve
    #[arg(value_name = "ID", value_parser = task_id)]
    task: TaskId,
    /// Further instructions for the agent
    guidance: Option<String>,
    /// Review and improve until it is approved, even if no reviewer or check is configured
    #[arg(long)]
    review: bool,
    /// Add it to the queue for the next `signoff work` instead of starting it
    #[arg(long)]
    queue: bool,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    let project = Project::open()?;
    let row = continuable_task(&project, args.task)?;
    let root = TaskId(row.continues.unwrap_or(row.id));
    let on_branch = |row: &TaskRow| row.id == root.0 || row.continues == Some(root.0);
    let rows = project.store.tasks()?.into_iter().filter(on_branch);
    let tasks: Vec<TaskId> = rows.map(|row| TaskId(row.id)).collect();
    let Some((review, number)) = artifact::latest(&project.layout.reviews(), &tasks) else {
        return Err(CliError::usage(format!("task {} has no review to improve from", args.task))
            .hint(format!("`{}` creates one", Action::Review(args.task.0))));
    };
    let before = project.store.task_spec(root)?.unwrap_or_default();
    let spec = TaskSpec {
        kind: TaskType::Improve,
        auto_review: args.review.then_some(true),
        continues: Some(root),
        first_review: Some(number),
        answered_review: Some(review),
        guidance: args.guidance.clone(),
        max_review_cycles: before.max_review_cycles,
        title: before.title,
        description: before.description,
        model: before.model,
        plan: before.plan,
        ..TaskSpec::default()
    };
    if !args.queue {
        preflight::check(&project, &spec)?;
    }
    let task = add::add(&project, spec)?;
    if args.queue {
        return add::print_added(&project, task, console);
    }
    work::work(project, &work::Args::for_task(task), console)
}

/// Returns a task that was started and is not in progress.
pub fn continuable_task(project: &Project, task: TaskId) -> Result<TaskRow> {
    let row = project.read_only().task(task)?;
    if row.base.is_none() {
        return Err(not_started(&row));
    }
    if inbox::is_under_way(&row) {
        return Err(CliError::usage(format!("task {task} is not finished: it is {}", row.status.into_str()))
            .hint(format!("wait for it, or `{}`", Action::Cancel(task.0))));
    }
    Ok(row)
}
