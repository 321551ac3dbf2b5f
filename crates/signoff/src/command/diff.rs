//! `signoff diff`: what a task has changed.

use std::path::Path;

use signoff_core::ids::{Commit, TaskId};
use signoff_core::view::TaskRow;
use signoff_engine::git::{Diff, GitError, NewWorktree, Repository};
use signoff_store::Store;
use signoff_term::json::{DiffReport, VERSION};

use crate::console::Console;
use crate::desk::{Bench, not_started};
use crate::drive::task_id;
use crate::failure::{Exit, Failure};

/// Show what a task has changed
///
/// From the commit it began at to what lies in its worktree, committed or not.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff diff 29 | less")]
pub struct Args {
    /// The task
    #[arg(value_name = "ID", value_parser = task_id)]
    task: TaskId,
    /// Only which files, and how much
    #[arg(long)]
    stat: bool,
}

/// What a task has changed, and since when.
pub struct Changed {
    pub base: String,
    pub branch: String,
    pub diff: Diff,
}

/// Looks at what a task has changed.
pub fn changed(repository: &Repository, store: &dyn Store, task: TaskId) -> Result<Changed, Failure> {
    let Some(row) = store.task(task)? else {
        return Err(
            Failure::usage(format!("there is no task {task}")).hint("`signoff status` lists the tasks")
        );
    };
    let diff = of(repository, &row)?;
    let (base, branch) = (row.base.unwrap_or_default(), row.branch.unwrap_or_default());
    Ok(Changed { base, branch, diff })
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<Exit, Failure> {
    let task = args.task;
    let bench = Bench::open()?;
    let Changed { base, branch, diff } = changed(&bench.repository, &*bench.store, task)?;
    if console.json {
        let left_out = diff.left_out.into_iter().map(|file| file.path).collect();
        let (stat, diff) = (diff.stat, diff.patch);
        console.json(&DiffReport {
            version: VERSION,
            task_id: task.0,
            base,
            branch,
            stat,
            diff,
            left_out,
        })?;
    } else {
        console.data(if args.stat { &diff.stat } else { &diff.patch })?;
    }
    Ok(Exit::Done)
}

/// What a task has changed, committed or not. A worktree that is gone is made again from its branch.
pub fn of(repository: &Repository, row: &TaskRow) -> Result<Diff, Failure> {
    let (Some(base), Some(branch), Some(path)) = (&row.base, &row.branch, &row.worktree) else {
        return Err(not_started(row));
    };
    let (commit, path) = (Commit::new(base.as_str()), Path::new(path));
    match repository.worktree(path) {
        Ok(worktree) if worktree.is_there() => Ok(worktree.glance(&commit)?),
        Ok(_) | Err(GitError::WorktreeGone(_)) if !repository.has_branch(branch)? => {
            Err(Failure::from(GitError::BranchGone(branch.clone())).hint(format!(
                "`signoff review {}` makes it again at its last commit, if git still has that",
                row.id
            )))
        }
        // What is on the branch is there all the same.
        Ok(_) | Err(GitError::WorktreeGone(_)) => {
            let again = NewWorktree { path, branch, start: &commit };
            Ok(repository.add_worktree(&again)?.diff(&commit)?)
        }
        Err(error) => Err(error.into()),
    }
}
