//! The project's checks, which signoff runs itself under the supervisor: their launch, and their results as an event.

use std::fs;
use std::path::Path;

use signoff_core::checks::{self, CheckRun};
use signoff_core::ids::{Commit, ReviewerName};
use signoff_core::machine::{AttemptFailure, CheckReport, Event};
use signoff_core::policy::TimeSpan;
use signoff_core::review::normalize_files;
use signoff_core::settings::{AssignedReviewer, ReviewWorkspace};

use super::environment;
use super::finish::{EndedAttempt, exit_failure, failed_end, is_stopped, stdout};
use super::finish_review::roots;
use super::launch::assemble;
use super::prepare::{Memo, StartingAttempt, write_prompt};
use super::sandbox::sandboxed;
use super::{AttemptEnd, EngineContext, StartFailure, base_checks, reviewer_worktree};
use crate::agent::CommandLine;
use crate::attempt_spec::AttemptSpec;
use crate::builtin::checks::{CheckCommand, ChecksNotRun};
use crate::detect::{self, DetectedCheck, DetectedChecks};
use crate::error::EngineError;
use crate::process::{AttemptDir, ProcessLaunch, ProcessResult};

/// How checks run.
pub struct CheckTerms {
    pub timeout: TimeSpan,
    pub environment: Vec<(String, Option<String>)>,
}

/// Prepares the checks of a phase: the configured ones, or those detected in the worktree.
pub fn prepare_phase_checks(attempt: StartingAttempt<'_>) -> Result<ProcessLaunch, StartFailure> {
    let StartingAttempt { ctx, spec, dir } = attempt;
    let mut list = check_commands(ctx.settings.checks());
    if list.is_empty() {
        let DetectedChecks { checks, missing } = detect_checks(Path::new(&spec.workspace.worktree));
        if checks.is_empty() {
            return Err(StartFailure::NothingToCheck { missing });
        }
        list = detected_commands(checks);
    }
    let limit = ctx.settings.limits().attempt;
    let timeout = spec.job_place().map_or(limit, |place| ctx.settings.check_timeout(place));
    let terms = CheckTerms { timeout, environment: environment::for_checks(spec, dir) };
    Ok(check_list_launch(ctx, dir, Path::new(&spec.workspace.worktree), &list, terms)?)
}

fn check_commands<'a>(list: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<CheckCommand> {
    list.into_iter()
        .map(|(name, command)| CheckCommand { name: name.to_owned(), command: command.to_owned() })
        .collect()
}

fn detected_commands(list: Vec<DetectedCheck>) -> Vec<CheckCommand> {
    list.into_iter().map(|DetectedCheck { name, command }| CheckCommand { name, command }).collect()
}

/// Detects the checks of a worktree.
pub fn detect_checks(worktree: &Path) -> DetectedChecks {
    detect::detect_checks(worktree, detect::is_installed)
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
    let terms = CheckTerms { timeout: reviewer.timeout, environment: environment::for_checks(spec, dir) };
    Ok(match reviewer.workspace.unwrap_or(ReviewWorkspace::Shared) {
        ReviewWorkspace::Shared => check_list_launch(ctx, dir, Path::new(&spec.workspace.worktree), &list, terms)?,
        ReviewWorkspace::Copy => {
            let (_, copy) = reviewer_worktree::make(ctx, spec, &reviewer.name, commit)?;
            let launch = check_list_launch(ctx, dir, copy.path(), &list, terms)?;
            sandboxed(attempt, launch, Some(&copy))?
        }
    })
}

/// The checks of the project: the configured ones, or those detected in the base commit. Files that the work changed
/// have no influence. If the base commit has no checks, those detected when signoff started apply.
fn project_checks(ctx: &EngineContext, spec: &AttemptSpec) -> Result<Vec<CheckCommand>, EngineError> {
    if ctx.settings.checks().is_empty() {
        let found = detect::detect_checks_at(&ctx.repository, &spec.workspace.base, detect::is_installed)?;
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
    terms: CheckTerms,
) -> Result<Option<ProcessLaunch>, EngineError> {
    let list = check_commands(ctx.settings.checks());
    if list.is_empty() {
        return Ok(None);
    }
    check_list_launch(ctx, dir, directory, &list, terms).map(Some)
}

/// The launch of these checks in a directory.
pub fn check_list_launch(
    ctx: &EngineContext,
    dir: &AttemptDir,
    directory: &Path,
    list: &[CheckCommand],
    CheckTerms { timeout, environment }: CheckTerms,
) -> Result<ProcessLaunch, EngineError> {
    let path = dir.path().join("checks.json");
    let failed = |error| EngineError::io("write", &path, error);
    let text = serde_json::to_vec(list).map_err(|error| failed(error.into()))?;
    fs::write(&path, text).map_err(failed)?;
    write_prompt(ctx, dir, "", &Memo::default())?;
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
pub(super) fn finish_checks(
    EndedAttempt { ctx, spec, dir, ended }: EndedAttempt<'_>,
    notes: &mut Vec<String>,
) -> AttemptEnd {
    let ran = match read_check_results(dir, ended) {
        CheckRunResult::Stopped => return AttemptEnd::Stopped,
        CheckRunResult::Failed(failure) => return failed_end(spec, failure),
        CheckRunResult::Ran(ran) => ran,
    };
    let base = base_checks::cached(ctx, spec.base(), dir).unwrap_or_default();
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
pub(super) fn parse_check_results(text: &[u8]) -> Result<Vec<CheckRun>, AttemptFailure> {
    if let Ok(ChecksNotRun { not_run }) = serde_json::from_slice(text) {
        return Err(AttemptFailure::NotStarted { message: not_run });
    }
    let bad = |message: String| AttemptFailure::BadAnswer { message };
    let ran: Vec<CheckRun> =
        serde_json::from_slice(text).map_err(|error| bad(format!("could not parse the check results: {error}")))?;
    if ran.is_empty() { Err(bad("no check was run".to_owned())) } else { Ok(ran) }
}

/// A note with the detected checks, if none are configured.
pub(super) fn detected_checks_note(ctx: &EngineContext, spec: &AttemptSpec) -> Option<String> {
    let DetectedChecks { checks, missing } = detect_checks(Path::new(&spec.workspace.worktree));
    let commands: Vec<String> = checks.into_iter().map(|one| one.command).collect();
    let named = ctx.settings.checks().is_empty() && !commands.is_empty();
    let missing: String = missing.iter().map(|one| format!("; {one}")).collect();
    named.then(|| format!("no [checks] are configured; found and run: {}{missing}", commands.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::parse_check_results;

    #[test]
    fn unreadable_check_results_are_a_failure() {
        let error_of = |text: &str| {
            parse_check_results(text.as_bytes()).map_or_else(|failure| failure.to_string(), |_| String::new())
        };
        let whole = r#"[{"name":"test","command":"false","code":1,"output":""}]"#;
        assert_eq!(error_of(whole), "");
        let no_check = "gave an answer that cannot be used: no check was run";
        assert_eq!(error_of("[]"), no_check);
        let missing = r#"{"not_run":"`go` is not installed"}"#;
        assert_eq!(error_of(missing), "could not be started: `go` is not installed");
        let unreadable = "gave an answer that cannot be used: could not parse the check results: EOF while parsing";
        for cut in 0..whole.len() {
            assert!(error_of(&whole[..cut]).starts_with(unreadable), "{cut}");
        }
    }
}
