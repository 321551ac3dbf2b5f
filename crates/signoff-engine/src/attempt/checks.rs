//! The project's checks, which signoff runs itself under the supervisor: their launch, and their results as an event.
//!
//! If checks of the work failed, they also run on the base commit, so that the work is not blamed for failures that it
//! did not cause: once per base commit and list of checks. Results are cached below `.signoff`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use signoff_core::checks::{self, CheckRun};
use signoff_core::hex::hex;
use signoff_core::ids::{Commit, ReviewerName};
use signoff_core::machine::{AttemptFailure, CheckReport, Event, JobKind};
use signoff_core::policy::TimeSpan;
use signoff_core::review::normalize_files;
use signoff_core::settings::{AssignedReviewer, ReviewWorkspace};

use super::finish::{EndedAttempt, exit_failure, failed_end, is_stopped, stdout};
use super::finish_review::roots;
use super::launch::assemble;
use super::prepare::{FinishContext, StartingAttempt, write_prompt};
use super::sandbox::sandboxed;
use super::{AttemptEnd, EngineContext, StartFailure, blocking, environment, make_directory, reviewer_worktree};
use crate::agent::CommandLine;
use crate::agent::EnvChanges;
use crate::atomic_file::{self, WriteMode};
use crate::attempt_spec::AttemptSpec;
use crate::builtin::checks::{CheckCommand, ChecksNotRun};
use crate::detect::{self, DetectedCheck, DetectedChecks, is_installed};
use crate::error::EngineError;
use crate::executor::AttemptSink;
use crate::git::UncommittedPolicy;
use crate::landing::{LandingLock, LandingProgress, ProgressCallback};
use crate::process::{AttemptDir, ProcessExit, ProcessLaunch, ProcessResult};
use crate::remove_tree;

/// How checks run.
pub struct CheckOptions {
    pub timeout: TimeSpan,
    pub environment: EnvChanges,
}

/// Prepares the checks of a phase: the configured ones, or those detected in the worktree.
pub fn prepare_phase_checks(attempt: StartingAttempt<'_>) -> Result<ProcessLaunch, StartFailure> {
    let StartingAttempt { ctx, spec, dir } = attempt;
    let mut list = check_commands(ctx.settings.checks());
    if list.is_empty() {
        let DetectedChecks { checks, missing } =
            detect::detect_checks(Path::new(&spec.workspace.worktree), is_installed);
        if checks.is_empty() {
            return Err(StartFailure::NothingToCheck { missing });
        }
        list = detected_commands(checks);
    }
    let limit = ctx.settings.limits().attempt;
    let timeout = spec.phase_context().map_or(limit, |phase_context| ctx.settings.check_timeout(phase_context));
    let options = CheckOptions { timeout, environment: environment::check_environment(spec, dir) };
    Ok(check_list_launch(ctx, dir, Path::new(&spec.workspace.worktree), &list, options)?)
}

fn check_commands<'a>(list: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<CheckCommand> {
    list.into_iter()
        .map(|(name, command)| CheckCommand { name: name.to_owned(), command: command.to_owned() })
        .collect()
}

fn detected_commands(list: Vec<DetectedCheck>) -> Vec<CheckCommand> {
    list.into_iter().map(|DetectedCheck { name, command }| CheckCommand { name, command }).collect()
}

/// Prepares the checks of a reviewer: in the loop's worktree, or sandboxed in a copy.
pub fn prepare_reviewer_checks(
    attempt: StartingAttempt<'_>,
    reviewer: &AssignedReviewer,
    commit: &Commit,
) -> Result<ProcessLaunch, StartFailure> {
    let StartingAttempt { ctx, spec, dir } = attempt;
    let list = project_checks(ctx, spec)?;
    if list.is_empty() {
        return Err(StartFailure::new("no checks are configured: name them in [checks] of signoff.toml"));
    }
    let options = CheckOptions { timeout: reviewer.timeout, environment: environment::check_environment(spec, dir) };
    Ok(match reviewer.workspace.unwrap_or(ReviewWorkspace::Shared) {
        ReviewWorkspace::Shared => check_list_launch(ctx, dir, Path::new(&spec.workspace.worktree), &list, options)?,
        ReviewWorkspace::Copy => {
            let (_, copy) = reviewer_worktree::create_copy(ctx, spec, &reviewer.name, commit)?;
            let launch = check_list_launch(ctx, dir, copy.path(), &list, options)?;
            sandboxed(attempt, launch, Some(&copy))?
        }
    })
}

/// The checks of the project: the configured ones, or those detected in the base commit. Files that the work changed
/// have no influence. If the base commit has no checks, those detected when signoff started apply.
fn project_checks(ctx: &EngineContext, spec: &AttemptSpec) -> Result<Vec<CheckCommand>, EngineError> {
    if ctx.settings.checks().is_empty() {
        let found = detect::detect_checks_at(&ctx.repository, &spec.workspace.base, is_installed)?;
        if !found.checks.is_empty() {
            return Ok(detected_commands(found.checks));
        }
    }
    Ok(check_commands(ctx.settings.project_checks()))
}

/// The launch of the configured checks in a directory; `None` if none are configured.
pub fn configured_checks_launch(
    ctx: &EngineContext,
    dir: &AttemptDir,
    directory: &Path,
    options: CheckOptions,
) -> Result<Option<ProcessLaunch>, EngineError> {
    let list = check_commands(ctx.settings.checks());
    if list.is_empty() {
        return Ok(None);
    }
    check_list_launch(ctx, dir, directory, &list, options).map(Some)
}

/// The launch of these checks in a directory.
pub fn check_list_launch(
    ctx: &EngineContext,
    dir: &AttemptDir,
    directory: &Path,
    list: &[CheckCommand],
    CheckOptions { timeout, environment }: CheckOptions,
) -> Result<ProcessLaunch, EngineError> {
    let path = dir.path().join("checks.json");
    let failed = |error| EngineError::io("write", &path, error);
    let text = serde_json::to_vec(list).map_err(|error| failed(error.into()))?;
    fs::write(&path, text).map_err(failed)?;
    write_prompt(ctx, dir, "", &FinishContext::default())?;
    // The work may have changed these commands, so they get no agent keys and no channel addresses.
    let environment = environment::withheld_from_checks(&ctx.settings).into_iter().chain(environment).collect();
    let line = CommandLine {
        program: ctx.program.display().to_string(),
        arguments: vec!["__checks".to_owned(), path.display().to_string()],
        environment,
        ..CommandLine::default()
    };
    Ok(assemble(ctx, directory, line, timeout))
}

/// Turns the check results of an attempt into an event. Failures that the base has too become a note.
pub fn finish_checks(EndedAttempt { ctx, spec, dir, ended }: EndedAttempt<'_>, notes: &mut Vec<String>) -> AttemptEnd {
    let ran = match read_check_results(dir, ended) {
        CheckRunResult::Stopped => return AttemptEnd::Stopped,
        CheckRunResult::Failed(failure) => return failed_end(spec, failure),
        CheckRunResult::Ran(ran) => ran,
    };
    let base = cached_base_checks(ctx, spec.base(), dir).unwrap_or_default();
    let sorted = checks::compare_with_base(&ReviewerName::new("checks"), &ran, &base);
    notes.extend(sorted.note(spec.base().as_str()));
    let mut findings = sorted.new;
    normalize_files(&mut findings, &roots(ctx, spec).each_ref().map(String::as_str));
    let report = if findings.is_empty() { CheckReport::Passed } else { CheckReport::Failed { findings } };
    AttemptEnd::event(Event::CheckEnded { attempt: spec.job.attempt, report })
}

/// The outcome of running the project's checks.
#[derive(Debug)]
pub enum CheckRunResult {
    Stopped,
    Failed(AttemptFailure),
    /// The result of each check.
    Ran(Vec<CheckRun>),
}

/// Reads the results of the project's checks.
pub fn read_check_results(dir: &AttemptDir, ended: &ProcessResult) -> CheckRunResult {
    if is_stopped(&ended.exit) {
        return CheckRunResult::Stopped;
    }
    if let Some(failure) = exit_failure(&ended.exit) {
        return CheckRunResult::Failed(failure);
    }
    match parse_check_results(&stdout(dir)) {
        Ok(ran) => CheckRunResult::Ran(ran),
        Err(failure) => CheckRunResult::Failed(failure),
    }
}

/// Parses the results of the checks. Unknown results are a failure.
pub fn parse_check_results(text: &[u8]) -> Result<Vec<CheckRun>, AttemptFailure> {
    if let Ok(ChecksNotRun { not_run }) = serde_json::from_slice(text) {
        return Err(AttemptFailure::NotStarted { message: not_run });
    }
    let bad = |message: String| AttemptFailure::BadAnswer { message };
    let ran: Vec<CheckRun> =
        serde_json::from_slice(text).map_err(|error| bad(format!("could not parse the check results: {error}")))?;
    if ran.is_empty() { Err(bad("no check was run".to_owned())) } else { Ok(ran) }
}

/// A note with the detected checks, if none are configured.
pub fn detected_checks_note(ctx: &EngineContext, spec: &AttemptSpec) -> Option<String> {
    let DetectedChecks { checks, missing } = detect::detect_checks(Path::new(&spec.workspace.worktree), is_installed);
    let commands: Vec<String> = checks.into_iter().map(|one| one.command).collect();
    let named = ctx.settings.checks().is_empty() && !commands.is_empty();
    let missing: String = missing.iter().map(|one| format!("; {one}")).collect();
    named.then(|| format!("no [checks] are configured; found and run: {}{missing}", commands.join(", ")))
}

/// Checks to run on a base commit.
pub struct BaseCheckRequest<'a> {
    /// The directory of the attempt or the landing that ran them on its own commit.
    pub dir: &'a AttemptDir,
    pub base: &'a Commit,
    pub options: CheckOptions,
}

/// The cached results of an attempt's checks on a base commit.
pub fn cached_base_checks(ctx: &EngineContext, base: &Commit, dir: &AttemptDir) -> Option<Vec<CheckRun>> {
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
    let options = CheckOptions { timeout, environment: environment::run_environment(spec.run) };
    let request = BaseCheckRequest { dir, base: spec.base(), options };
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
    if let Some(ran) = cached_base_checks(ctx, request.base, request.dir) {
        return Ok(Some(ran));
    }
    let lock = ctx.layout.worktree_lock(&ctx.layout.base_worktree());
    let waits = |step: LandingProgress| {
        if let LandingProgress::Stoppable(_) = step {
            progress(step);
        }
    };
    let Some(_lock) = LandingLock::acquire_file(lock, &waits).await? else {
        return Ok(None);
    };
    match cached_base_checks(ctx, request.base, request.dir) {
        // Another attempt ran them while this one waited for the lock.
        Some(ran) => Ok(Some(ran)),
        None => run_uncached(ctx, request, progress).await,
    }
}

/// Runs the checks in a temporary worktree.
async fn run_uncached(
    ctx: &Arc<EngineContext>,
    BaseCheckRequest { dir, base, options }: BaseCheckRequest<'_>,
    progress: ProgressCallback<'_>,
) -> Result<Option<Vec<CheckRun>>, EngineError> {
    let Some(list) = read_check_list(dir) else { return Ok(Some(Vec::new())) };
    let own = AttemptDir::new(dir.path().join("base"));
    let preparing = (ctx.clone(), own.clone(), base.clone(), list.clone());
    let launch =
        blocking(move || prepare_on_base(&preparing.0, &preparing.1, &preparing.2, &preparing.3, options)).await?;
    let running = ctx.launcher.start(&launch, &own).await;
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
        ending.repository.remove_worktree(&ending.layout.base_worktree(), UncommittedPolicy::Discard).ok();
        Ok(came)
    })
    .await
}

fn prepare_on_base(
    ctx: &EngineContext,
    dir: &AttemptDir,
    base: &Commit,
    list: &[CheckCommand],
    options: CheckOptions,
) -> Result<ProcessLaunch, EngineError> {
    // A killed process may have left files there.
    remove_tree::remove(dir.path()).ok();
    make_directory(dir)?;
    let path = ctx.layout.base_worktree();
    let worktree = ctx.repository.integration_worktree(&path, base)?;
    worktree.copy_files(ctx.settings.copied_into_worktrees())?;
    check_list_launch(ctx, dir, &path, list, options)
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
    atomic_file::write_json(path, &ran, WriteMode::Private).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::parse_check_results;

    #[test]
    fn unreadable_check_results_are_a_failure() {
        let error_of = |text: &str| {
            parse_check_results(text.as_bytes()).map_or_else(|failure| failure.to_string(), |_| String::new())
        };
        let full = r#"[{"name":"test","command":"false","code":1,"output":""}]"#;
        assert_eq!(error_of(full), "");
        let no_check = "gave an answer that cannot be used: no check was run";
        assert_eq!(error_of("[]"), no_check);
        let missing = r#"{"not_run":"`go` is not installed"}"#;
        assert_eq!(error_of(missing), "could not be started: `go` is not installed");
        let unreadable = "gave an answer that cannot be used: could not parse the check results: EOF while parsing";
        for cut in 0..full.len() {
            assert!(error_of(&full[..cut]).starts_with(unreadable), "{cut}");
        }
    }
}
