//! Where fixers work side by side: each in a throw-away worktree of its own, beside that of their loop.
//!
//! Worktree and ref are named after the round and the part, so that nothing is ever taken for another round's. What a
//! fixer left is kept by the ref, also when the worktree is gone.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use signoff_core::ids::{LoopId, RunId};
use signoff_core::machine::{Again, Head, Job, JobKind, Order, Policy, Stage};
use signoff_core::workflow::Phase;

use crate::assignment::Assignment;
use crate::attempt::Workshop;
use crate::error::EngineError;
use crate::git::{Repository, Worktree};

/// Between the name of the loop's worktree and the number of the fix.
const FIX: &str = "-fix-";

/// Pass, phase, cycle and part, where the job is one of several that are done side by side.
fn number(job: &Job) -> Option<String> {
    let Job { pass, phase, cycle, .. } = job;
    match &job.kind {
        JobKind::Fix { side_by_side: true, part, .. } => Some(format!("{pass}.{phase}.{cycle}.{part}")),
        JobKind::Fix { side_by_side: false, .. }
        | JobKind::Work { .. }
        | JobKind::Research { .. }
        | JobKind::Review { .. }
        | JobKind::Check
        | JobKind::Combine { .. }
        | JobKind::Land => None,
    }
}

/// Whether somebody is to work beside others of the same loop.
pub fn is_apart(task: &Assignment) -> bool {
    number(&task.job).is_some()
}

/// An assignment with the place where it is really worked.
pub fn assigned(mut task: Assignment) -> Assignment {
    if let Some(number) = number(&task.job) {
        let own = PathBuf::from(&task.place.worktree);
        let mut name = own.file_name().unwrap_or_default().to_owned();
        name.push(format!("{FIX}{number}"));
        task.place.worktree = own.with_file_name(name).display().to_string();
        // It is on none.
        task.branch = String::new();
    }
    task
}

/// Makes the worktree, or finds it again. It begins where its loop is, or where an earlier attempt got to.
pub fn make(shop: &Workshop, task: &Assignment) -> Result<Worktree, EngineError> {
    let start = || Ok(shop.repository.kept_apart(&kept_as(task))?.unwrap_or(task.state.head.commit.clone()));
    let worktree = shop.repository.apart(Path::new(&task.place.worktree), start)?;
    worktree.copy_files(shop.settings.copied_into_worktrees())?;
    Ok(worktree)
}

/// Keeps what was committed there. False if it does not go on from where the loop began: nobody can make anything of
/// that.
pub fn keep(shop: &Workshop, task: &Assignment, head: &Head) -> Result<bool, EngineError> {
    shop.readings.forget(Path::new(&task.place.worktree));
    let begun = task.place.base.as_str();
    if !shop.repository.is_ancestor(begun, head.commit.as_str())? {
        return Ok(false);
    }
    shop.repository.keep_apart(&kept_as(task), &head.commit)?;
    Ok(true)
}

/// Takes a worktree away that nobody can go on from: the next attempt gets a new one.
pub fn discard(shop: &Workshop, task: &Assignment) -> Result<(), EngineError> {
    let path = Path::new(&task.place.worktree);
    shop.readings.forget(path);
    Ok(shop.repository.clear_apart(path)?)
}

fn kept_as(task: &Assignment) -> String {
    format!("{}/{}", home(task.run, &task.loop_id), number(&task.job).unwrap_or_default())
}

/// What the names of all that is kept for a loop begin with.
fn home(run: RunId, loop_id: &LoopId) -> String {
    format!("{run}/{loop_id}")
}

/// What was made beside a loop's own worktree.
#[derive(Debug, Clone)]
pub struct Beside {
    path: PathBuf,
}

impl Beside {
    /// All there is beside a worktree, as the names tell: on disk, or known to git alone.
    pub fn of(repository: &Repository, own: &Path) -> Vec<Self> {
        let (Some(parent), Some(name)) = (own.parent(), own.file_name().and_then(OsStr::to_str)) else {
            return Vec::new();
        };
        let prefix = format!("{name}{FIX}");
        let one = |path: PathBuf| {
            let number = path.file_name().and_then(OsStr::to_str)?.strip_prefix(&prefix)?;
            let is_one = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            is_one.then_some(Self { path })
        };
        let there = fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path());
        let home = parent.canonicalize().unwrap_or_else(|_| parent.to_owned());
        let is_gone = |path: &PathBuf| path.parent() == Some(home.as_path()) && !path.exists();
        let gone = repository.worktree_paths().into_iter().filter(is_gone);
        there.chain(gone).filter_map(one).collect()
    }

    /// Takes the worktree away. That it cannot be taken away is no reason to fail.
    pub fn clear(&self, repository: &Repository) {
        repository.clear_apart(&self.path).ok();
    }
}

/// Whether fixers may have worked side by side somewhere: a worktree of theirs that is gone leaves no trace but refs.
pub fn is_possible(policy: &Policy) -> bool {
    policy.workflow.phases.iter().filter_map(Phase::judge).any(|judge| judge.gate.parallel_fixes)
}

/// All that was made beside a loop's own worktree is on its branch, or is made again.
pub fn forget_all(repository: &Repository, (run, loop_id): (RunId, &LoopId), own: &Path) {
    for one in Beside::of(repository, own) {
        one.clear(repository);
    }
    repository.forget_apart(&home(run, loop_id)).ok();
}

/// Keeps elsewhere what was committed beside the worktree of a loop that goes on without it, and tells where. That it
/// cannot be is no reason to fail: then it stays where it is.
pub fn leave(repository: &Repository, (run, loop_id): (RunId, &LoopId), branch: &str) -> Option<String> {
    let left = repository.leave_apart(&home(run, loop_id), branch).ok()?;
    let first = left.first()?;
    Some(format!(
        "fixes that were made side by side are not on the branch; kept as {}: `git log {branch}..{first}` shows \
         what is in one, `git cherry-pick {branch}..{first}` brings it back",
        left.join(", ")
    ))
}

/// What a loop still needs of what was made beside its worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needed {
    All,
    /// It has ended, and may be taken up again.
    Commits,
    Nothing,
}

impl Needed {
    pub fn by(stage: &Stage) -> Self {
        match stage {
            Stage::Fixing { order: Order::AtOnce, .. } | Stage::Combining { .. } => Self::All,
            Stage::Waiting { asked, .. } => Self::by(asked),
            Stage::Done(ending) => match &ending.again {
                Again::Resume(stage) if Self::by(stage) == Self::All => Self::Commits,
                Again::Resume(_)
                | Again::Nothing
                | Again::Fix
                | Again::Work
                | Again::Restart
                | Again::Land { .. } => Self::Nothing,
            },
            Stage::Queued
            | Stage::Working { .. }
            | Stage::Researching { .. }
            | Stage::Checking { .. }
            | Stage::Reviewing(_)
            | Stage::Fixing { order: Order::InTurn, .. }
            | Stage::AwaitingLanding { .. }
            | Stage::Landing { .. } => Self::Nothing,
        }
    }
}
