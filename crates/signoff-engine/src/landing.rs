//! Lands approved work on its target branch, one landing at a time.
//!
//! The merge is made without a worktree, checked in a temporary one, and then the branch moves. Work that conflicts or
//! fails checks becomes a commit on the loop's own branch, with findings for its fixer. Every step is safe to repeat.

mod land_commit;
mod rejected;
mod replayed;
mod review_coverage;
mod run_branch;

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use land_commit::LandingRequest;
use rejected::{ConflictingMerge, RejectedLanding};
use signoff_core::ids::Commit;
use signoff_core::machine::{Event, Head, LandingReport};
use signoff_core::wire::LoopFact;

use crate::atomic_file::{self, WriteMode};
use crate::attempt::{self, AttemptEnd, EngineContext};
use crate::attempt_spec::{self, AttemptSpec};
use crate::error::EngineError;
use crate::executor::{AttemptResult, AttemptSink};
use crate::failpoint;
use crate::git::{GitError, UncommittedPolicy};
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
    failpoint::pass("landing_lock");
    let landing = LoopLander { ctx, spec };
    let progress = |progress| landing.forward_progress(&sink, progress);
    // Hold the lock until the report is sent, so that landings are recorded in order.
    let (landed, _lock) = match LandingLock::acquire(&landing.ctx.repository, &progress).await {
        Ok(None) => (Ok(AttemptResult::new(AttemptEnd::Stopped)), None),
        Ok(Some(lock)) => (landing.run(&sink).await, Some(lock)),
        Err(error) => (Err(error), None),
    };
    sink.ended(landed.unwrap_or_else(|error| AttemptResult::new(AttemptEnd::Error(error))));
}

/// The landing of a loop's work. The caller of its functions holds the landing lock.
#[derive(Clone)]
struct LoopLander {
    ctx: Arc<EngineContext>,
    spec: Arc<AttemptSpec>,
}

impl LoopLander {
    fn forward_progress(&self, sink: &AttemptSink, progress: LandingProgress) {
        let subject_label = || attempt_spec::subject_label(self.spec.run, &self.spec.loop_id, self.spec.task_id);
        match progress {
            LandingProgress::Stoppable(stopper) => sink.stoppable(stopper),
            LandingProgress::Waiting => sink.note(format!("{} is waiting for another landing", subject_label())),
            LandingProgress::Note(note) => sink.note(format!("{}: {note}", subject_label())),
        }
    }

    async fn run(&self, sink: &AttemptSink) -> Result<AttemptResult, EngineError> {
        let (landing, mut notes) = (self.clone(), Vec::new());
        let checked = attempt::blocking(move || Ok((landing.check_branch(&mut notes)?, notes)));
        let (checked, notes) = checked.await?;
        notes.into_iter().for_each(|note| sink.note(note));
        let request = match checked {
            ControlFlow::Continue(request) => request,
            ControlFlow::Break(ended) => return Ok(ended),
        };
        let progress = |progress| self.forward_progress(sink, progress);
        let result = land_commit::land_commit(&self.ctx, &request, &progress).await?;
        let landing = self.clone();
        attempt::blocking(move || landing.finish(&request.target, result)).await
    }

    /// Checks that the branch still is at the approved commit, and that there is work to land.
    fn check_branch(&self, notes: &mut Vec<String>) -> Result<ControlFlow<AttemptResult, LandingRequest>, EngineError> {
        self.ctx.repository.finish_checkout_update()?;
        let tip = self.tip()?;
        let rejection: Option<RejectedLanding> = atomic_file::read_json(&self.rejection_file()).ok();
        if tip.commit != self.spec.machine.head.commit {
            return Ok(ControlFlow::Break(match rejection.filter(|rejection| rejection.head.commit == tip.commit) {
                // A process was killed after it moved the branch: repeat the steps after that.
                Some(rejection) => self.finish_rejection(&rejection)?,
                None => event_result(Event::HeadMoved { head: self.commit_changes()?.unwrap_or(tip) }),
            }));
        }
        notes.extend(self.restore_target()?);
        let unresolved =
            rejection.map(|rejection| rejection.unresolved(&self.ctx.repository, &tip.commit)).transpose()?;
        if let Some(findings) = unresolved.filter(|findings| !findings.is_empty()) {
            return Ok(ControlFlow::Break(self.ended(LandingReport::SentBack { head: tip, findings })));
        }
        let request = LandingRequest::for_loop(&self.ctx, &self.spec)?;
        self.check_coverage(&request)?;
        Ok(ControlFlow::Continue(request))
    }

    /// Makes sure that the run's branch contains everything that landed before. Returns a note if it was changed
    /// otherwise.
    ///
    /// The spec was created before the lock was taken, so other loops may have landed since.
    fn restore_target(&self) -> Result<Option<String>, EngineError> {
        let Self { ctx, spec } = self;
        let Some(target) = &spec.target else { return Ok(None) };
        let (landing_method, latest) = (ctx.settings.landing(), ctx.latest_landings.get(spec.run));
        let heads = &spec.landing_heads;
        match latest.as_ref().or(spec.last_landed.as_ref()) {
            Some(landed) => {
                run_branch::restore_landed(&ctx.repository, target, OwnWork { landed, heads, landing_method })
            }
            None => run_branch::foreign_before_landing(&ctx.repository, target, heads, landing_method),
        }
    }

    /// Checks that everything a loop brings to the default branch is reviewed.
    fn check_coverage(&self, request: &LandingRequest) -> Result<(), EngineError> {
        let spec = &self.spec;
        if spec.target.is_some() {
            return Ok(());
        }
        let what = spec.task_id.map_or_else(|| format!("run {}", spec.run), |task| format!("task {task}"));
        let tip = spec.machine.signed_off_commit();
        let own = tip.map(|tip| ApprovedRange { base: spec.workspace.base.clone(), tip: tip.clone() });
        let (run, commit, own) = (spec.run, &request.commit, own.as_ref());
        let candidate = LandingCandidate { what: &what, run, commit, own, can_rereview: true };
        review_coverage::check(LandingRecords::new(&self.ctx), &request.target, candidate)
    }

    /// The head of the loop's branch. A deleted branch is recreated.
    fn tip(&self) -> Result<Head, EngineError> {
        let Self { ctx, spec } = self;
        // Usually the branch has not moved, and git is not needed.
        if ctx.repository.is_at(&spec.branch, &spec.machine.head.commit) {
            return Ok(spec.machine.head.clone());
        }
        ctx.revive_branch(spec)?;
        Ok(ctx.repository.existing_head(&spec.branch)?)
    }

    fn ended(&self, report: LandingReport) -> AttemptResult {
        event_result(Event::LandingEnded { attempt: self.spec.job.attempt, report })
    }

    /// Turns the result of the merge into the result of the attempt.
    fn finish(&self, target: &str, result: LandingResult) -> Result<AttemptResult, EngineError> {
        let Self { ctx, spec } = self;
        match result {
            LandingResult::Landed { commit, .. } => {
                failpoint::pass("landed");
                if spec.target.is_some() {
                    ctx.latest_landings.set(spec.run, commit.clone());
                }
                Ok(AttemptResult { notes: self.clean_up(), ..self.ended(LandingReport::Landed { commit }) })
            }
            LandingResult::Conflicting { onto, head, files } => {
                let merge = ConflictingMerge { own: &spec.machine.head.commit, target, onto, head, files };
                self.reject(&RejectedLanding::from_conflict(&ctx.repository, merge)?)
            }
            LandingResult::Different { onto, head } => self.reject(&RejectedLanding::for_rereview(onto, head)),
            LandingResult::ChecksFailed { onto, head, findings } => {
                self.reject(&RejectedLanding::from_checks(&spec.workspace.base, onto, head, findings))
            }
            LandingResult::ChecksNotRun(failure) => {
                Ok(event_result(Event::AttemptFailed { attempt: spec.job.attempt, failure }))
            }
            LandingResult::Stopped => Ok(AttemptResult::new(AttemptEnd::Stopped)),
        }
    }

    /// Commits uncommitted changes in the loop's worktree, so that they are reviewed and not undone.
    fn commit_changes(&self) -> Result<Option<Head>, EngineError> {
        match self.ctx.repository.worktree(Path::new(&self.spec.workspace.worktree)) {
            Ok(worktree) if worktree.exists() => Ok(Some(worktree.commit_all("Changes by hand")?.head)),
            Ok(_) | Err(GitError::WorktreeGone(_) | GitError::NotOurs(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The file with the last rejection of the loop.
    fn rejection_file(&self) -> PathBuf {
        self.ctx.layout.attempts(self.spec.run, &self.spec.loop_id).join("sent_back.json")
    }

    /// Makes the rejected merge the head of the loop's branch.
    fn reject(&self, rejection: &RejectedLanding) -> Result<AttemptResult, EngineError> {
        let Self { ctx, spec } = self;
        if let Some(head) = self.commit_changes()?.filter(|head| *head != spec.machine.head) {
            return Ok(event_result(Event::HeadMoved { head }));
        }
        let file = self.rejection_file();
        fs::create_dir_all(ctx.layout.attempts(spec.run, &spec.loop_id))
            .and_then(|()| atomic_file::write_json(&file, rejection, WriteMode::Durable))
            .map_err(|error| EngineError::io("write", &file, error))?;
        failpoint::pass("rejection_recorded");
        if !ctx.repository.advance_branch(&spec.branch, &spec.machine.head.commit, &rejection.head.commit)? {
            let head = ctx.repository.existing_head(&spec.branch)?;
            return Ok(event_result(Event::HeadMoved { head }));
        }
        failpoint::pass("rejected_branch_moved");
        self.finish_rejection(rejection)
    }

    /// Finishes a rejection after the branch has moved: updates the files and the loop's base.
    fn finish_rejection(&self, rejection: &RejectedLanding) -> Result<AttemptResult, EngineError> {
        let workspace = &self.spec.workspace;
        workspace::follow_branch(&self.ctx, workspace, &rejection.head.commit)?;
        // From now on the diff for reviewers starts at the target's tip.
        let workspace_created =
            LoopFact::WorkspaceCreated { base: rejection.onto.clone(), worktree: workspace.worktree.clone() };
        let base = Event::BaseSet { tree: self.ctx.repository.tree_of(&rejection.onto)? };
        let (head, findings) = (rejection.head.clone(), rejection.findings.clone());
        let result = match findings.is_empty() {
            true => event_result(Event::HeadMoved { head }),
            false => self.ended(LandingReport::SentBack { head, findings }),
        };
        Ok(AttemptResult { facts: vec![workspace_created, LoopFact::Transitioned(base)], ..result })
    }

    /// Removes the loop's worktree and keeps its branch. Errors are ignored.
    fn clean_up(&self) -> Vec<String> {
        let Self { ctx, spec } = self;
        fs::remove_file(self.rejection_file()).ok();
        let worktree = Path::new(&spec.workspace.worktree);
        // A worktree that is unchanged since its review contains nothing that is not on the branch.
        let own = ctx.repository.worktree(worktree).ok();
        let reviewed = own.is_some_and(|own| ctx.read_guards.is_unchanged_since_read(&own, &spec.machine.head.commit));
        let uncommitted = if reviewed { UncommittedPolicy::Discard } else { UncommittedPolicy::Keep };
        ctx.read_guards.forget(worktree);
        match ctx.repository.remove_worktree(worktree, uncommitted) {
            Err(error @ (GitError::UncommittedWork(_) | GitError::OffBranch { .. })) => {
                vec![format!("{error}; it did not land, and stays there")]
            }
            Ok(()) | Err(_) => Vec::new(),
        }
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
    pub fn landed_commit(&self, attempt: LandingAttempt<'_>) -> Result<(Commit, bool), EngineError> {
        let LandingAttempt { what, target, commit } = attempt;
        let (message, hint) = match self {
            Self::Landed { commit, is_new } => return Ok((commit.clone(), *is_new)),
            Self::Conflicting { files, .. } => {
                let files: Vec<String> = files.iter().map(|file| file.path.display().to_string()).collect();
                let by_hand = format!(
                    "nothing was changed. Merge it by hand: `git merge {commit}` on {target}, and resolve the conflicts"
                );
                (format!("{what} conflicts with {target} in {}", files.join(", ")), by_hand)
            }
            Self::Different { .. } => (
                format!("on top of {target}, {what} differs from what was approved"),
                format!("nothing was changed. `landing = \"merge\"` lands it as it is, or merge {commit} by hand"),
            ),
            Self::ChecksFailed { findings, .. } => {
                let first = findings.first().map_or(String::new(), |finding| format!(": {}", finding.description));
                (
                    format!("together with {target}, the checks of {what} fail{first}"),
                    format!("nothing was changed. Fix {target} or the work, and run the command again"),
                )
            }
            Self::ChecksNotRun(failure) => (
                format!("the checks of {what} {failure}"),
                "fix [checks] in signoff.toml, or raise limits.attempt".to_owned(),
            ),
            Self::Stopped => (
                format!("{what} has not landed: the checks were stopped"),
                "nothing was changed. Run the command again".to_owned(),
            ),
        };
        Err(EngineError::NotLanded { message, hint })
    }
}
