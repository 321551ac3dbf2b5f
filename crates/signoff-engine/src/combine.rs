//! Fixes that were made side by side become one line of commits on their loop's branch.
//!
//! Only objects are written until the branch moves. What will be moved to is written down before, so that a program that
//! was killed in between knows its own commits again.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use signoff_core::ids::Commit;
use signoff_core::machine::{Event, Head, JobKind};
use signoff_core::prompt::commit_message;
use signoff_core::review::Usage;
use tokio::sync::mpsc::UnboundedSender;

use crate::assignment::Assignment;
use crate::attempt::{self, End, Report, Workshop};
use crate::dispatcher::Input;
use crate::draft::{self, Care};
use crate::error::EngineError;
use crate::failpoint;
use crate::git::{GitError, Together};
use crate::place::apart;

/// So often is a branch looked at again that somebody else keeps moving.
const TRIES: usize = 5;

/// What the branch is about to be moved to.
#[derive(Debug, Serialize, Deserialize)]
struct Plan {
    parts: Vec<(usize, Commit)>,
    kept: Vec<usize>,
    head: Head,
}

/// Puts together what the fixers of a loop left, and tells what could not be kept.
pub async fn carry_out(shop: Arc<Workshop>, task: Arc<Assignment>, tell: UnboundedSender<Input>) {
    let combining = (shop, task.clone());
    let combined = attempt::blocking(move || combine(&combining.0, &combining.1)).await;
    let (end, notes) = match combined {
        Ok((event, notes)) => (End::Event(Box::new(event)), notes),
        Err(error) => (End::Trouble(error), Vec::new()),
    };
    let (run, loop_id, attempt) = (task.run, task.loop_id.clone(), task.job.attempt);
    let (usage, facts) = (Usage::default(), Vec::new());
    let report = Report { run, loop_id, attempt, end, usage, notes, facts, stops_picking: false };
    tell.send(Input::Reported(Box::new(report))).ok();
}

fn combine(shop: &Workshop, task: &Assignment) -> Result<(Event, Vec<String>), EngineError> {
    let JobKind::Combine { parts } = &task.job.kind else {
        return Err(EngineError::Broken("nothing was done side by side".to_owned()));
    };
    failpoint::pass("combine");
    let mut notes = Vec::new();
    let Together { kept, head } = together(shop, task, parts, &mut notes)?;
    failpoint::pass("combined");
    apart::forget_all(&shop.repository, (task.run, &task.loop_id), Path::new(&task.place.worktree));
    let attempt = task.job.attempt;
    let event = if parts.iter().all(|(number, _)| kept.contains(number)) {
        Event::FixesCombined { attempt, head }
    } else {
        Event::FixesOverlapped { attempt, kept, head }
    };
    Ok((event, notes))
}

/// Moves the branch to all that fits together.
fn together(
    shop: &Workshop,
    task: &Assignment,
    parts: &[(usize, Commit)],
    notes: &mut Vec<String>,
) -> Result<Together, EngineError> {
    if let Some(done) = done_before(shop, task, parts)? {
        return Ok(done);
    }
    notes.extend(moved(shop, task)?);
    let (from, message) = (&task.state.head.commit, commit_message::feedback(task.cycle()));
    for _ in 0..TRIES {
        let tip = tip(shop, task)?;
        let Together { kept, head } = shop.repository.put_together((from, &tip), parts, &message)?;
        let plan = Plan { parts: parts.to_vec(), kept: kept.clone(), head: head.clone() };
        plan.write(shop, task)?;
        failpoint::pass("put_together");
        if head == tip || shop.repository.advance(&task.branch, &tip.commit, &head.commit)? {
            failpoint::pass("moved");
            follow(shop, task, &head.commit)?;
            return Ok(Together { kept, head });
        }
    }
    Err(GitError::KeepsMoving(task.branch.clone()).into())
}

/// What a program that was killed had got done: the branch has what it was to be moved to.
fn done_before(
    shop: &Workshop,
    task: &Assignment,
    parts: &[(usize, Commit)],
) -> Result<Option<Together>, EngineError> {
    let Some(plan) = Plan::read(shop, task).filter(|plan| plan.parts == parts) else { return Ok(None) };
    shop.revive_branch(task)?;
    let gone = || GitError::BranchGone(task.branch.clone());
    let tip = shop.repository.head_of(&task.branch)?.ok_or_else(gone)?;
    if tip == plan.head {
        follow(shop, task, &tip.commit)?;
    } else if !shop.repository.is_ancestor(plan.head.commit.as_str(), tip.commit.as_str())? {
        return Ok(None);
    }
    Ok(Some(Together { kept: plan.kept, head: tip }))
}

/// What people should be told of a branch that somebody else moved while fixers worked beside it.
fn moved(shop: &Workshop, task: &Assignment) -> Result<Option<String>, EngineError> {
    let (before, branch) = (&task.state.head.commit, &task.branch);
    let Some(tip) = shop.repository.head_of(branch)?.filter(|tip| tip.commit != *before) else {
        return Ok(None);
    };
    if let Some(left) = attempt::left(shop, task, &tip)? {
        return Ok(Some(left));
    }
    let tip = tip.commit;
    Ok(Some(format!(
        "somebody committed to {branch} while fixes were made beside it, which stays: `git log {before}..{tip}` shows it"
    )))
}

/// The loop's branch as it is, with what somebody did in its worktree meanwhile.
fn tip(shop: &Workshop, task: &Assignment) -> Result<Head, EngineError> {
    let worktree = shop.worktree_with_files(task)?;
    let committed = match worktree.commit_all("Changes by hand") {
        Err(GitError::BranchGone(_)) => {
            shop.revive_branch(task)?;
            worktree.commit_all("Changes by hand")?
        }
        committed => committed?,
    };
    Ok(committed.head)
}

/// The files of the loop's worktree follow its branch.
fn follow(shop: &Workshop, task: &Assignment, commit: &Commit) -> Result<(), EngineError> {
    if let Ok(worktree) = shop.repository.worktree(Path::new(&task.place.worktree)) {
        worktree.follow_branch(commit)?;
        shop.readings.writing(&worktree);
    }
    Ok(())
}

impl Plan {
    fn read(shop: &Workshop, task: &Assignment) -> Option<Self> {
        serde_json::from_slice(&fs::read(path(shop, task)).ok()?).ok()
    }

    fn write(&self, shop: &Workshop, task: &Assignment) -> Result<(), EngineError> {
        let path = path(shop, task);
        let failed = |error| EngineError::io("write", &path, error);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).map_err(failed)?;
        let text = serde_json::to_vec(self).map_err(|error| failed(error.into()))?;
        draft::write(&path, &text, Care::Durable).map_err(failed)
    }
}

fn path(shop: &Workshop, task: &Assignment) -> PathBuf {
    shop.layout.attempts(task.run, &task.loop_id).join("combined.json")
}
