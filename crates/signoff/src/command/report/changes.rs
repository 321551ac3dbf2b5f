//! How much a task or a run has changed. What cannot be told is told so: a report is no place to fail.

use signoff_core::ids::Commit;
use signoff_core::machine::Loop;
use signoff_core::view::{Status, TaskRow};
use signoff_engine::git::Repository;
use signoff_term::report::Changes;

use crate::command::diff;

/// Of a task that is over, from where it began to its last commit: later tasks may have gone on with its branch. Of one
/// under way, all that lies in its worktree.
pub fn of_task(repository: Option<&Repository>, row: &TaskRow, this: Option<&Loop>) -> Changes {
    let Some(base) = &row.base else { return Changes::unknown("nothing was changed: it was never started") };
    let Some(repository) = repository else { return Changes::unknown("git does not know this repository") };
    if !is_over(row.status)
        && has_worktree(repository, row)
        && let Ok(diff) = diff::of(repository, row)
    {
        return Changes::of(&diff.stat);
    }
    let head = this.map(|this| this.head.commit.clone()).filter(|head| !head.as_str().is_empty());
    let Some(head) = head else { return Changes::unknown("nothing was committed") };
    let branch = row.branch.as_deref().filter(|branch| !repository.has_branch(branch).unwrap_or(true));
    match (repository.diff_between(&Commit::new(base.as_str()), &head), branch) {
        (Ok(diff), None) => Changes::of(&diff.stat),
        (Ok(diff), Some(branch)) => Changes::of(&diff.stat)
            .noting(format!("The branch {branch} is gone; this is what its last commit changed.")),
        (Err(_), Some(branch)) => Changes::unknown(format!(
            "the branch {branch} is gone, and git does not have its commits any more"
        )),
        (Err(_), None) => Changes::unknown(format!("git does not have the commit {head} any more")),
    }
}

/// Of a run whose tasks come together on one branch: from where the first of them began.
pub fn of_run(repository: &Repository, branch: &str, rows: &[TaskRow]) -> Option<Changes> {
    let first = rows.iter().filter(|row| row.base.is_some()).min_by_key(|row| row.started_at.clone())?;
    let base = Commit::new(first.base.as_deref()?);
    let gone = || Changes::unknown(format!("the branch {branch} is gone"));
    let Ok(Some(head)) = repository.head_of(branch) else { return Some(gone()) };
    Some(repository.diff_between(&base, &head.commit).map_or_else(|_| gone(), |diff| Changes::of(&diff.stat)))
}

/// Looking must not make one.
fn has_worktree(repository: &Repository, row: &TaskRow) -> bool {
    let path = row.worktree.as_deref().map(std::path::Path::new);
    path.is_some_and(|path| repository.worktree(path).is_ok_and(|worktree| worktree.is_there()))
}

fn is_over(status: Status) -> bool {
    match status {
        Status::Completed | Status::Failed | Status::Stuck | Status::Cancelled => true,
        Status::Pending | Status::InProgress | Status::Waiting | Status::Paused | Status::Blocked => false,
    }
}
