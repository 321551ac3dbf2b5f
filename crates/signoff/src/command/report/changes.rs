//! How much a task or a run has changed. What cannot be told is told so: a report is no place to fail.

use signoff_core::ids::Commit;
use signoff_core::machine::{Loop, Reason};
use signoff_core::view::{Status, TaskRow};
use signoff_engine::git::{Git, Repository, Tips};
use signoff_term::report::Changes;

use crate::command::diff;
use crate::desk::{Desk, persons_git};

/// In a run of more tasks than this, what was signed off is not counted: each is a git of its own.
const COUNTED: usize = 200;

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
            let most = format!("not counted in a run of more than {COUNTED} tasks");
            return Changes::unknown(format!("{most}: `signoff diff {} --stat`", row.id));
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

/// Of a run whose tasks come together on one branch: from where the first of them began.
pub fn of_run(counting: &Counting, branch: &str, rows: &[TaskRow]) -> Option<Changes> {
    let repository = counting.repository.as_ref()?;
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
