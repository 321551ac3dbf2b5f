//! Creates the workspace of a loop: its worktree and branch, and the commit it starts at.

mod backend;
pub mod parallel_fixes;

pub use backend::Workspaces;

use signoff_core::view::inbox;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use signoff_core::ids::{Commit, LoopId, RunId, TaskId};
use signoff_core::machine::{Head, Outcome, Stage};
use signoff_core::prompt::commit_message;
use signoff_core::task::{PlanOrigin, TaskSpec};
use signoff_core::view::{LoopState, RunState, TaskRow, Workspace};
use signoff_core::workflow::{Landing, Scheduling};
use signoff_store::{Store, StoreError};

use crate::atomic_file;
use crate::attempt::EngineContext;
use crate::check_off;
use crate::dispatcher::PreparedWorkspace;
use crate::error::EngineError;
use crate::git::{GitError, NewWorktree};
use crate::landing;
use crate::layout::Layout;

/// A request for the workspace of a loop.
#[derive(Debug, Clone)]
pub struct WorkspaceRequest {
    pub run: RunId,
    pub loop_id: LoopId,
    pub task_id: Option<TaskId>,
    pub spec: TaskSpec,
    pub branch: String,
    /// All loops of the run use one worktree, one after the other.
    pub is_chain: bool,
    /// Approved work lands on the run's branch, so the loop starts there.
    pub lands: bool,
    /// The commit that landed on the run's branch last.
    pub last_landed: Option<Commit>,
    /// The workspace of the loop under review, for a checkpoint.
    pub reviewed_workspace: Option<Workspace>,
    /// The plan entries of finished tasks, to check off first.
    pub finished: Vec<PlanOrigin>,
    /// The last cancelled task before this one, and its base.
    pub last_cancelled: Option<(TaskId, Commit)>,
}

impl WorkspaceRequest {
    pub fn for_loop(run_state: &RunState, loop_id: &LoopId, spec: TaskSpec) -> Option<Self> {
        let is_chain = run_state.run_policy()?.scheduling == Scheduling::Chain;
        let loop_state = run_state.loops.get(loop_id).cloned().unwrap_or_default();
        let reviewed_loop = loop_id.checkpoint_target().and_then(|(of, _)| run_state.loops.get(&of));
        let landing = run_state.policy(loop_id).map(|policy| policy.workflow.landing);
        Some(Self {
            run: run_state.run,
            loop_id: loop_id.clone(),
            task_id: loop_state.task,
            spec,
            branch: loop_state.branch.clone(),
            is_chain,
            lands: landing.is_some_and(|landing| landing != Landing::None),
            last_landed: run_state.last_landed.clone(),
            reviewed_workspace: reviewed_loop.and_then(|loop_state| loop_state.workspace.clone()),
            finished: check_off::finished_entries(run_state),
            last_cancelled: last_cancelled(run_state).filter(|_| is_chain),
        })
    }
}

/// The last task that was cancelled after the last finished one. Its work on the branch is not approved; work of
/// earlier cancelled tasks is removed already.
fn last_cancelled(run_state: &RunState) -> Option<(TaskId, Commit)> {
    let ended = run_state.loops.values().filter_map(|loop_state| {
        let Stage::Done(ending) = &loop_state.machine.stage else { return None };
        Some((loop_state.task?, &ending.outcome, loop_state.workspace.as_ref()))
    });
    let last = ended.clone().filter(|(_, outcome, _)| outcome.is_completed()).map(|(task, ..)| task).max();
    let cancelled = ended.filter(|(task, outcome, _)| **outcome == Outcome::Cancelled && Some(*task) > last);
    cancelled.filter_map(|(task, _, workspace)| Some((task, workspace?.base.clone()))).max()
}

/// The path of a loop's worktree.
fn path(ctx: &EngineContext, request: &WorkspaceRequest) -> PathBuf {
    if request.loop_id == LoopId::final_review() {
        return ctx.layout.run_worktree(request.run);
    }
    if request.loop_id.is_run_level() {
        return ctx.layout.part_worktree(request.run, &request.loop_id);
    }
    let Some(task) = request.task_id else { return ctx.layout.review_worktree(request.run) };
    if request.is_chain {
        return ctx.layout.run_worktree(request.run);
    }
    let before = request.spec.continues.and_then(|before| ctx.store.task(before).ok().flatten());
    before.and_then(|row| row.worktree).map_or_else(|| ctx.layout.task_worktree(task), PathBuf::from)
}

/// Creates the workspace, or finds it if a killed process created it.
fn create(ctx: &EngineContext, request: &WorkspaceRequest) -> Result<PreparedWorkspace, EngineError> {
    let mut prepared = create_without_base(ctx, request)?;
    // The planning loop reviews no diff, so it needs no base tree.
    if request.loop_id != LoopId::planning() {
        let base = &prepared.workspace.base;
        let is_at_base = prepared.head.commit == *base;
        prepared.base_tree =
            Some(if is_at_base { prepared.head.tree.clone() } else { ctx.repository.tree_of(base)? });
    }
    Ok(prepared)
}

fn create_without_base(ctx: &EngineContext, request: &WorkspaceRequest) -> Result<PreparedWorkspace, EngineError> {
    if request.loop_id.is_run_level() {
        return for_run_part(ctx, request);
    }
    let Some(task) = request.task_id else { return for_checkout(ctx, request) };
    if let Some(imported) = &request.spec.imported {
        // The branch starts with the work of another program; the diff starts where that work started.
        let path = if request.is_chain { ctx.layout.run_worktree(request.run) } else { ctx.layout.task_worktree(task) };
        let prepared = attach_new(ctx, &path, &request.branch, &imported.commit)?;
        return Ok(with_base(prepared, ctx.repository.base_of(&imported.commit)?));
    }
    if request.is_chain {
        return for_chain_task(ctx, request);
    }
    if let Some(before) = request.spec.continues {
        return for_continued_task(ctx, request, before);
    }
    let StartPoint { commit: start, note } = start_point(ctx, request)?;
    let prepared = attach_new(ctx, &ctx.layout.task_worktree(task), &request.branch, &start)?;
    let base = fork_point(ctx, &start, &prepared.head.commit)?;
    Ok(PreparedWorkspace { note, ..with_base(prepared, base) })
}

fn with_base(mut prepared: PreparedWorkspace, base: Commit) -> PreparedWorkspace {
    prepared.workspace.base = base;
    prepared
}

/// The workspace of a part of a run: the run's own branch, or a temporary copy.
fn for_run_part(ctx: &EngineContext, request: &WorkspaceRequest) -> Result<PreparedWorkspace, EngineError> {
    let repository = &ctx.repository;
    if request.loop_id == LoopId::final_review() {
        let branch = request.run.branch();
        let own = |landed| landing::OwnWork { landed, heads: &[], landing_method: ctx.settings.landing() };
        let kept = request.last_landed.as_ref().map(|landed| landing::restore_landed(repository, &branch, own(landed)));
        let note = kept.transpose()?.flatten();
        let tip = repository.ensure_branch(&branch, || repository.base())?;
        let base = repository.branch_base(&branch)?.unwrap_or_else(|| tip.clone());
        let prepared = attach(ctx, &ctx.layout.run_worktree(request.run), &branch, &tip)?;
        return Ok(PreparedWorkspace { note, ..with_base(prepared, base) });
    }
    let path = ctx.layout.part_worktree(request.run, &request.loop_id);
    // A killed process may have created it.
    let worktree = repository.detached(&path, || match &request.reviewed_workspace {
        Some(workspace) => repository.worktree(Path::new(&workspace.worktree))?.snapshot_commit(),
        None => repository.base(),
    })?;
    let head = worktree.head()?;
    let base =
        request.reviewed_workspace.as_ref().map_or_else(|| head.commit.clone(), |workspace| workspace.base.clone());
    Ok(prepared(&path, base, head))
}

/// The commit of a task that its reviewers or a user approved. Later commits are not reviewed.
pub fn approved(store: &dyn Store, task: TaskId) -> Result<Option<Commit>, StoreError> {
    Ok(recorded_loop(store, task)?.and_then(|loop_state| loop_state.machine.approved_commit().cloned()))
}

/// The recorded state of the loop that works on a task.
fn recorded_loop(store: &dyn Store, task: TaskId) -> Result<Option<Arc<LoopState>>, StoreError> {
    let Some((run, loop_id)) = store.loop_for_task(task)? else { return Ok(None) };
    Ok(store.run_state(run)?.loops.remove(&loop_id))
}

/// The last recorded commit of a task, if git still has it.
fn recorded_commit(ctx: &EngineContext, task: TaskId) -> Result<Option<Commit>, EngineError> {
    let loop_state = recorded_loop(&*ctx.store, task)?.filter(|loop_state| loop_state.workspace.is_some());
    Ok(loop_state.and_then(|loop_state| ctx.repository.resolve(loop_state.machine.head.commit.as_str()).ok()))
}

/// The workspace of a task that continues on an existing branch.
fn for_continued_task(
    ctx: &EngineContext,
    request: &WorkspaceRequest,
    before: TaskId,
) -> Result<PreparedWorkspace, EngineError> {
    let row = ctx.store.task(before)?;
    let known = row.as_ref().and_then(|row| Some((row.base.clone()?, row.worktree.clone()?)));
    let Some((base, worktree)) = known else {
        let message = format!("task {before} was never started: there is nothing to continue");
        return Err(EngineError::Log { run: request.run, message });
    };
    let base = Commit::new(base);
    revive_branch(ctx, &request.branch, &base)?;
    Ok(with_base(attach(ctx, Path::new(&worktree), &request.branch, &base)?, base))
}

/// Recreates a deleted branch at its last recorded commit, so that no work is lost.
fn revive_branch(ctx: &EngineContext, branch: &str, base: &Commit) -> Result<(), EngineError> {
    if ctx.repository.has_branch(branch)? {
        return Ok(());
    }
    let last = last_commit(ctx, branch)?.ok_or_else(|| GitError::BranchGone(branch.to_owned()))?;
    Ok(ctx.repository.restore_branch(branch, &last, base)?)
}

/// The last recorded commit of a branch that git still has.
fn last_commit(ctx: &EngineContext, branch: &str) -> Result<Option<Commit>, EngineError> {
    let mut last: Option<Commit> = None;
    for row in ctx.store.tasks()?.into_iter().filter(|row| row.branch.as_deref() == Some(branch)) {
        let head = recorded_commit(ctx, TaskId(row.id))?;
        // The tasks of a branch may run in any order.
        last = match (last, head) {
            (Some(last), Some(head)) if !ctx.repository.is_ancestor(last.as_str(), head.as_str())? => Some(last),
            (last, head) => head.or(last),
        };
    }
    Ok(last)
}

/// The workspace of the next task of a chain, which starts where the previous one ended.
fn for_chain_task(ctx: &EngineContext, request: &WorkspaceRequest) -> Result<PreparedWorkspace, EngineError> {
    let start = ctx.repository.base()?;
    let path = ctx.layout.run_worktree(request.run);
    if !request.finished.is_empty() {
        revive_branch(ctx, &request.branch, &start)?;
    }
    let prepared = attach(ctx, &path, &request.branch, &start)?;
    let note = park_cancelled_work(ctx, request, &prepared)?;
    if request.finished.is_empty() && note.is_none() {
        return Ok(prepared);
    }
    check_off::in_branch(ctx, request.run, &request.finished)?;
    Ok(PreparedWorkspace { note, ..attach(ctx, &path, &request.branch, &start)? })
}

/// Moves the work of a cancelled task to a branch of its own, before the next task starts.
fn park_cancelled_work(
    ctx: &EngineContext,
    request: &WorkspaceRequest,
    prepared: &PreparedWorkspace,
) -> Result<Option<String>, EngineError> {
    let Some((task, base)) = &request.last_cancelled else { return Ok(None) };
    let parked_branch = format!("{}-cancelled-{task}", request.branch);
    let last_check_off = fs::read_to_string(ctx.layout.checked_off(request.run)).ok();
    // A killed process may have done this already.
    if last_check_off.as_deref() == Some(prepared.head.commit.as_str()) && ctx.repository.has_branch(&parked_branch)? {
        return Ok(None);
    }
    let worktree = ctx.repository.worktree(Path::new(&prepared.workspace.worktree))?;
    let moved = worktree.park_branch(base, &parked_branch, &commit_message::unfinished(&format!("Task {task}")))?;
    Ok(moved.then(|| format!("the work of task {task} is on the branch {parked_branch}")))
}

fn attach(ctx: &EngineContext, path: &Path, branch: &str, start: &Commit) -> Result<PreparedWorkspace, EngineError> {
    let worktree = ctx.repository.add_worktree(&NewWorktree { path, branch, start })?;
    worktree.copy_files(ctx.settings.copied_into_worktrees())?;
    let head = worktree.head()?;
    Ok(prepared(path, head.commit.clone(), head))
}

/// Like `attach`, for a new branch. A killed process leaves it at its start; other commits do not belong to the task.
fn attach_new(
    ctx: &EngineContext,
    path: &Path,
    branch: &str,
    start: &Commit,
) -> Result<PreparedWorkspace, EngineError> {
    let prepared = attach(ctx, path, branch, start)?;
    if prepared.head.commit != *start && ctx.repository.has_work(branch)? {
        return Err(GitError::BranchTaken { branch: branch.to_owned(), by: None }.into());
    }
    Ok(prepared)
}

fn prepared(path: &Path, base: Commit, head: Head) -> PreparedWorkspace {
    let workspace = Workspace { base, worktree: path.display().to_string() };
    PreparedWorkspace { workspace, head, base_tree: None, note: None }
}

/// A temporary copy of the checkout, including uncommitted changes.
fn for_checkout(ctx: &EngineContext, request: &WorkspaceRequest) -> Result<PreparedWorkspace, EngineError> {
    let commit = ctx.repository.snapshot_commit()?;
    let path = ctx.layout.review_worktree(request.run);
    let worktree = ctx.repository.add_detached(&path, &commit)?;
    let base = match &ctx.base {
        Some(base) => ctx.repository.resolve(base)?,
        None => ctx.repository.base()?,
    };
    Ok(prepared(&path, fork_point(ctx, &base, &commit)?, worktree.head()?))
}

/// The merge base of two commits; `one` if they have none.
fn fork_point(ctx: &EngineContext, one: &Commit, other: &Commit) -> Result<Commit, EngineError> {
    if one == other {
        return Ok(one.clone());
    }
    let merge_base = ctx.repository.merge_base(one.as_str(), other.as_str())?;
    Ok(merge_base.unwrap_or_else(|| one.clone()))
}

/// The final commit of a task that another task depends on.
#[derive(Clone)]
struct DependencyEnd {
    task: TaskId,
    commit: Commit,
}

/// Where a task starts, and a note for the user.
struct StartPoint {
    commit: Commit,
    note: Option<String>,
}

/// The start of a task: the end of its dependencies, the branch that it will land on, or the user's current branch.
fn start_point(ctx: &EngineContext, request: &WorkspaceRequest) -> Result<StartPoint, EngineError> {
    let mut needed = Vec::new();
    for task in &request.spec.depends_on {
        needed.extend(end(ctx, *task)?.map(|commit| DependencyEnd { task: *task, commit }));
    }
    if !request.lands {
        return match latest(ctx, &needed)?.or(needed.last()) {
            Some(end) => start_at(ctx, end, &needed),
            None => Ok(StartPoint { commit: ctx.repository.base()?, note: None }),
        };
    }
    let tip = ctx.repository.ensure_branch(&request.run.branch(), || ctx.repository.base())?;
    // Landing merges the work of other runs into this one.
    let missing = missing(ctx, &needed, &tip)?;
    let Some(first) = missing.first() else { return Ok(StartPoint { commit: tip, note: None }) };
    start_at(ctx, latest(ctx, &missing)?.unwrap_or(first), &needed)
}

/// Starts at one dependency, with a note if it does not contain the others.
fn start_at(ctx: &EngineContext, end: &DependencyEnd, needed: &[DependencyEnd]) -> Result<StartPoint, EngineError> {
    let absent = missing(ctx, needed, &end.commit)?;
    let tasks: Vec<String> = absent.iter().map(|end| end.task.to_string()).collect();
    let note = (!tasks.is_empty()).then(|| {
        let without = tasks.join(", ");
        format!(
            "no commit contains everything that it depends on: it starts after task {}, without task {without}",
            end.task
        )
    });
    Ok(StartPoint { commit: end.commit.clone(), note })
}

/// The dependencies that a commit does not contain.
fn missing(ctx: &EngineContext, needed: &[DependencyEnd], tip: &Commit) -> Result<Vec<DependencyEnd>, EngineError> {
    let mut missing = Vec::new();
    for end in needed {
        if !contains(ctx, tip, &end.commit)? {
            missing.push(end.clone());
        }
    }
    Ok(missing)
}

/// The dependency that contains all others.
fn latest<'a>(ctx: &EngineContext, ends: &'a [DependencyEnd]) -> Result<Option<&'a DependencyEnd>, EngineError> {
    for end in ends {
        if missing(ctx, ends, &end.commit)?.is_empty() {
            return Ok(Some(end));
        }
    }
    Ok(None)
}

fn contains(ctx: &EngineContext, commit: &Commit, part: &Commit) -> Result<bool, EngineError> {
    Ok(commit == part || ctx.repository.is_ancestor(part.as_str(), commit.as_str())?)
}

/// The final commit of a task. Failed tasks have none.
fn end(ctx: &EngineContext, task: TaskId) -> Result<Option<Commit>, EngineError> {
    if let Some(commit) = approved(&*ctx.store, task)? {
        return Ok(Some(commit));
    }
    let Some(row) = ctx.store.task(task)?.filter(inbox::allows_dependents) else { return Ok(None) };
    let Some(branch) = row.branch else { return Ok(None) };
    let on_it = |row: &TaskRow| row.branch.as_deref() == Some(&branch) && row.base.is_some();
    // Otherwise a later task continued on the branch, and failed or is not done.
    if ctx.store.tasks()?.iter().filter(|row| on_it(row)).all(inbox::allows_dependents)
        && let Some(head) = ctx.repository.head_of(&branch)?
    {
        return Ok(Some(head.commit));
    }
    recorded_commit(ctx, task)
}

/// Updates the files of a loop's worktree to a commit that its branch was moved to.
pub fn follow_branch(ctx: &EngineContext, workspace: &Workspace, commit: &Commit) -> Result<(), EngineError> {
    if let Ok(worktree) = ctx.repository.worktree(Path::new(&workspace.worktree)) {
        worktree.check_out_branch(commit)?;
        ctx.read_guards.writer_started(&worktree);
    }
    Ok(())
}

/// The lock of a worktree, released on drop: an improvement, a review and a retry of one task share a worktree, and
/// only one may run.
#[derive(Debug)]
pub struct WorktreeLock {
    _lock: File,
}

impl WorktreeLock {
    /// Locks a worktree, or fails if it is in use.
    pub fn acquire(layout: &Layout, worktree: &Path) -> Result<Self, EngineError> {
        let path = layout.worktree_lock(worktree);
        let failed = |error| EngineError::io("lock", &path, error);
        let lock = atomic_file::open_lock(&path).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(EngineError::WorktreeInUse { worktree: worktree.to_owned() }),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}
