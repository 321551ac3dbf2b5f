//! Counts the changes of a task or a run. If that fails, the report says why instead of failing.

use signoff_core::ids::Commit;
use signoff_core::machine::{Loop, Reason};
use signoff_core::view::TaskRow;
use signoff_engine::git::{BranchTips, Git, Repository};
use signoff_term::report::{Changes, MAX_COUNTED_TASKS, TaskSection};

use crate::ReadOnlyProject;
use crate::command::diff;
use crate::project::user_git;

/// Counts changes with as few git processes as possible.
pub struct ChangeCounter {
    /// `None` if git cannot open it; the report is written without the changes.
    repository: Option<Repository>,
    tips: BranchTips,
    git: Git,
    /// The number of tasks in the report.
    pub tasks: usize,
}

impl ChangeCounter {
    pub fn new(project: &ReadOnlyProject) -> Self {
        Self { repository: project.repository().ok(), tips: BranchTips::new(&project.root), git: user_git(), tasks: 1 }
    }

    /// Counts the changes of a task. A finished task is counted up to its own last commit, because later tasks may have
    /// continued its branch. A running task is counted up to its worktree. A task that changed after its review is
    /// counted up to the tip of its branch.
    pub fn count_task(&mut self, row: &TaskRow, this: Option<&Loop>, is_signed_off: bool) -> Changes {
        let Some(base) = &row.base else {
            return Changes::unknown("nothing was changed: it was never started");
        };
        let base = Commit::new(base.as_str());
        let Some(repository) = &self.repository else {
            return Changes::unknown("git does not know this repository");
        };
        if is_signed_off && self.tasks > MAX_COUNTED_TASKS {
            return Changes::uncounted();
        }
        if !row.status.is_over()
            && has_worktree(repository, row)
            && let Ok(diff) = diff::diff_of_row(repository, row)
        {
            return Changes::parse_stat(&diff.stat);
        }
        let head = this.map(|this| this.head.commit.clone()).filter(|head| !head.as_str().is_empty());
        let Some(head) = head else { return Changes::unknown("nothing was committed") };
        let tip = row.branch.as_deref().and_then(|branch| self.tips.commit(branch, &self.git));
        match tip.map(Commit::new) {
            Some(tip) if is_voided(row) => voided(repository, &base, &head, &tip),
            Some(_) => committed(repository, &base, &head, None),
            None => committed(repository, &base, &head, row.branch.as_deref()),
        }
    }
}

/// Whether the branch has moved since the approval.
fn is_voided(row: &TaskRow) -> bool {
    row.approved_commit.is_some() && row.reason == Some(Reason::ChangedAfterReview)
}

/// Counts the changes up to the tip, with a note how much of it was reviewed.
fn voided(repository: &Repository, base: &Commit, reviewed: &Commit, tip: &Commit) -> Changes {
    let before = committed(repository, base, reviewed, None).summary();
    let short: String = reviewed.as_str().chars().take(12).collect();
    committed(repository, base, tip, None)
        .with_note(format!("Only what lies up to the commit {short} was reviewed: {before}."))
}

/// Counts the committed changes. `gone` is the name of the branch if it no longer exists.
fn committed(repository: &Repository, base: &Commit, head: &Commit, gone: Option<&str>) -> Changes {
    match (repository.diff_between(base, head), gone) {
        (Ok(diff), None) => Changes::parse_stat(&diff.stat),
        (Ok(diff), Some(branch)) => Changes::parse_stat(&diff.stat)
            .with_note(format!("The branch {branch} is gone; this is what its last commit changed.")),
        (Err(_), Some(branch)) => {
            Changes::unknown(format!("the branch {branch} is gone, and git does not have its commits any more"))
        }
        (Err(_), None) => Changes::unknown(format!("git does not have the commit {head} any more")),
    }
}

/// Counts the changes of a run with a shared branch, from the base of its first task. `has_landed` tells whether the
/// log contains a landing on that branch.
pub fn count_run(counter: &ChangeCounter, branch: &str, tasks: &[TaskSection], has_landed: bool) -> Option<Changes> {
    let repository = counter.repository.as_ref()?;
    let rows = || tasks.iter().map(TaskSection::row);
    let first = rows().filter(|row| row.base.is_some()).min_by_key(|row| row.started_at.clone())?;
    let base = Commit::new(first.base.as_deref()?);
    let Ok(Some(head)) = repository.head_of(branch) else {
        // The tasks of a plan create the branch when the first one starts; otherwise the first landing creates it.
        let in_turn = rows().any(|row| row.base.is_some() && row.branch.as_deref() == Some(branch));
        let was_there = has_landed || in_turn || repository.branch_base(branch).is_ok_and(|at| at.is_some());
        return Some(if was_there { gone(branch) } else { not_landed() });
    };
    let changes = repository
        .diff_between(&base, &head.commit)
        .map_or_else(|_| gone(branch), |diff| Changes::parse_stat(&diff.stat));
    let is_empty = changes.stat.as_deref().is_some_and(|stat| stat.trim().is_empty());
    let elsewhere = tasks.iter().any(|task| task.changes.files > 0 || task.changes.is_uncounted());
    Some(if is_empty && elsewhere { not_landed() } else { changes })
}

fn gone(branch: &str) -> Changes {
    Changes::unknown(format!("the branch {branch} is gone"))
}

fn not_landed() -> Changes {
    Changes::unknown("nothing has landed yet")
}

/// Whether the worktree exists. A report must not create one.
fn has_worktree(repository: &Repository, row: &TaskRow) -> bool {
    let path = row.worktree.as_deref().map(std::path::Path::new);
    path.is_some_and(|path| repository.worktree(path).is_ok_and(|worktree| worktree.exists()))
}
