//! Runs the project's checks on a merge before it lands.

use std::path::Path;
use std::sync::Arc;

use signoff_core::checks::{CheckRun, compare_with_base};
use signoff_core::ids::{Commit, ReviewerName};
use signoff_core::machine::AttemptFailure;
use signoff_core::review::Finding;

use super::checks_not_run;
use super::land_commit::{LandingProgress, LandingRequest, ProgressCallback};
use crate::attempt::base_checks::{self, BaseCheckResult};
use crate::attempt::{self, EngineContext};
use crate::error::EngineError;
use crate::failpoint;
use crate::process::{AttemptDir, ProcessLaunch};

/// The result of the checks on a merge.
#[derive(Debug)]
pub enum LandingCheckResult {
    Passed,
    Failed(Vec<Finding>),
    /// They could not be run.
    NotRun(AttemptFailure),
    Stopped,
}

/// Runs the checks on a commit, in the worktree reserved for landing. `again` is the number of earlier runs. A failure
/// that the target commit `onto` has too is reported as a note and does not count.
pub async fn run(
    ctx: &Arc<EngineContext>,
    request: &LandingRequest,
    (commit, onto, again): (&Commit, &Commit, usize),
    progress: ProgressCallback<'_>,
) -> Result<LandingCheckResult, EngineError> {
    if ctx.settings.checks().is_empty() {
        return Ok(LandingCheckResult::Passed);
    }
    // Each run has its own directory; a restart looks for the supervisor in the first one.
    let directory = &request.directory;
    let path = if again == 0 { directory.clone() } else { directory.join(format!("again-{again}")) };
    let (dir, preparing) = (AttemptDir::new(path), (ctx.clone(), request.clone(), commit.clone()));
    let prepared = {
        let dir = dir.clone();
        attempt::blocking(move || prepare(&preparing.0, &preparing.1, &preparing.2, &dir)).await?
    };
    let Some(launch) = prepared else {
        return Ok(LandingCheckResult::NotRun(checks_not_run("no checks are configured")));
    };
    failpoint::pass("land_checks");
    let running = ctx.keeper.start(&launch, &dir).await;
    let running = running.map_err(|error| EngineError::io("start the checks in", dir.path(), error))?;
    progress(LandingProgress::Stoppable(running.stopper()));
    let ended = running.wait().await;
    Ok(match attempt::read_check_results(&dir, &ended) {
        attempt::CheckRunResult::Stopped => LandingCheckResult::Stopped,
        attempt::CheckRunResult::Failed(failure) => LandingCheckResult::NotRun(failure),
        attempt::CheckRunResult::Ran(ran) => new_failures(ctx, (request, onto), (&dir, &ran), progress).await?,
    })
}

/// The failures of a commit that its target does not have.
async fn new_failures(
    ctx: &Arc<EngineContext>,
    (request, onto): (&LandingRequest, &Commit),
    (dir, ran): (&AttemptDir, &[CheckRun]),
    progress: ProgressCallback<'_>,
) -> Result<LandingCheckResult, EngineError> {
    let timeout = ctx.settings.limits().attempt;
    let terms = (timeout, request.environment.clone());
    let base = match base_checks::run_on_base(ctx, (dir, ran), (onto, terms), progress).await? {
        BaseCheckResult::Ran(base) => base,
        BaseCheckResult::Unknown => Vec::new(),
        BaseCheckResult::Stopped => return Ok(LandingCheckResult::Stopped),
    };
    let sorted = compare_with_base(&ReviewerName::new("checks"), ran, &base);
    if let Some(note) = sorted.note(onto.as_str()) {
        progress(LandingProgress::Note(note));
    }
    Ok(if sorted.new.is_empty() { LandingCheckResult::Passed } else { LandingCheckResult::Failed(sorted.new) })
}

fn prepare(
    ctx: &EngineContext,
    request: &LandingRequest,
    commit: &Commit,
    dir: &AttemptDir,
) -> Result<Option<ProcessLaunch>, EngineError> {
    attempt::make_directory(dir)?;
    let path = ctx.layout.landing_worktree();
    let worktree = ctx.repository.integration_worktree(&path, commit)?;
    worktree.copy_files(ctx.settings.copied_into_worktrees())?;
    let timeout = ctx.settings.limits().attempt;
    attempt::configured_checks_launch(ctx, dir, Path::new(&path), (timeout, request.environment.clone()))
}
