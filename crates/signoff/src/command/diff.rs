//! `signoff diff`: shows what a task has changed.

use std::path::Path;

use signoff_core::ids::{Commit, TaskId};
use signoff_core::view::TaskRow;
use signoff_core::view::inbox::Action;
use signoff_engine::git::{GitDiff, GitError, NewWorktree, Repository};
use signoff_term::json::{DiffReport, VERSION};

use crate::project::not_started;
use crate::run_loop::task_id;
use crate::{CliError, CommandExit, Console, Project, Result};

/// Show what a task has changed
///
/// Shows the diff from the task's base commit to its worktree, with uncommitted changes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  signoff diff 29 | less")]
pub struct Args {
    /// The task
    #[arg(value_name = "ID", value_parser = task_id)]
    task: TaskId,
    /// Show only the changed files and line counts
    #[arg(long)]
    stat: bool,
}

/// Runs the command.
pub fn run(args: &Args, console: &Console) -> Result<CommandExit> {
    let project = Project::open()?;
    let row = project.read_only().task(args.task)?;
    let diff = diff_of_row(&project.repository, &row)?;
    if !console.json {
        console.data(if args.stat { &diff.stat } else { &diff.patch })?;
        return Ok(CommandExit::Done);
    }
    console.json(&DiffReport {
        version: VERSION,
        task_id: args.task.0,
        base: row.base.unwrap_or_default(),
        branch: row.branch.unwrap_or_default(),
        stat: diff.stat,
        diff: diff.patch,
        left_out: diff.omitted.into_iter().map(|file| file.path).collect(),
    })?;
    Ok(CommandExit::Done)
}

/// The changes of a task, committed or not. A missing worktree is created again from its branch.
pub fn diff_of_row(repository: &Repository, row: &TaskRow) -> Result<GitDiff> {
    let (Some(base), Some(branch), Some(path)) = (&row.base, &row.branch, &row.worktree) else {
        return Err(not_started(row));
    };
    let (commit, path) = (Commit::new(base.as_str()), Path::new(path));
    match repository.worktree(path) {
        Ok(worktree) if worktree.exists() => Ok(worktree.preview_diff(&commit)?),
        Ok(_) | Err(GitError::WorktreeGone(_)) if !repository.has_branch(branch)? => {
            Err(CliError::from(GitError::BranchGone(branch.clone()))
                .hint(format!("`{}` recreates it at its last commit, if git still has it", Action::Review(row.id))))
        }
        // The worktree is gone, but the branch still has the commits.
        Ok(_) | Err(GitError::WorktreeGone(_)) => {
            let again = NewWorktree { path, branch, start: &commit };
            Ok(repository.add_worktree(&again)?.diff(&commit)?)
        }
        Err(error) => Err(error.into()),
    }
}
