//! Runs the project's checks on the base commit, so that the work is not blamed for failures that it did not cause.
//!
//! They run only if checks of the work failed, once per base commit and list of checks. Results are cached below
//! `.signoff`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use signoff_core::checks::CheckRun;
use signoff_core::hex::hex;
use signoff_core::ids::Commit;
use signoff_core::machine::JobKind;

use super::checks::{CheckRunResult, CheckTerms, check_list_launch, parse_check_results, read_check_results};
use super::finish::stdout;
use super::{EngineContext, blocking, environment, make_directory};
use crate::atomic_file::{self, WriteMode};
use crate::attempt_spec::AttemptSpec;
use crate::builtin::checks::CheckCommand;
use crate::error::EngineError;
use crate::executor::AttemptSink;
use crate::git::Uncommitted;
use crate::landing::{LandingLock, LandingProgress, ProgressCallback};
use crate::process::{AttemptDir, ProcessExit, ProcessLaunch, ProcessResult};
use crate::remove_tree;

/// Checks to run on a base commit.
pub struct BaseCheckRequest<'a> {
    /// The directory of the attempt or the landing that ran them on its own commit.
    pub dir: &'a AttemptDir,
    pub base: &'a Commit,
    pub terms: CheckTerms,
}

/// The cached results of an attempt's checks on a base commit.
pub fn cached(ctx: &EngineContext, base: &Commit, dir: &AttemptDir) -> Option<Vec<CheckRun>> {
    serde_json::from_slice(&fs::read(cache_path(ctx, base, &read_check_list(dir)?)).ok()?).ok()
}

/// Runs the checks of an attempt on its base if they failed on its head. Returns false if the user stopped them.
pub async fn ensure_base_checks(
    ctx: &Arc<EngineContext>,
    spec: &AttemptSpec,
    dir: &AttemptDir,
    ended: &ProcessResult,
    sink: &AttemptSink,
) -> Result<bool, EngineError> {
    let reads = matches!(spec.job.kind, JobKind::Review { .. } | JobKind::Check);
    if !reads || ended.exit != ProcessExit::Code(0) || read_check_list(dir).is_none() {
        return Ok(true);
    }
    let Ok(ran) = parse_check_results(&stdout(dir)) else { return Ok(true) };
    let progress = |progress: LandingProgress| {
        if let LandingProgress::Stoppable(stopper) = progress {
            sink.stoppable(stopper);
        }
    };
    let gate = spec.gate().and_then(|gate| gate.review_timeout);
    let timeout = gate.unwrap_or(ctx.settings.limits().attempt);
    let terms = CheckTerms { timeout, environment: environment::for_run(spec.run) };
    let request = BaseCheckRequest { dir, base: spec.base(), terms };
    Ok(run_on_base(ctx, request, &ran, &progress).await?.is_some())
}

/// Runs checks on a base commit, or reads the cached results. The results are empty if all of them passed on the own
/// commit, or if they could not be run or did not finish on the base; `None` if the user stopped them.
pub async fn run_on_base(
    ctx: &Arc<EngineContext>,
    request: BaseCheckRequest<'_>,
    ran: &[CheckRun],
    progress: ProgressCallback<'_>,
) -> Result<Option<Vec<CheckRun>>, EngineError> {
    if ran.iter().all(CheckRun::passed) {
        return Ok(Some(Vec::new()));
    }
    if let Some(ran) = cached(ctx, request.base, request.dir) {
        return Ok(Some(ran));
    }
    let lock = ctx.layout.worktree_lock(&ctx.layout.base_worktree());
    let waits = |step: LandingProgress| {
        if let LandingProgress::Stoppable(_) = step {
            progress(step);
        }
    };
    let Some(_turn) = LandingLock::acquire_file(lock, &waits).await? else {
        return Ok(None);
    };
    match cached(ctx, request.base, request.dir) {
        // Another attempt ran them while this one waited for the lock.
        Some(ran) => Ok(Some(ran)),
        None => run_uncached(ctx, request, progress).await,
    }
}

/// Runs the checks in a temporary worktree.
async fn run_uncached(
    ctx: &Arc<EngineContext>,
    BaseCheckRequest { dir, base, terms }: BaseCheckRequest<'_>,
    progress: ProgressCallback<'_>,
) -> Result<Option<Vec<CheckRun>>, EngineError> {
    let Some(list) = read_check_list(dir) else { return Ok(Some(Vec::new())) };
    let own = AttemptDir::new(dir.path().join("base"));
    let preparing = (ctx.clone(), own.clone(), base.clone(), list.clone());
    let launch = blocking(move || prepare(&preparing.0, &preparing.1, &preparing.2, &preparing.3, terms)).await?;
    let running = ctx.keeper.start(&launch, &own).await;
    let running = running.map_err(|error| EngineError::io("start the checks in", own.path(), error))?;
    progress(LandingProgress::Stoppable(running.stopper()));
    let ended = running.wait().await;
    let (ending, at) = (ctx.clone(), cache_path(ctx, base, &list));
    blocking(move || {
        let came = match read_check_results(&own, &ended) {
            CheckRunResult::Stopped => None,
            CheckRunResult::Failed(_) => Some(Vec::new()),
            CheckRunResult::Ran(ran) => {
                write_cache(&at, &ran)?;
                Some(ran)
            }
        };
        // If this fails, the next run reuses the worktree and checks out its own base there.
        ending.repository.remove_worktree(&ending.layout.base_worktree(), Uncommitted::Discard).ok();
        Ok(came)
    })
    .await
}

fn prepare(
    ctx: &EngineContext,
    dir: &AttemptDir,
    base: &Commit,
    list: &[CheckCommand],
    terms: CheckTerms,
) -> Result<ProcessLaunch, EngineError> {
    // A killed process may have left files there.
    remove_tree::remove(dir.path()).ok();
    make_directory(dir)?;
    let path = ctx.layout.base_worktree();
    let worktree = ctx.repository.integration_worktree(&path, base)?;
    worktree.copy_files(ctx.settings.copied_into_worktrees())?;
    check_list_launch(ctx, dir, &path, list, terms)
}

/// The list of checks that ran in an attempt's directory.
fn read_check_list(dir: &AttemptDir) -> Option<Vec<CheckCommand>> {
    serde_json::from_slice(&fs::read(dir.path().join("checks.json")).ok()?).ok()
}

fn cache_path(ctx: &EngineContext, base: &Commit, list: &[CheckCommand]) -> PathBuf {
    let mut digest = Sha256::new();
    for check in list {
        for word in [&check.name, &check.command] {
            digest.update((word.len() as u64).to_le_bytes());
            digest.update(word.as_bytes());
        }
    }
    let digest = hex(&digest.finalize());
    ctx.layout.base_checks().join(format!("{base}-{}.json", digest.get(..16).unwrap_or(&digest)))
}

fn write_cache(path: &Path, ran: &[CheckRun]) -> Result<(), EngineError> {
    let failed = |error| EngineError::io("write", path, error);
    fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).map_err(failed)?;
    let text = serde_json::to_vec(ran).map_err(|error| failed(error.into()))?;
    atomic_file::write(path, &text, WriteMode::Private).map_err(failed)
}
