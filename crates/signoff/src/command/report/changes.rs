//! How much a task or a run has changed. What cannot be told is told so: a report is no place to fail.

use signoff_core::ids::Commit;
use signoff_core::machine::{Loop, Reason};
use signoff_core::view::{Status, TaskRow};
use signoff_engine::git::{Git, Repository, Tips};
use signoff_term::report::{COUNTED, Changes, TaskAccount};

use crate::command::diff;
use crate::desk::{Desk, persons_git};

/// Asks git, as seldom as it can.
pub struct Counting {
    /// None where git cannot find it: a report tells what is known.
    repository: Option<Repository>,
    tips: Tips,
    git: Git,
    /// How many tasks the report is of.
    pub tasks: usize,
}

impl Counting {
    pub fn of(desk: &Desk) -> Self {
        Self { repository: desk.repository().ok(), tips: Tips::of(&desk.root), git: persons_git(), tasks: 1 }
    }

    /// Of a task that is over, from where it began to its last commit: later tasks may have gone on with its branch. Of
    /// one under way, all that lies in its worktree. Of one that was changed after its review, all that is there now.
    pub fn of_task(&mut self, row: &TaskRow, this: Option<&Loop>, is_signed_off: bool) -> Changes {
        let Some(base) = &row.base else {
            return Changes::unknown("nothing was changed: it was never started");
        };
        let base = Commit::new(base.as_str());
        let Some(repository) = &self.repository else {
            return Changes::unknown("git does not know this repository");
        };
        if is_signed_off && self.tasks > COUNTED {
            return Changes::uncounted();
        }
        if !is_over(row.status)
            && has_worktree(repository, row)
            && let Ok(diff) = diff::of(repository, row)
        {
            return Changes::of(&diff.stat);
        }
        let head = this.map(|this| this.head.commit.clone()).filter(|head| !head.as_str().is_empty());
        let Some(head) = head else { return Changes::unknown("nothing was committed") };
        let tip = row.branch.as_deref().and_then(|branch| self.tips.of_branch(branch, &self.git));
        match tip.map(Commit::new) {
            Some(tip) if is_voided(row) => voided(repository, &base, (&head, &tip)),
            Some(_) => committed(repository, (&base, &head), None),
            None => committed(repository, (&base, &head), row.branch.as_deref()),
        }
    }
}

/// Whether something came onto its branch after what was approved.
fn is_voided(row: &TaskRow) -> bool {
    row.approved_commit.is_some() && row.reason == Some(Reason::ChangedAfterReview.word())
}

/// All that lies on the branch now, and beside it how much of that was reviewed.
fn voided(repository: &Repository, base: &Commit, (reviewed, tip): (&Commit, &Commit)) -> Changes {
    let before = committed(repository, (base, reviewed), None).summary();
    let short: String = reviewed.as_str().chars().take(12).collect();
    committed(repository, (base, tip), None)
        .noting(format!("Only what lies up to the commit {short} was reviewed: {before}."))
}

/// What was committed; `gone` is its branch, where that is not there any more.
fn committed(repository: &Repository, (base, head): (&Commit, &Commit), gone: Option<&str>) -> Changes {
    match (repository.diff_between(base, head), gone) {
        (Ok(diff), None) => Changes::of(&diff.stat),
        (Ok(diff), Some(branch)) => Changes::of(&diff.stat)
            .noting(format!("The branch {branch} is gone; this is what its last commit changed.")),
        (Err(_), Some(branch)) => Changes::unknown(format!(
            "the branch {branch} is gone, and git does not have its commits any more"
        )),
        (Err(_), None) => Changes::unknown(format!("git does not have the commit {head} any more")),
    }
}

/// Of a run whose tasks come together on one branch: from where the first of them began. `has_landed` tells whether the
/// log knows of something that came onto it.
pub fn of_run(counting: &Counting, branch: &str, tasks: &[TaskAccount], has_landed: bool) -> Option<Changes> {
    let repository = counting.repository.as_ref()?;
    let rows = || tasks.iter().map(TaskAccount::row);
    let first = rows().filter(|row| row.base.is_some()).min_by_key(|row| row.started_at.clone())?;
    let base = Commit::new(first.base.as_deref()?);
    let Ok(Some(head)) = repository.head_of(branch) else {
        // Where tasks follow each other the branch is made for the first of them, else when the first one lands.
        let in_turn = rows().any(|row| row.base.is_some() && row.branch.as_deref() == Some(branch));
        let was_there = has_landed || in_turn || repository.begun_at(branch).is_ok_and(|at| at.is_some());
        return Some(if was_there { gone(branch) } else { not_landed() });
    };
    let changes = repository
        .diff_between(&base, &head.commit)
        .map_or_else(|_| gone(branch), |diff| Changes::of(&diff.stat));
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
