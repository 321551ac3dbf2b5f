//! Lands approved commits outside of a running loop, as requested by a person.

use std::fs;
use std::sync::Arc;

use signoff_core::ids::{Commit, RunId};
use signoff_core::view::RunState;
use signoff_core::workflow::{Arrangement, Landing};

use super::LandingAttempt;
use super::land_commit::LandingLock;
use super::land_commit::{self, LandingRequest, LandingResult, ProgressCallback};
use super::review_coverage::{self, ApprovedRange, LandingCandidate, LandingRecords};
use super::run_branch;
use crate::attempt::{self, EngineContext};
use crate::check_off;
use crate::error::EngineError;
use crate::git::{GitError, Repository, Uncommitted};
use crate::remove_tree;

/// A commit that lands on the default branch.
#[derive(Debug, Clone)]
pub struct DirectLanding {
    pub run: RunId,
    /// `task 3`, `run 7`.
    pub what: String,
    /// The name of the directory for its files.
    pub name: String,
    pub commit: Commit,
    pub message: String,
    /// Its approved range.
    pub own: Option<ApprovedRange>,
}

/// Checks whether a commit could land on a branch now. Waits for running landings, and finishes what a killed process
/// left.
pub async fn check_ready(repository: &Repository, branch: &str) -> Result<(), EngineError> {
    let _turn = LandingLock::acquire(repository, &|_| ()).await?;
    let (repository, branch) = (repository.clone(), branch.to_owned());
    attempt::blocking(move || {
        repository.finish_checkout_update()?;
        let target = repository.land_target(&branch)?.ok_or(GitError::BranchGone(branch))?;
        Ok(repository.check_movable(&target)?)
    })
    .await
}

/// The lock of one `land` or `merge` command. Such commands run one at a time.
#[derive(Debug)]
pub struct CommandLock {
    _turn: Option<LandingLock>,
}

impl CommandLock {
    /// Waits until the previous command has ended.
    pub async fn wait(repository: &Repository) -> Result<Self, EngineError> {
        let lock = repository.landing_lock().with_file_name("land-command.lock");
        Ok(Self { _turn: LandingLock::acquire_file(lock, &|_| ()).await? })
    }
}

/// Lands a commit, or returns why not; nothing is changed then.
pub async fn land(
    ctx: &Arc<EngineContext>,
    direct: DirectLanding,
    progress: ProgressCallback<'_>,
) -> Result<LandingResult, EngineError> {
    let Some(_turn) = LandingLock::acquire(&ctx.repository, progress).await? else {
        return Ok(LandingResult::Stopped);
    };
    let beginning = (ctx.clone(), direct);
    let request = attempt::blocking(move || landing_request(&beginning.0, beginning.1)).await?;
    land_commit::land_commit(ctx, &request, progress).await
}

/// Lands the approved commit of a run on the default branch, even if the run's branch has moved. Returns the landed
/// commit, and whether it is new.
pub async fn land_run(
    ctx: &Arc<EngineContext>,
    run_state: RunState,
    progress: ProgressCallback<'_>,
) -> Result<(Commit, bool), EngineError> {
    let (looking, run) = (ctx.clone(), run_state.run);
    let came_together = run_state.run_policy().is_some_and(|policy| policy.landing != Landing::None);
    let (commit, own, target) = attempt::blocking(move || {
        let repository = &looking.repository;
        let commit = with_check_offs(&looking, &run_state, run_branch::approved_commit(repository, &run_state)?)?;
        Ok((commit, run_branch::approved_range(&run_state), repository.default_branch()?))
    })
    .await?;
    let (what, message) = (format!("run {run}"), format!("Merge run {run}"));
    let direct =
        DirectLanding { run, what: what.clone(), name: "run".to_owned(), commit: commit.clone(), message, own };
    let result = land(ctx, direct, progress).await?;
    let landed = result.into_landed(LandingAttempt { what: &what, target: &target, commit: &commit })?;
    if came_together {
        clean_up(ctx.clone(), run).await;
    }
    Ok(landed)
}

/// The approved commit of a plan, with the check-off commits on top of it. Without the last one its task would be
/// started again.
fn with_check_offs(ctx: &EngineContext, run_state: &RunState, commit: Commit) -> Result<Commit, EngineError> {
    let (run, branch) = (run_state.run, run_state.run.branch());
    let in_turn = run_state.run_policy().is_some_and(|policy| policy.arrangement == Arrangement::Chain);
    if in_turn && ctx.layout.run_worktree(run).is_dir() && ctx.repository.is_at(&branch, &commit) {
        check_off::in_branch(ctx, run, &check_off::finished_entries(run_state))?;
    }
    let ticked = fs::read_to_string(ctx.layout.checked_off(run)).ok().map(Commit::new);
    Ok(ticked.filter(|ticked| in_turn && ctx.repository.is_at(&branch, ticked)).unwrap_or(commit))
}

/// Removes the worktree of the final review, unless it contains work that did not land. The branch is kept. Errors are
/// ignored.
async fn clean_up(ctx: Arc<EngineContext>, run: RunId) {
    let path = ctx.layout.run_worktree(run);
    let removing = move || Ok(ctx.repository.remove_worktree(&path, Uncommitted::Keep)?);
    attempt::blocking(removing).await.ok();
}

fn landing_request(ctx: &EngineContext, direct: DirectLanding) -> Result<LandingRequest, EngineError> {
    let DirectLanding { run, what, name, commit, message, own } = direct;
    ctx.repository.finish_checkout_update()?;
    let target = ctx.repository.default_branch()?;
    let candidate = LandingCandidate { what: &what, run, commit: &commit, own: own.as_ref(), asks_again: false };
    review_coverage::check(LandingRecords::new(ctx), &target, candidate)?;
    let directory = ctx.layout.landing(run, &name);
    // Remove the files of an earlier try.
    remove_tree::remove(&directory).ok();
    let environment = attempt::bare_environment(run);
    Ok(LandingRequest { target, commit, seen_from: None, begins: None, message, environment, directory })
}
