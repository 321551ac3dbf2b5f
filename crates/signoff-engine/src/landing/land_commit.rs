//! Lands a commit: merges it into the target, runs the checks, moves the branch and verifies it.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use signoff_core::ids::{Commit, RunId};
use signoff_core::machine::{AttemptFailure, Head};
use signoff_core::review::Finding;
use signoff_core::settings::LandingMethod;

use super::rejected::{self, CheckedMerge};
use crate::atomic_file;
use crate::attempt::{self, EngineContext};
use crate::attempt_spec::AttemptSpec;
use crate::error::EngineError;
use crate::failpoint;
use crate::git::{GitConflict, GitError, LandTarget, MergeOutcome, MoveOutcome, Repository};
use crate::process::{StopHandle, StopRequest};

/// How often to retry if another process moves the target.
const MAX_TRIES: usize = 5;

/// A commit to land, and its target branch.
#[derive(Debug, Clone)]
pub struct LandingRequest {
    pub commit: Commit,
    pub target: String,
    /// The base that reviewers saw, if they can be asked again.
    pub review_base: Option<Commit>,
    /// Where to create the target if it is missing; `None` if it must exist.
    pub create_target_at: Option<Commit>,
    pub message: String,
    /// The directory for the files of the checks.
    pub directory: PathBuf,
    pub environment: Vec<(String, Option<String>)>,
}

/// Progress of a landing.
#[derive(Debug)]
pub enum LandingProgress {
    /// From now on this stops it.
    Stoppable(StopHandle),
    /// It waits for another landing.
    Waiting,
    /// A note for the user.
    Note(String),
}

/// Receives the progress of a landing.
pub type ProgressCallback<'a> = &'a (dyn Fn(LandingProgress) + Send + Sync);

/// The result of a landing.
#[derive(Debug)]
pub enum LandingResult {
    /// The target contains the work as of this commit; `is_new` if it did not before.
    Landed { commit: Commit, is_new: bool },
    /// It has conflicts with the target.
    Conflicting { onto: Commit, head: Head, files: Vec<GitConflict> },
    /// On top of the target the work changes something other than what was approved.
    Different { onto: Commit, head: Head },
    /// The checks fail on the merge.
    ChecksFailed { onto: Commit, head: Head, findings: Vec<Finding> },
    /// The checks could not be run.
    ChecksNotRun(AttemptFailure),
    /// The wait or the checks were stopped.
    Stopped,
}

impl LandingRequest {
    /// The landing of a loop's work.
    pub fn for_loop(ctx: &EngineContext, spec: &AttemptSpec) -> Result<Self, EngineError> {
        let target = match &spec.target {
            Some(branch) => branch.clone(),
            None => ctx.repository.default_branch()?,
        };
        let named = spec.task_id.map_or_else(|| spec.loop_id.to_string(), |task| format!("task {task}"));
        let dir = attempt::directory(ctx, spec);
        Ok(Self {
            commit: spec.machine.head.commit.clone(),
            review_base: Some(spec.workspace.base.clone()),
            create_target_at: spec.target.as_ref().map(|_| spec.workspace.base.clone()),
            message: format!("Merge {named}: {}", spec.task_spec.title),
            environment: attempt::check_environment(spec, &dir),
            directory: dir.path().to_owned(),
            target,
        })
    }
}

/// Lands a commit. The caller holds the landing lock.
pub async fn land_commit(
    ctx: &Arc<EngineContext>,
    request: &LandingRequest,
    progress: ProgressCallback<'_>,
) -> Result<LandingResult, EngineError> {
    for attempt in 0..MAX_TRIES {
        let merging = (ctx.clone(), request.clone());
        let (target, merge) = attempt::blocking(move || merge(&merging.0, &merging.1)).await?;
        let onto = target.tip.commit.clone();
        let head = match merge {
            MergeOutcome::Clean(head) => head,
            MergeOutcome::Different(head) => return Ok(LandingResult::Different { onto, head }),
            MergeOutcome::Contained => return Ok(LandingResult::Landed { commit: onto, is_new: false }),
            MergeOutcome::Conflicting { head, files } => return Ok(LandingResult::Conflicting { onto, head, files }),
        };
        failpoint::pass("merged");
        let checked = CheckedMerge { head: &head, onto: &onto, earlier_runs: attempt };
        if let Some(ended) = rejected::check_merge(ctx, request, checked, progress).await? {
            return Ok(ended);
        }
        // A merge must contain the commit itself; a rebase contains the same change under another id.
        let proof = match ctx.settings.landing() {
            LandingMethod::Merge => request.commit.clone(),
            LandingMethod::Rebase => head.commit.clone(),
        };
        let moving = (ctx.clone(), proof, head.commit.clone());
        let moved = attempt::blocking(move || move_target(&moving.0, &target, &moving.1, &moving.2)).await?;
        if moved == MoveOutcome::Done {
            return Ok(LandingResult::Landed { commit: head.commit, is_new: true });
        }
    }
    Err(GitError::BranchMoved(request.target.clone()).into())
}

fn merge(ctx: &EngineContext, request: &LandingRequest) -> Result<(LandTarget, MergeOutcome), EngineError> {
    let mut target = ctx.repository.land_target(&request.target)?;
    if let (None, Some(create_target_at)) = (&target, &request.create_target_at) {
        ctx.repository.create_target(&request.target, create_target_at)?;
        target = ctx.repository.land_target(&request.target)?;
    }
    let target = target.ok_or_else(|| GitError::BranchGone(request.target.clone()))?;
    let (tip, commit, message) = (&target.tip, &request.commit, &request.message);
    let merge = match ctx.settings.landing() {
        LandingMethod::Merge => ctx.repository.merge_onto(tip, commit, message)?,
        LandingMethod::Rebase => ctx.repository.replay_onto(tip, commit, message)?,
    };
    let merge = match merge {
        MergeOutcome::Clean(head) if may_revert(ctx, request, &tip.commit)? => MergeOutcome::Different(head),
        merge @ (MergeOutcome::Clean(_)
        | MergeOutcome::Different(_)
        | MergeOutcome::Contained
        | MergeOutcome::Conflicting { .. }) => merge,
    };
    Ok((target, merge))
}

/// Whether the work contains target commits that are newer than what its reviewers saw, and may revert them.
fn may_revert(ctx: &EngineContext, request: &LandingRequest, tip: &Commit) -> Result<bool, EngineError> {
    let Some(base) = &request.review_base else { return Ok(false) };
    let repository = &ctx.repository;
    match repository.merge_base(tip.as_str(), request.commit.as_str())? {
        Some(newer) if newer != *base && !repository.is_ancestor(newer.as_str(), base.as_str())? => {
            Ok(repository.may_revert(base, &newer, &request.commit)?)
        }
        Some(_) | None => Ok(false),
    }
}

/// Moves the target, and verifies that it contains the work.
fn move_target(
    ctx: &EngineContext,
    target: &LandTarget,
    proof: &Commit,
    to: &Commit,
) -> Result<MoveOutcome, EngineError> {
    let moved = ctx.repository.move_target(target, to)?;
    let name = format!("refs/heads/{}", target.branch);
    if moved == MoveOutcome::Done && !ctx.repository.is_ancestor(proof.as_str(), &name)? {
        return Ok(MoveOutcome::Conflict);
    }
    Ok(moved)
}

/// Poll interval.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Number of polls before the user is notified about the wait.
const NOTIFY_AFTER: usize = 150;

/// The right to land, until it is dropped. The system releases it if the process dies.
#[derive(Debug)]
pub struct LandingLock {
    _lock: File,
}

impl LandingLock {
    /// Waits for the landing lock; `None` if the wait was stopped.
    pub async fn acquire(repository: &Repository, progress: ProgressCallback<'_>) -> Result<Option<Self>, EngineError> {
        Self::acquire_file(repository.landing_lock(), progress).await
    }

    /// Waits for the lock of this file; `None` if the wait was stopped.
    pub async fn acquire_file(path: PathBuf, progress: ProgressCallback<'_>) -> Result<Option<Self>, EngineError> {
        let lock = atomic_file::open_lock(&path).map_err(|error| EngineError::io("open", &path, error))?;
        let failed = |error| EngineError::io("lock", &path, error);
        let mut stoppable = None;
        for look in 0_usize.. {
            match lock.try_lock() {
                Ok(()) => return Ok(Some(Self { _lock: lock })),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            if stoppable.is_none() {
                let waiting = StopRequest::new().map_err(failed)?;
                progress(LandingProgress::Stoppable(waiting.stopper()));
                stoppable = Some(waiting);
            }
            if stoppable.as_ref().is_some_and(StopRequest::is_requested) {
                return Ok(None);
            }
            if look == NOTIFY_AFTER {
                progress(LandingProgress::Waiting);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(None)
    }
}

/// The newest landed commit of each run. Accessed only while holding the landing lock.
#[derive(Debug, Default)]
pub struct LatestLandings(Mutex<BTreeMap<RunId, Commit>>);

impl LatestLandings {
    pub fn get(&self, run: RunId) -> Option<Commit> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&run).cloned()
    }

    pub fn set(&self, run: RunId, commit: Commit) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(run, commit);
    }
}
