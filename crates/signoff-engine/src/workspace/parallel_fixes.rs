//! Temporary worktrees for fixers that work in parallel, beside the worktree of their loop, and the combination of
//! their commits into one line on the loop's branch.
//!
//! Worktree and ref are named after the cycle and the part, so cycles cannot be confused. A fixer's commits are kept by
//! the ref, even if its worktree is deleted.
//!
//! While fixes are combined, only objects are written until the branch moves. The new head is written to a file first,
//! so that a restarted process recognises its own commits.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use signoff_core::ids::{Commit, LoopId, RunId};
use signoff_core::machine::{Event, FixOrder, Head, Job, JobKind, Policy, RetryAction, Stage};
use signoff_core::prompt::commit_message;
use signoff_core::workflow::Phase;

use crate::atomic_file::{self, WriteMode};
use crate::attempt::{self, AttemptEnd, EngineContext};
use crate::attempt_spec::AttemptSpec;
use crate::error::EngineError;
use crate::executor::{AttemptResult, AttemptSink};
use crate::failpoint;
use crate::git::{CombinedFixes, GitError, Repository, Worktree};

/// Separates the name of the loop's worktree from the number of the fix.
const FIX_INFIX: &str = "-fix-";

/// `PASS.PHASE.CYCLE.PART`, if the job is one of several parallel fixes.
fn part_number(job: &Job) -> Option<String> {
    let Job { pass, phase, cycle, .. } = job;
    let JobKind::Fix { parallel: true, part, .. } = &job.kind else { return None };
    Some(format!("{pass}.{phase}.{cycle}.{part}"))
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
    let base = spec.workspace.base.as_str();
    if !ctx.repository.is_ancestor(base, head.commit.as_str())? {
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
    let existing = fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path());
    let home = parent.canonicalize().unwrap_or_else(|_| parent.to_owned());
    let is_gone = |path: &PathBuf| path.parent() == Some(home.as_path()) && !path.exists();
    let missing = repository.worktree_paths().into_iter().filter(is_gone);
    existing.chain(missing).filter(is_fix).collect()
}

/// Whether fixers may have run in parallel. A deleted worktree leaves only refs.
pub fn allows_parallel_fixes(policy: &Policy) -> bool {
    policy.workflow.phases.iter().filter_map(Phase::policy).any(|gate_policy| gate_policy.gate.parallel_fixes)
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
            Stage::Fixing { order: FixOrder::Parallel, .. } | Stage::Combining { .. } => Self::All,
            Stage::Waiting { interrupted_stage: asked, .. } => Self::for_stage(asked),
            Stage::Done(ending) => {
                let RetryAction::Resume(stage) = &ending.retry else { return Self::Nothing };
                if Self::for_stage(stage) == Self::All { Self::Commits } else { Self::Nothing }
            }
            Stage::Queued
            | Stage::Working { .. }
            | Stage::Researching { .. }
            | Stage::Checking { .. }
            | Stage::Reviewing(_)
            | Stage::Fixing { order: FixOrder::Sequential, .. }
            | Stage::AwaitingLanding { .. }
            | Stage::Landing { .. } => Self::Nothing,
        }
    }
}

/// How often to retry if another process moves the branch.
const MAX_TRIES: usize = 5;

/// The head that the branch is about to move to.
#[derive(Debug, Serialize, Deserialize)]
struct CombinePlan {
    parts: Vec<(usize, Commit)>,
    #[serde(flatten)]
    fixes: CombinedFixes,
}

/// Combines the fixes of a loop and reports which could not be kept.
pub async fn run_combine(ctx: Arc<EngineContext>, spec: Arc<AttemptSpec>, sink: AttemptSink) {
    let combining = (ctx, spec);
    let combined = attempt::blocking(move || combine(&combining.0, &combining.1)).await;
    let (end, notes) = match combined {
        Ok((event, notes)) => (AttemptEnd::Event(Box::new(event)), notes),
        Err(error) => (AttemptEnd::Error(error), Vec::new()),
    };
    sink.ended(AttemptResult { notes, ..AttemptResult::new(end) });
}

fn combine(ctx: &EngineContext, spec: &AttemptSpec) -> Result<(Event, Vec<String>), EngineError> {
    let JobKind::Combine { parts } = &spec.job.kind else {
        return Err(EngineError::Internal("there are no parallel fixes to combine".to_owned()));
    };
    failpoint::pass("combine");
    let mut notes = Vec::new();
    let CombinedFixes { included: kept, head } = combine_parts(ctx, spec, parts, &mut notes)?;
    failpoint::pass("combined");
    forget_all(&ctx.repository, spec.run, &spec.loop_id, Path::new(&spec.workspace.worktree));
    let attempt = spec.job.attempt;
    let event = if parts.iter().all(|(number, _)| kept.contains(number)) {
        Event::FixesCombined { attempt, head }
    } else {
        Event::FixesOverlapped { attempt, kept, head }
    };
    Ok((event, notes))
}

/// Moves the branch to all fixes that fit together.
fn combine_parts(
    ctx: &EngineContext,
    spec: &AttemptSpec,
    parts: &[(usize, Commit)],
    notes: &mut Vec<String>,
) -> Result<CombinedFixes, EngineError> {
    if let Some(done) = finished_before(ctx, spec, parts)? {
        return Ok(done);
    }
    notes.extend(moved_branch_note(ctx, spec)?);
    let (from, message) = (&spec.machine.head.commit, commit_message::feedback(spec.cycle()));
    let file = plan_path(ctx, spec);
    for _ in 0..MAX_TRIES {
        let tip = tip(ctx, spec)?;
        let fixes = ctx.repository.combine_fixes(from, &tip, parts, &message)?;
        let plan = CombinePlan { parts: parts.to_vec(), fixes };
        fs::create_dir_all(ctx.layout.attempts(spec.run, &spec.loop_id))
            .and_then(|()| atomic_file::write_json(&file, &plan, WriteMode::Durable))
            .map_err(|error| EngineError::io("write", &file, error))?;
        failpoint::pass("fixes_combined");
        let head = &plan.fixes.head;
        if *head == tip || ctx.repository.advance_branch(&spec.branch, &tip.commit, &head.commit)? {
            failpoint::pass("moved");
            super::follow_branch(ctx, &spec.workspace, &head.commit)?;
            return Ok(plan.fixes);
        }
    }
    Err(GitError::BranchMoved(spec.branch.clone()).into())
}

/// The result of a killed process, if the branch already contains it.
fn finished_before(
    ctx: &EngineContext,
    spec: &AttemptSpec,
    parts: &[(usize, Commit)],
) -> Result<Option<CombinedFixes>, EngineError> {
    let plan = atomic_file::read_json(&plan_path(ctx, spec)).ok();
    let Some(plan) = plan.filter(|plan: &CombinePlan| plan.parts == parts) else {
        return Ok(None);
    };
    ctx.revive_branch(spec)?;
    let tip = ctx.repository.existing_head(&spec.branch)?;
    if tip == plan.fixes.head {
        super::follow_branch(ctx, &spec.workspace, &tip.commit)?;
    } else if !ctx.repository.is_ancestor(plan.fixes.head.commit.as_str(), tip.commit.as_str())? {
        return Ok(None);
    }
    Ok(Some(CombinedFixes { head: tip, ..plan.fixes }))
}

/// A note if the branch got other commits while fixers worked in parallel.
fn moved_branch_note(ctx: &EngineContext, spec: &AttemptSpec) -> Result<Option<String>, EngineError> {
    let (before, branch) = (&spec.machine.head.commit, &spec.branch);
    let Some(tip) = ctx.repository.head_of(branch)?.filter(|tip| tip.commit != *before) else {
        return Ok(None);
    };
    if let Some(left) = attempt::keep_dropped_commits(ctx, spec, &tip)? {
        return Ok(Some(left));
    }
    let tip = tip.commit;
    Ok(Some(format!(
        "{branch} got other commits during parallel fixes, which are kept: `git log {before}..{tip}` shows them"
    )))
}

/// The head of the loop's branch, including uncommitted changes in its worktree.
fn tip(ctx: &EngineContext, spec: &AttemptSpec) -> Result<Head, EngineError> {
    let worktree = ctx.worktree_with_files(spec)?;
    let committed = match worktree.commit_all("Changes by hand") {
        Err(GitError::BranchGone(_)) => {
            ctx.revive_branch(spec)?;
            worktree.commit_all("Changes by hand")?
        }
        committed => committed?,
    };
    Ok(committed.head)
}

fn plan_path(ctx: &EngineContext, spec: &AttemptSpec) -> PathBuf {
    ctx.layout.attempts(spec.run, &spec.loop_id).join("combined.json")
}
