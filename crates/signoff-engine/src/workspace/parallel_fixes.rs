//! Temporary worktrees for fixers that work in parallel, beside the worktree of their loop.
//!
//! Worktree and ref are named after the round and the part, so rounds cannot be confused. A fixer's commits are kept by
//! the ref, even if its worktree is deleted.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use signoff_core::ids::{LoopId, RunId};
use signoff_core::machine::{FixOrder, Head, Job, JobKind, Policy, RetryAction, Stage};
use signoff_core::workflow::Phase;

use crate::attempt::EngineContext;
use crate::attempt_spec::AttemptSpec;
use crate::error::EngineError;
use crate::git::{Repository, Worktree};

/// Separates the name of the loop's worktree from the number of the fix.
const FIX_INFIX: &str = "-fix-";

/// `PASS.PHASE.CYCLE.PART`, if the job is one of several parallel fixes.
fn part_number(job: &Job) -> Option<String> {
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

/// Whether this attempt runs in parallel to others of the same loop.
pub fn is_parallel(spec: &AttemptSpec) -> bool {
    part_number(&spec.job).is_some()
}

/// The spec with the worktree that the attempt uses.
pub fn with_own_worktree(mut spec: AttemptSpec) -> AttemptSpec {
    if let Some(number) = part_number(&spec.job) {
        let own = PathBuf::from(&spec.workspace.worktree);
        let mut name = own.file_name().unwrap_or_default().to_owned();
        name.push(format!("{FIX_INFIX}{number}"));
        spec.workspace.worktree = own.with_file_name(name).display().to_string();
        // The worktree has a detached head.
        spec.branch = String::new();
    }
    spec
}

/// Creates or finds the worktree. It starts at the loop's head, or where an earlier attempt ended.
pub fn create(ctx: &EngineContext, spec: &AttemptSpec) -> Result<Worktree, EngineError> {
    let start = || Ok(ctx.repository.parallel_commit(&ref_name(spec))?.unwrap_or(spec.machine.head.commit.clone()));
    let worktree = ctx.repository.parallel_worktree(Path::new(&spec.workspace.worktree), start)?;
    worktree.copy_files(ctx.settings.copied_into_worktrees())?;
    Ok(worktree)
}

/// Keeps the commits of the worktree. Returns false if they do not descend from the loop's base: they cannot be used
/// then.
pub fn keep_commits(ctx: &EngineContext, spec: &AttemptSpec, head: &Head) -> Result<bool, EngineError> {
    ctx.read_guards.forget(Path::new(&spec.workspace.worktree));
    let begun = spec.workspace.base.as_str();
    if !ctx.repository.is_ancestor(begun, head.commit.as_str())? {
        return Ok(false);
    }
    ctx.repository.keep_parallel_commit(&ref_name(spec), &head.commit)?;
    Ok(true)
}

/// Removes an unusable worktree. The next attempt gets a new one.
pub fn discard(ctx: &EngineContext, spec: &AttemptSpec) -> Result<(), EngineError> {
    let path = Path::new(&spec.workspace.worktree);
    ctx.read_guards.forget(path);
    Ok(ctx.repository.remove_parallel_worktree(path)?)
}

fn ref_name(spec: &AttemptSpec) -> String {
    format!("{}/{}", ref_prefix(spec.run, &spec.loop_id), part_number(&spec.job).unwrap_or_default())
}

/// The ref prefix of everything that is kept for a loop.
fn ref_prefix(run: RunId, loop_id: &LoopId) -> String {
    format!("{run}/{loop_id}")
}

/// All worktrees for parallel fixes beside a loop's worktree, by their names: on disk, or registered in git only.
pub fn parallel_worktrees(repository: &Repository, own: &Path) -> Vec<PathBuf> {
    let (Some(parent), Some(name)) = (own.parent(), own.file_name().and_then(OsStr::to_str)) else {
        return Vec::new();
    };
    let prefix = format!("{name}{FIX_INFIX}");
    let is_fix = |path: &PathBuf| {
        let number = path.file_name().and_then(OsStr::to_str).and_then(|name| name.strip_prefix(&prefix));
        number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
    };
    let there = fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path());
    let home = parent.canonicalize().unwrap_or_else(|_| parent.to_owned());
    let is_gone = |path: &PathBuf| path.parent() == Some(home.as_path()) && !path.exists();
    let gone = repository.worktree_paths().into_iter().filter(is_gone);
    there.chain(gone).filter(is_fix).collect()
}

/// Whether fixers may have run in parallel. A deleted worktree leaves only refs.
pub fn allows_parallel_fixes(policy: &Policy) -> bool {
    policy.workflow.phases.iter().filter_map(Phase::policy).any(|judge| judge.gate.parallel_fixes)
}

/// Removes all worktrees and refs for parallel fixes of a loop. Their commits are on its branch, or are made again.
pub fn forget_all(repository: &Repository, run: RunId, loop_id: &LoopId, own: &Path) {
    for worktree in parallel_worktrees(repository, own) {
        repository.remove_parallel_worktree(&worktree).ok();
    }
    repository.delete_parallel_refs(&ref_prefix(run, loop_id)).ok();
}

/// Keeps the commits of parallel fixes that the loop does not use under other refs, and returns a note with the refs.
/// On errors they stay where they are.
pub fn keep_unused_commits(repository: &Repository, run: RunId, loop_id: &LoopId, branch: &str) -> Option<String> {
    let left = repository.abandon_parallel_commits(&ref_prefix(run, loop_id), branch).ok()?;
    let first = left.first()?;
    Some(format!(
        "fixes that were made side by side are not on the branch; kept as {}: `git log {branch}..{first}` shows \
         what is in one, `git cherry-pick {branch}..{first}` brings it back",
        left.join(", ")
    ))
}

/// What a loop still needs of its parallel fixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParallelNeed {
    All,
    /// The loop has ended and may be resumed.
    Commits,
    Nothing,
}

impl ParallelNeed {
    pub fn for_stage(stage: &Stage) -> Self {
        match stage {
            Stage::Fixing { order: FixOrder::AtOnce, .. } | Stage::Combining { .. } => Self::All,
            Stage::Waiting { asked, .. } => Self::for_stage(asked),
            Stage::Done(ending) => match &ending.retry {
                RetryAction::Resume(stage) if Self::for_stage(stage) == Self::All => Self::Commits,
                RetryAction::Resume(_)
                | RetryAction::Nothing
                | RetryAction::Fix
                | RetryAction::Work
                | RetryAction::Restart
                | RetryAction::Land { .. } => Self::Nothing,
            },
            Stage::Queued
            | Stage::Working { .. }
            | Stage::Researching { .. }
            | Stage::Checking { .. }
            | Stage::Reviewing(_)
            | Stage::Fixing { order: FixOrder::InTurn, .. }
            | Stage::AwaitingLanding { .. }
            | Stage::Landing { .. } => Self::Nothing,
        }
    }
}
