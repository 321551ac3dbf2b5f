//! Lands a commit, or the branch of a run, for a command; finds a run's approved and foreign commits.

use signoff_core::view::inbox::Action;
use std::fs;
use std::sync::Arc;

use signoff_core::group::RunStage;
use signoff_core::ids::{Commit, LoopId, RunId};
use signoff_core::machine::{RetryAction, Stage};
use signoff_core::review::FailThreshold;
use signoff_core::settings::LandingMethod;
use signoff_core::view::RunState;
use signoff_core::workflow::{Landing, Scheduling};

use super::land_commit::{self, LandingLock, LandingRequest, LandingResult, ProgressCallback};
use super::replayed::replayed;
use super::review_coverage::{self, ApprovedRange, LandingCandidate, LandingRecords};
use super::{LandingAttempt, not_landed, short};
use crate::attempt::{self, EngineContext};
use crate::check_off;
use crate::error::EngineError;
use crate::git::{GitError, LandTarget, MergeOutcome, MoveOutcome, Repository, UncommittedPolicy};
use crate::remove_tree;

/// The commits that belong to a run.
#[derive(Debug, Clone, Copy)]
pub struct OwnWork<'a> {
    /// The commit that landed on the branch last.
    pub landed: &'a Commit,
    /// The heads of loops that are landing: a killed process may have landed them without recording it.
    pub heads: &'a [Commit],
    pub landing_method: LandingMethod,
}

/// Why a run cannot land because of its final review; `None` if it is approved, or if the run has none.
pub fn final_review_refusal(run_state: &RunState) -> Option<EngineError> {
    let (run, stage) = (run_state.run, &run_state.machine.stage);
    if !run_state.has_final_review() {
        return None;
    }
    let Some(final_review) = run_state.loops.get(&LoopId::final_review()) else {
        let is_over = matches!(stage, RunStage::Done(_));
        return (!is_over).then(|| EngineError::NotLanded {
            message: format!("run {run} cannot land: its final review has not begun"),
            hint: format!(
                "`{}` shows its progress; `{}` continues it if it was stopped",
                Action::Status,
                Action::ResumeRun(Some(run.0))
            ),
        });
    };
    let state = &final_review.machine;
    if state.approved_commit().is_some() {
        return None;
    }
    let Stage::Done(ending) = &state.stage else {
        let message = format!("run {run} cannot land: its final review is not over");
        let hint = format!("`{}` continues it; `signoff` shows an open question", Action::ResumeRun(Some(run.0)));
        return Some(EngineError::NotLanded { message, hint });
    };
    let open: Vec<&str> = state.ledger.open(FailThreshold::Low).map(|entry| entry.finding.id.as_str()).collect();
    let findings = match open.len() {
        0 => String::new(),
        1 => " (1 open finding)".to_owned(),
        count => format!(" ({count} open findings)"),
    };
    let hint = final_review_hints(run, ending.retry != RetryAction::Nothing, open.first().copied());
    let message = format!("run {run} cannot land: its final review did not approve it{findings}");
    Some(EngineError::NotLanded { message, hint })
}

/// Hints for a final review that did not approve.
pub fn final_review_hints(run: RunId, can_be_retried: bool, finding: Option<&str>) -> String {
    let run = run.0;
    let retry = can_be_retried.then(|| format!("`{}` fixes and reviews it once more", Action::RetryRun(run)));
    let dispute = finding.filter(|_| can_be_retried).map(|finding| {
        format!("`{}` rejects a finding, before the retry", Action::Dispute { finding: finding.to_owned() })
    });
    let accept = format!("`{}` accepts the run in your name", Action::AcceptRun(run));
    retry.into_iter().chain(dispute).chain([accept]).collect::<Vec<_>>().join("; ")
}

/// The approved commit of a run's branch, with everything that landed on it; or why there is none.
pub fn approved_commit(repository: &Repository, run_state: &RunState) -> Result<Commit, EngineError> {
    if let Some(refusal) = final_review_refusal(run_state) {
        return Err(refusal);
    }
    let (run, branch) = (run_state.run, run_state.run.branch());
    let has_final_review = run_state.has_final_review();
    let Some(commit) = last_approved(run_state) else {
        let merge = if has_final_review { "" } else { "; `signoff merge ID` lands one task" };
        let message = format!("run {run} cannot land as a whole: it is not approved");
        return Err(not_landed(message, format!("`signoff status` shows its progress{merge}")));
    };
    let all: Vec<Commit> = run_state.landed().map(|(_, landed)| landed.clone()).collect();
    let missing = repository.missing_from(commit.as_str(), &all)?;
    let Some((task, landed)) = run_state.landed().find(|(_, landed)| missing.contains(landed)) else {
        return Ok(commit);
    };
    let message =
        format!("the approved commit of run {run} does not contain task {task}, which landed on {branch} as {landed}");
    Err(not_landed(
        message,
        match has_final_review {
            true => {
                let accept = Action::AcceptRun(run.0);
                format!("{branch} was moved: `git merge {landed}` on it, then `{accept}`")
            }
            false => format!("{branch} was moved: `signoff merge {task}` lands this task alone"),
        },
    ))
}

/// The commit that was approved last: by the final review, by landing, or of the last task in a chain.
fn last_approved(run_state: &RunState) -> Option<Commit> {
    let policy = run_state.run_policy()?;
    let approved = |loop_id: &LoopId| run_state.loops.get(loop_id)?.machine.approved_commit().cloned();
    if policy.has_final_review {
        approved(&LoopId::final_review())
    } else if policy.landing == Landing::None {
        run_state.machine.groups.iter().flatten().rev().find_map(approved)
    } else {
        run_state.last_landed.clone()
    }
}

/// The range that the final review approved, if no task was rejected.
pub fn approved_range(run_state: &RunState) -> Option<ApprovedRange> {
    let final_review = run_state.loops.get(&LoopId::final_review())?;
    let is_rejected = run_state.loops.values().any(|loop_state| review_coverage::is_rejected(loop_state));
    if is_rejected { None } else { ApprovedRange::for_loop(final_review) }
}

/// Makes sure that a run's branch contains everything that landed on it, since it may have been moved. Returns a note
/// about what was done, or about commits that are not the run's own.
pub fn restore_landed(repository: &Repository, branch: &str, own: OwnWork<'_>) -> Result<Option<String>, EngineError> {
    let landed = own.landed;
    if repository.is_at(branch, landed) {
        return Ok(None);
    }
    let Some(target) = repository.land_target(branch)? else {
        repository.create_target(branch, landed)?;
        return Ok(Some(format!("{branch} was deleted; recreated at {landed}")));
    };
    let tip = target.tip.commit.clone();
    if repository.is_ancestor(landed.as_str(), tip.as_str())? {
        return foreign_commits_note(repository, &target, own);
    }
    let to = match repository.merge_onto(&target.tip, landed, &format!("Keep commits landed on {branch}"))? {
        MergeOutcome::Contained => return Ok(None),
        MergeOutcome::Clean(_) if repository.is_ancestor(tip.as_str(), landed.as_str())? => landed.clone(),
        MergeOutcome::Clean(head) | MergeOutcome::Different(head) => head.commit,
        MergeOutcome::Conflicting { .. } => {
            return Err(not_landed(
                format!("{branch} was moved to {tip}, which conflicts with the landed commit {landed}"),
                format!("nothing is lost: `git merge {landed}` on {branch}, then `{}`", Action::ResumeRun(None)),
            ));
        }
    };
    match repository.move_target(&target, &to)? {
        MoveOutcome::Done => Ok(Some(format!("{branch} was moved to {tip}; signoff merged {landed} back into it"))),
        MoveOutcome::Conflict => Err(GitError::BranchMoved(branch.to_owned()).into()),
    }
}

/// A note about commits on a run's branch before the first landing.
pub fn foreign_before_landing(
    repository: &Repository,
    branch: &str,
    heads: &[Commit],
    landing_method: LandingMethod,
) -> Result<Option<String>, EngineError> {
    let Some(begun) = repository.branch_base(branch)?.filter(|begun| !repository.is_at(branch, begun)) else {
        return Ok(None);
    };
    let own = OwnWork { landed: &begun, heads, landing_method };
    repository.land_target(branch)?.map_or(Ok(None), |target| foreign_commits_note(repository, &target, own))
}

/// Describes the commits on a run's branch that are not the run's own.
fn foreign_commits_note(
    repository: &Repository,
    target: &LandTarget,
    own: OwnWork<'_>,
) -> Result<Option<String>, EngineError> {
    // The head of a loop whose branch was deleted may be gone.
    let is_there = |head: &&Commit| repository.resolve(head.as_str()).is_ok();
    let heads: Vec<Commit> = own.heads.iter().filter(is_there).cloned().collect();
    let own = OwnWork { heads: &heads, ..own };
    let known: Vec<Commit> = [own.landed].into_iter().chain(own.heads).cloned().collect();
    let mut foreign = repository.commits_excluding(&known, &target.tip.commit)?;
    if own.landing_method == LandingMethod::Rebase && !foreign.is_empty() {
        let replayed = replayed(repository, &foreign, own)?;
        foreign.retain(|commit| !replayed.contains(commit));
    }
    let described = repository.commit_infos(foreign.first())?;
    let Some((commit, described)) = described.into_iter().next() else { return Ok(None) };
    let more = match foreign.len() {
        1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    let (branch, id, subject) = (&target.branch, short(&commit), described.subject);
    Ok(Some(format!("commit {id} (\"{subject}\"){more} came onto {branch} from elsewhere and was not reviewed")))
}

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
    let _lock = LandingLock::acquire(repository, &|_| ()).await?;
    let (repository, branch) = (repository.clone(), branch.to_owned());
    attempt::blocking(move || {
        repository.finish_checkout_update()?;
        let target = repository.land_target(&branch)?.ok_or(GitError::BranchGone(branch))?;
        Ok(repository.check_movable(&target)?)
    })
    .await
}

/// Waits until the previous `land` or `merge` command has ended. Such commands run one at a time.
pub async fn lock_for_command(repository: &Repository) -> Result<Option<LandingLock>, EngineError> {
    let lock = repository.landing_lock().with_file_name("land-command.lock");
    LandingLock::acquire_file(lock, &|_| ()).await
}

/// Lands a commit, or returns why not; nothing is changed then.
pub async fn land(
    ctx: &Arc<EngineContext>,
    landing: DirectLanding,
    progress: ProgressCallback<'_>,
) -> Result<LandingResult, EngineError> {
    let Some(_lock) = LandingLock::acquire(&ctx.repository, progress).await? else {
        return Ok(LandingResult::Stopped);
    };
    let query_ctx = ctx.clone();
    let request = attempt::blocking(move || landing_request(&query_ctx, landing)).await?;
    land_commit::land_commit(ctx, &request, progress).await
}

/// Lands the approved commit of a run on the default branch, even if the run's branch has moved. Returns the landed
/// commit, and whether it is new.
pub async fn land_run(
    ctx: &Arc<EngineContext>,
    run_state: RunState,
    progress: ProgressCallback<'_>,
) -> Result<(Commit, bool), EngineError> {
    let (query_ctx, run) = (ctx.clone(), run_state.run);
    let lands_on_run = run_state.run_policy().is_some_and(|policy| policy.landing != Landing::None);
    let (commit, own, target) = attempt::blocking(move || {
        let repository = &query_ctx.repository;
        let commit = with_check_offs(&query_ctx, &run_state, approved_commit(repository, &run_state)?)?;
        Ok((commit, approved_range(&run_state), repository.default_branch()?))
    })
    .await?;
    let (what, message) = (format!("run {run}"), format!("Merge run {run}"));
    let landing =
        DirectLanding { run, what: what.clone(), name: "run".to_owned(), commit: commit.clone(), message, own };
    let result = land(ctx, landing, progress).await?;
    let landed = result.landed_commit(LandingAttempt { what: &what, target: &target, commit: &commit })?;
    if lands_on_run {
        // The worktree of the final review stays if it contains work that did not land.
        let cleanup_ctx = ctx.clone();
        let remove = move || {
            Ok(cleanup_ctx
                .repository
                .remove_worktree(&cleanup_ctx.layout.run_worktree(run), UncommittedPolicy::Keep)?)
        };
        attempt::blocking(remove).await.ok();
    }
    Ok(landed)
}

/// The approved commit of a plan, with the check-off commits on top of it. Without the last one its task would be
/// started again.
fn with_check_offs(ctx: &EngineContext, run_state: &RunState, commit: Commit) -> Result<Commit, EngineError> {
    let (run, branch) = (run_state.run, run_state.run.branch());
    let is_chain = run_state.run_policy().is_some_and(|policy| policy.scheduling == Scheduling::Chain);
    if is_chain && ctx.layout.run_worktree(run).is_dir() && ctx.repository.is_at(&branch, &commit) {
        check_off::in_branch(ctx, run, &check_off::finished_entries(run_state))?;
    }
    let last_check_off = fs::read_to_string(ctx.layout.checked_off(run)).ok().map(Commit::new);
    Ok(last_check_off
        .filter(|last_check_off| is_chain && ctx.repository.is_at(&branch, last_check_off))
        .unwrap_or(commit))
}

fn landing_request(ctx: &EngineContext, landing: DirectLanding) -> Result<LandingRequest, EngineError> {
    let DirectLanding { run, what, name, commit, message, own } = landing;
    ctx.repository.finish_checkout_update()?;
    let target = ctx.repository.default_branch()?;
    let candidate = LandingCandidate { what: &what, run, commit: &commit, own: own.as_ref(), can_rereview: false };
    review_coverage::check(LandingRecords::new(ctx), &target, candidate)?;
    let directory = ctx.layout.landing(run, &name);
    // Remove the files of an earlier try.
    remove_tree::remove(&directory).ok();
    let environment = attempt::run_environment(run);
    Ok(LandingRequest { target, commit, review_base: None, create_target_at: None, message, environment, directory })
}
