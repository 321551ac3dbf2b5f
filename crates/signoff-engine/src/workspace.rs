//! Creates the workspace of a loop: its worktree and branch, from a recorded base.

mod backend;
pub mod parallel_fixes;
mod start;

pub use backend::{GitWorkspaces, Workspaces};

use std::fs;
use std::path::{Path, PathBuf};

use signoff_core::ids::{Commit, LoopId, RunId, TaskId};
use signoff_core::machine::{Loop, Outcome, Stage};
use signoff_core::prompt::commit_message;
use signoff_core::task::{PlanOrigin, TaskSpec};
use signoff_core::view::{LoopState, RunState, Workspace};
use signoff_core::workflow::{Arrangement, Landing};
use signoff_store::{Store, StoreError};

use crate::attempt::EngineContext;
use crate::check_off;
use crate::dispatcher::PreparedWorkspace;
use crate::error::EngineError;
use crate::git::{GitError, NewWorktree};
use crate::landing;
use start::StartPoint;

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
        let in_turn = run_state.run_policy()?.arrangement == Arrangement::Chain;
        let loop_state = run_state.loops.get(loop_id).cloned().unwrap_or_default();
        let looked_at = loop_id.checkpoint_target().and_then(|(of, _)| run_state.loops.get(&of));
        let landing = run_state.policy(loop_id).map(|policy| policy.workflow.landing);
        Some(Self {
            run: run_state.run,
            loop_id: loop_id.clone(),
            task_id: loop_state.task,
            spec,
            branch: loop_state.branch.clone(),
            is_chain: in_turn,
            lands: landing.is_some_and(|landing| landing != Landing::None),
            last_landed: run_state.last_landed.clone(),
            reviewed_workspace: looked_at.and_then(|loop_state| loop_state.workspace.clone()),
            finished: check_off::finished_entries(run_state),
            last_cancelled: last_cancelled(run_state).filter(|_| in_turn),
        })
    }
}

/// The last task that was cancelled after the last finished one. Its work on the branch is not approved; work of
/// earlier cancelled tasks is removed already.
fn last_cancelled(run_state: &RunState) -> Option<(TaskId, Commit)> {
    let ended = |loop_state: &LoopState| {
        let Stage::Done(ending) = &loop_state.machine.stage else { return None };
        Some((loop_state.task?, ending.outcome.clone()))
    };
    let through = run_state
        .loops
        .values()
        .filter_map(|loop_state| ended(loop_state))
        .filter(|(_, outcome)| outcome.is_completed());
    let last = through.map(|(task, _)| task).max();
    let off = run_state.loops.values().filter_map(|loop_state| {
        let (task, outcome) = ended(loop_state)?;
        (outcome == Outcome::Cancelled && Some(task) > last).then_some((task, loop_state.workspace.clone()?.base))
    });
    off.max()
}

/// The path of a loop's worktree.
fn path(ctx: &EngineContext, store: &dyn Store, request: &WorkspaceRequest) -> PathBuf {
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
    let before = request.spec.continues.and_then(|before| store.task(before).ok().flatten());
    before.and_then(|row| row.worktree).map_or_else(|| ctx.layout.task_worktree(task), PathBuf::from)
}

/// Creates the workspace, or finds it if a killed process created it.
fn create(
    ctx: &EngineContext,
    store: &dyn Store,
    request: &WorkspaceRequest,
) -> Result<PreparedWorkspace, EngineError> {
    let placed = create_without_base(ctx, store, request)?;
    // The planning loop reviews no diff, so it needs no base tree.
    if request.loop_id == LoopId::planning() {
        return Ok(placed);
    }
    let is_at_base = placed.head.commit == placed.workspace.base;
    let base_tree =
        if is_at_base { placed.head.tree.clone() } else { ctx.repository.tree_of(&placed.workspace.base)? };
    Ok(PreparedWorkspace { base_tree: Some(base_tree), ..placed })
}

fn create_without_base(
    ctx: &EngineContext,
    store: &dyn Store,
    request: &WorkspaceRequest,
) -> Result<PreparedWorkspace, EngineError> {
    if request.loop_id.is_run_level() {
        return for_run_part(ctx, request);
    }
    let Some(task) = request.task_id else { return for_checkout(ctx, request) };
    if let Some(taken_over) = &request.spec.taken_over {
        return for_imported_task(ctx, request, task, &taken_over.commit);
    }
    if request.is_chain {
        return for_chain_task(ctx, store, request);
    }
    if let Some(before) = request.spec.continues {
        return for_continued_task(ctx, store, request, before);
    }
    let StartPoint { commit: start, note } = start::start_point(ctx, store, request)?;
    let placed = attach(ctx, &ctx.layout.task_worktree(task), &request.branch, &start)?;
    // A killed process leaves the branch at its start. Other commits do not belong to this task.
    if placed.head.commit != start && ctx.repository.has_work(&request.branch)? {
        return Err(GitError::BranchTaken { branch: request.branch.clone(), by: None }.into());
    }
    let base = fork_point(ctx, &start, &placed.head.commit)?;
    Ok(PreparedWorkspace { workspace: Workspace { base, ..placed.workspace }, note, ..placed })
}

/// The branch starts with the work of another program; the diff starts where that work started.
fn for_imported_task(
    ctx: &EngineContext,
    request: &WorkspaceRequest,
    task: TaskId,
    start: &Commit,
) -> Result<PreparedWorkspace, EngineError> {
    let run = || ctx.layout.run_worktree(request.run);
    let path = if request.is_chain { run() } else { ctx.layout.task_worktree(task) };
    let placed = attach(ctx, &path, &request.branch, start)?;
    if placed.head.commit != *start && ctx.repository.has_work(&request.branch)? {
        return Err(GitError::BranchTaken { branch: request.branch.clone(), by: None }.into());
    }
    let base = ctx.repository.base_of(start)?;
    Ok(PreparedWorkspace { workspace: Workspace { base, ..placed.workspace }, ..placed })
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
        let placed = attach(ctx, &ctx.layout.run_worktree(request.run), &branch, &tip)?;
        return Ok(PreparedWorkspace { workspace: Workspace { base, ..placed.workspace }, note, ..placed });
    }
    let path = ctx.layout.part_worktree(request.run, &request.loop_id);
    // A killed process may have created it.
    let worktree = repository.detached(&path, || match &request.reviewed_workspace {
        Some(place) => repository.worktree(Path::new(&place.worktree))?.snapshot_commit(),
        None => repository.base(),
    })?;
    let head = worktree.head()?;
    let base = request.reviewed_workspace.as_ref().map_or_else(|| head.commit.clone(), |place| place.base.clone());
    Ok(PreparedWorkspace { workspace: Workspace { base, worktree: shown(&path) }, head, base_tree: None, note: None })
}

/// The commit of a task that its reviewers or a person approved. Later commits are not reviewed.
pub fn approved(store: &dyn Store, task: TaskId) -> Result<Option<Commit>, StoreError> {
    let Some((run, loop_id)) = store.loop_for_task(task)? else { return Ok(None) };
    let run_state = RunState::from_run_log(run, &store.log(run)?);
    let state = run_state.loops.get(&loop_id).map(|loop_state| &loop_state.machine);
    Ok(state.and_then(Loop::approved_commit).cloned())
}

/// The workspace of a task that continues on an existing branch.
fn for_continued_task(
    ctx: &EngineContext,
    store: &dyn Store,
    request: &WorkspaceRequest,
    before: TaskId,
) -> Result<PreparedWorkspace, EngineError> {
    let row = store.task(before)?;
    let known = row.as_ref().and_then(|row| Some((row.base.clone()?, row.worktree.clone()?)));
    let Some((base, worktree)) = known else {
        let message = format!("task {before} was never started: there is nothing to go on with");
        return Err(EngineError::Log { run: request.run, message });
    };
    let base = Commit::new(base);
    revive_branch(ctx, store, &request.branch, &base)?;
    let placed = attach(ctx, Path::new(&worktree), &request.branch, &base)?;
    Ok(PreparedWorkspace { workspace: Workspace { base, ..placed.workspace }, ..placed })
}

/// Recreates a deleted branch at its last recorded commit, so that no work is lost.
fn revive_branch(ctx: &EngineContext, store: &dyn Store, branch: &str, base: &Commit) -> Result<(), EngineError> {
    if ctx.repository.has_branch(branch)? {
        return Ok(());
    }
    let last = last_commit(ctx, store, branch)?;
    let last = last.ok_or_else(|| GitError::BranchGone(branch.to_owned()))?;
    Ok(ctx.repository.restore_branch(branch, &last, base)?)
}

/// The last recorded commit of a branch that git still has.
fn last_commit(ctx: &EngineContext, store: &dyn Store, branch: &str) -> Result<Option<Commit>, EngineError> {
    let mut last: Option<Commit> = None;
    for row in store.tasks()?.into_iter().filter(|row| row.branch.as_deref() == Some(branch)) {
        let Some((run, loop_id)) = store.loop_for_task(TaskId(row.id))? else { continue };
        let run_state = RunState::from_run_log(run, &store.log(run)?);
        let placed = run_state.loops.get(&loop_id).filter(|loop_state| loop_state.workspace.is_some());
        let head = placed.and_then(|loop_state| ctx.repository.resolve(loop_state.machine.head.commit.as_str()).ok());
        // The tasks of a branch may run in any order.
        last = match (last, head) {
            (Some(last), Some(head)) if !ctx.repository.is_ancestor(last.as_str(), head.as_str())? => Some(last),
            (last, head) => head.or(last),
        };
    }
    Ok(last)
}

/// The workspace of the next task of a chain, which starts where the previous one ended.
fn for_chain_task(
    ctx: &EngineContext,
    store: &dyn Store,
    request: &WorkspaceRequest,
) -> Result<PreparedWorkspace, EngineError> {
    let start = ctx.repository.base()?;
    let path = ctx.layout.run_worktree(request.run);
    if !request.finished.is_empty() {
        revive_branch(ctx, store, &request.branch, &start)?;
    }
    let placed = attach(ctx, &path, &request.branch, &start)?;
    let note = set_aside(ctx, request, &placed)?;
    if request.finished.is_empty() && note.is_none() {
        return Ok(placed);
    }
    check_off::in_branch(ctx, request.run, &request.finished)?;
    Ok(PreparedWorkspace { note, ..attach(ctx, &path, &request.branch, &start)? })
}

/// Moves the work of a cancelled task to a branch of its own, before the next task starts.
fn set_aside(
    ctx: &EngineContext,
    request: &WorkspaceRequest,
    placed: &PreparedWorkspace,
) -> Result<Option<String>, EngineError> {
    let Some((task, base)) = &request.last_cancelled else { return Ok(None) };
    let aside = format!("{}-cancelled-{task}", request.branch);
    let ticked = fs::read_to_string(ctx.layout.checked_off(request.run)).ok();
    // A killed process may have done this already.
    if ticked.as_deref() == Some(placed.head.commit.as_str()) && ctx.repository.has_branch(&aside)? {
        return Ok(None);
    }
    let worktree = ctx.repository.worktree(Path::new(&placed.workspace.worktree))?;
    let moved = worktree.park_branch(base, &aside, &commit_message::unfinished(&format!("Task {task}")))?;
    Ok(moved.then(|| format!("what task {task} left was set aside: it is on the branch {aside}")))
}

fn attach(ctx: &EngineContext, path: &Path, branch: &str, start: &Commit) -> Result<PreparedWorkspace, EngineError> {
    let worktree = ctx.repository.add_worktree(&NewWorktree { path, branch, start })?;
    worktree.copy_files(ctx.settings.copied_into_worktrees())?;
    let head = worktree.head()?;
    let place = Workspace { base: head.commit.clone(), worktree: shown(path) };
    Ok(PreparedWorkspace { workspace: place, head, base_tree: None, note: None })
}

/// A temporary copy of the checkout, including uncommitted changes.
fn for_checkout(ctx: &EngineContext, request: &WorkspaceRequest) -> Result<PreparedWorkspace, EngineError> {
    let commit = ctx.repository.snapshot_commit()?;
    let path: PathBuf = ctx.layout.review_worktree(request.run);
    let worktree = ctx.repository.add_detached(&path, &commit)?;
    let base = match &ctx.base {
        Some(base) => ctx.repository.resolve(base)?,
        None => ctx.repository.base()?,
    };
    let base = fork_point(ctx, &base, &commit)?;
    let place = Workspace { base, worktree: shown(&path) };
    Ok(PreparedWorkspace { workspace: place, head: worktree.head()?, base_tree: None, note: None })
}

/// The merge base of two commits; `one` if they have none.
fn fork_point(ctx: &EngineContext, one: &Commit, other: &Commit) -> Result<Commit, EngineError> {
    if one == other {
        return Ok(one.clone());
    }
    let parted = ctx.repository.merge_base(one.as_str(), other.as_str())?;
    Ok(parted.unwrap_or_else(|| one.clone()))
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
