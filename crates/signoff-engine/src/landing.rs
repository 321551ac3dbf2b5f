//! Lands approved work on its target branch, one landing at a time.
//!
//! The merge is made without a worktree, checked in a temporary one, and then the branch moves. Work that conflicts or
//! fails checks becomes a commit on the loop's own branch, with findings for its fixer. Every step is safe to repeat.

mod land_commit;
mod rejected;
mod replayed;
mod review_coverage;
mod run_branch;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use land_commit::LandingRequest;
use rejected::{ConflictingMerge, RejectedLanding};
use signoff_core::ids::Commit;
use signoff_core::machine::{Event, Head, LandingReport};
use signoff_core::review::Finding;
use signoff_core::wire::LoopFact;

use crate::attempt::{self, AttemptEnd, EngineContext};
use crate::attempt_spec::{self, AttemptSpec};
use crate::error::EngineError;
use crate::executor::{AttemptResult, AttemptSink};
use crate::failpoint;
use crate::git::{GitError, Uncommitted};
use crate::workspace;

pub use land_commit::{LandingLock, LandingProgress, LandingResult, LatestLandings, ProgressCallback};
pub use review_coverage::{ApprovedRange, LandingCandidate, LandingRecords, check};
pub use run_branch::{
    DirectLanding, OwnWork, approved_commit, approved_range, check_ready, final_review_refusal, land, land_run,
    lock_for_command, restore_landed,
};

/// A result with nothing but an event.
fn event_result(event: Event) -> AttemptResult {
    AttemptResult::new(AttemptEnd::Event(Box::new(event)))
}

/// Lands a loop's work on its target branch, or rejects it.
pub async fn run_landing(ctx: Arc<EngineContext>, spec: Arc<AttemptSpec>, sink: AttemptSink) {
    failpoint::pass("land_turn");
    // Hold the lock until the report is sent, so that landings are recorded in order.
    let progress = |progress| forward_progress(&spec, &sink, progress);
    let (landed, _turn) = match LandingLock::acquire(&ctx.repository, &progress).await {
        Ok(None) => (Ok(AttemptResult::new(AttemptEnd::Stopped)), None),
        Ok(Some(turn)) => (land_loop(&ctx, &spec, &sink).await, Some(turn)),
        Err(error) => (Err(error), None),
    };
    sink.ended(landed.unwrap_or_else(|error| AttemptResult::new(AttemptEnd::Error(error))));
}

fn forward_progress(spec: &AttemptSpec, sink: &AttemptSink, progress: LandingProgress) {
    let whose = || attempt_spec::subject_label(spec.run, &spec.loop_id, spec.task_id);
    match progress {
        LandingProgress::Stoppable(stopper) => sink.stoppable(stopper),
        LandingProgress::Waiting => sink.note(format!("{} waits: another landing is under way", whose())),
        LandingProgress::Note(note) => sink.note(format!("{}: {note}", whose())),
    }
}

/// Lands the work. The caller holds the landing lock.
async fn land_loop(
    ctx: &Arc<EngineContext>,
    spec: &Arc<AttemptSpec>,
    sink: &AttemptSink,
) -> Result<AttemptResult, EngineError> {
    let looking = (ctx.clone(), spec.clone());
    let looked = attempt::blocking(move || {
        let mut notes = Vec::new();
        check_branch(&looking.0, &looking.1, &mut notes).map(|before| (before, notes))
    });
    let (before, notes) = looked.await?;
    for note in notes {
        sink.note(note);
    }
    let request = match before {
        ControlFlow::Continue(request) => request,
        ControlFlow::Break(ended) => return Ok(ended),
    };
    let result = land_commit::land_commit(ctx, &request, &|progress| forward_progress(spec, sink, progress)).await?;
    let ending = (ctx.clone(), spec.clone());
    attempt::blocking(move || finish_landing(&ending.0, &ending.1, &request.target, result)).await
}

/// Checks that the branch still is at the approved commit, and that there is work to land.
fn check_branch(
    ctx: &EngineContext,
    spec: &AttemptSpec,
    notes: &mut Vec<String>,
) -> Result<ControlFlow<AttemptResult, LandingRequest>, EngineError> {
    ctx.repository.finish_checkout_update()?;
    let tip = tip(ctx, spec)?;
    let rejection = RejectedLanding::read(ctx, spec);
    if tip.commit != spec.machine.head.commit {
        return Ok(ControlFlow::Break(match rejection.filter(|rejection| rejection.head.commit == tip.commit) {
            // A process was killed after it moved the branch: repeat the steps after that.
            Some(rejection) => finish_rejection(ctx, spec, &rejection)?,
            None => event_result(Event::HeadMoved { head: commit_changes(ctx, spec)?.unwrap_or(tip) }),
        }));
    }
    notes.extend(restore_target(ctx, spec)?);
    let unresolved = rejection.map(|rejection| rejection.unresolved(ctx, &tip.commit)).transpose()?;
    match unresolved.filter(|findings| !findings.is_empty()) {
        None => {
            let request = LandingRequest::for_loop(ctx, spec)?;
            check_coverage(ctx, spec, &request)?;
            Ok(ControlFlow::Continue(request))
        }
        Some(findings) => Ok(ControlFlow::Break(sent_back(spec, tip, findings))),
    }
}

/// Makes sure that the run's branch contains everything that landed before. Returns a note if it was changed otherwise.
///
/// The spec was created before the lock was taken, so other loops may have landed since.
fn restore_target(ctx: &EngineContext, spec: &AttemptSpec) -> Result<Option<String>, EngineError> {
    let Some(target) = &spec.target else { return Ok(None) };
    let (by, latest) = (ctx.settings.landing(), ctx.latest_landings.get(spec.run));
    let heads = &spec.landing_heads;
    match latest.as_ref().or(spec.last_landed.as_ref()) {
        Some(landed) => {
            run_branch::restore_landed(&ctx.repository, target, OwnWork { landed, heads, landing_method: by })
        }
        None => run_branch::foreign_before_landing(&ctx.repository, target, heads, by),
    }
}

/// Checks that everything a loop brings to the default branch is reviewed.
fn check_coverage(ctx: &EngineContext, spec: &AttemptSpec, request: &LandingRequest) -> Result<(), EngineError> {
    if spec.target.is_some() {
        return Ok(());
    }
    let what = spec.task_id.map_or_else(|| format!("run {}", spec.run), |task| format!("task {task}"));
    let tip = spec.machine.signed_off_commit();
    let own = tip.map(|tip| ApprovedRange { base: spec.workspace.base.clone(), tip: tip.clone() });
    let (run, commit, own) = (spec.run, &request.commit, own.as_ref());
    let candidate = LandingCandidate { what: &what, run, commit, own, asks_again: true };
    review_coverage::check(LandingRecords::new(ctx), &request.target, candidate)
}

/// The head of the loop's branch. A deleted branch is recreated.
fn tip(ctx: &EngineContext, spec: &AttemptSpec) -> Result<Head, EngineError> {
    // Usually the branch has not moved, and git is not needed.
    if ctx.repository.is_at(&spec.branch, &spec.machine.head.commit) {
        return Ok(spec.machine.head.clone());
    }
    ctx.revive_branch(spec)?;
    Ok(ctx.repository.existing_head(&spec.branch)?)
}

fn sent_back(spec: &AttemptSpec, head: Head, findings: Vec<Finding>) -> AttemptResult {
    let report = LandingReport::SentBack { head, findings };
    event_result(Event::LandingEnded { attempt: spec.job.attempt, report })
}

/// Turns the result of the merge into the outcome of the landing.
fn finish_landing(
    ctx: &EngineContext,
    spec: &AttemptSpec,
    target: &str,
    result: LandingResult,
) -> Result<AttemptResult, EngineError> {
    let attempt = spec.job.attempt;
    match result {
        LandingResult::Landed { commit, .. } => {
            failpoint::pass("landed");
            if spec.target.is_some() {
                ctx.latest_landings.set(spec.run, commit.clone());
            }
            let notes = clean_up(ctx, spec);
            let report = LandingReport::Landed { commit };
            Ok(AttemptResult { notes, ..event_result(Event::LandingEnded { attempt, report }) })
        }
        LandingResult::Conflicting { onto, head, files } => {
            let merge = ConflictingMerge { own: &spec.machine.head.commit, target, onto, head, files };
            reject(ctx, spec, &RejectedLanding::from_conflict(&ctx.repository, merge)?)
        }
        LandingResult::Different { onto, head } => reject(ctx, spec, &RejectedLanding::for_rereview(onto, head)),
        LandingResult::ChecksFailed { onto, head, findings } => {
            reject(ctx, spec, &RejectedLanding::from_checks(&spec.workspace.base, onto, head, findings))
        }
        LandingResult::ChecksNotRun(failure) => Ok(event_result(Event::AttemptFailed { attempt, failure })),
        LandingResult::Stopped => Ok(AttemptResult::new(AttemptEnd::Stopped)),
    }
}

/// Commits uncommitted changes in the loop's worktree, so that they are reviewed and not undone.
fn commit_changes(ctx: &EngineContext, spec: &AttemptSpec) -> Result<Option<Head>, EngineError> {
    match ctx.repository.worktree(Path::new(&spec.workspace.worktree)) {
        Ok(worktree) if worktree.exists() => Ok(Some(worktree.commit_all("Changes by hand")?.head)),
        Ok(_) | Err(GitError::WorktreeGone(_) | GitError::NotOurs(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Makes the rejected merge the head of the loop's branch.
fn reject(ctx: &EngineContext, spec: &AttemptSpec, rejection: &RejectedLanding) -> Result<AttemptResult, EngineError> {
    if let Some(head) = commit_changes(ctx, spec)?.filter(|head| *head != spec.machine.head) {
        return Ok(event_result(Event::HeadMoved { head }));
    }
    rejection.write(ctx, spec)?;
    failpoint::pass("sent_back");
    if !ctx.repository.advance_branch(&spec.branch, &spec.machine.head.commit, &rejection.head.commit)? {
        let head = ctx.repository.existing_head(&spec.branch)?;
        return Ok(event_result(Event::HeadMoved { head }));
    }
    failpoint::pass("given_back");
    finish_rejection(ctx, spec, rejection)
}

/// Finishes a rejection after the branch has moved: updates the files and the loop's base.
fn finish_rejection(
    ctx: &EngineContext,
    spec: &AttemptSpec,
    rejection: &RejectedLanding,
) -> Result<AttemptResult, EngineError> {
    let place = &spec.workspace;
    workspace::follow_branch(ctx, place, &rejection.head.commit)?;
    // From now on the diff for reviewers starts at the target's tip.
    let placed = LoopFact::WorkspaceCreated { base: rejection.onto.clone(), worktree: place.worktree.clone() };
    let base = Event::BaseSet { tree: ctx.repository.tree_of(&rejection.onto)? };
    let (head, findings) = (rejection.head.clone(), rejection.findings.clone());
    let result = match findings.is_empty() {
        true => event_result(Event::HeadMoved { head }),
        false => sent_back(spec, head, findings),
    };
    Ok(AttemptResult { facts: vec![placed, LoopFact::Transitioned(base)], ..result })
}

/// Removes the loop's worktree and keeps its branch. Errors are ignored.
fn clean_up(ctx: &EngineContext, spec: &AttemptSpec) -> Vec<String> {
    RejectedLanding::remove(ctx, spec);
    let worktree = Path::new(&spec.workspace.worktree);
    // A worktree that is unchanged since its review contains nothing that is not on the branch.
    let own = ctx.repository.worktree(worktree).ok();
    let reviewed = own.is_some_and(|own| ctx.read_guards.is_as_read(&own, &spec.machine.head.commit));
    let uncommitted = if reviewed { Uncommitted::Discard } else { Uncommitted::Keep };
    ctx.read_guards.forget(worktree);
    match ctx.repository.remove_worktree(worktree, uncommitted) {
        Err(error @ (GitError::UncommittedWork(_) | GitError::OffBranch { .. })) => {
            vec![format!("{error}; it did not land, and stays there")]
        }
        Ok(()) | Err(_) => Vec::new(),
    }
}

fn not_landed(message: impl Into<String>, hint: impl Into<String>) -> EngineError {
    EngineError::NotLanded { message: message.into(), hint: hint.into() }
}

/// An abbreviated commit id.
fn short(commit: &Commit) -> &str {
    commit.as_str().get(..12).unwrap_or(commit.as_str())
}

/// The commit that should have landed, and its target.
#[derive(Debug, Clone, Copy)]
pub struct LandingAttempt<'a> {
    /// `task 3`, `run 7`.
    pub what: &'a str,
    pub target: &'a str,
    pub commit: &'a Commit,
}

impl LandingResult {
    /// The landed commit and whether it is new, or why it did not land.
    pub fn into_landed(&self, tried: LandingAttempt<'_>) -> Result<(Commit, bool), EngineError> {
        let LandingAttempt { what, target, commit } = tried;
        let (message, hint) = match self {
            Self::Landed { commit, now } => return Ok((commit.clone(), *now)),
            Self::Conflicting { files, .. } => {
                let files: Vec<String> = files.iter().map(|file| file.path.display().to_string()).collect();
                let by_hand = format!(
                    "nothing was changed. Merge it by hand: `git merge {commit}` on {target}, and resolve the conflicts"
                );
                (format!("{what} conflicts with {target} in {}", files.join(", ")), by_hand)
            }
            Self::Different { .. } => (
                format!("on top of {target}, {what} changes something else than what was approved"),
                format!("nothing was changed. `landing = \"merge\"` lands it as it is, or merge {commit} by hand"),
            ),
            Self::ChecksFailed { findings, .. } => {
                let first = findings.first().map_or(String::new(), |finding| format!(": {}", finding.description));
                (
                    format!("together with {target}, the checks of {what} fail{first}"),
                    format!("nothing was changed. Fix {target} or the work, and type the same again"),
                )
            }
            Self::ChecksNotRun(failure) => (
                format!("the checks of {what} {failure}"),
                "fix [checks] in signoff.toml, or raise limits.attempt".to_owned(),
            ),
            Self::Stopped => (
                format!("{what} has not landed: the checks were stopped"),
                "nothing was changed. Type the same again".to_owned(),
            ),
        };
        Err(EngineError::NotLanded { message, hint })
    }
}
