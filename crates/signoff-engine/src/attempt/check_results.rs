//! Reads the results of the project's checks and turns them into an event.

use std::path::Path;

use signoff_core::checks::{self, CheckRun};
use signoff_core::ids::ReviewerName;
use signoff_core::machine::{AttemptFailure, CheckReport, Event};
use signoff_core::review::normalize_files;

use super::base_checks;
use super::checks::detect_checks;
use super::finish::{EndedAttempt, exit_failure, failed_end, is_stopped, stdout};
use super::finish_review::roots;
use super::{AttemptEnd, EngineContext};
use crate::attempt_spec::AttemptSpec;
use crate::builtin::checks::ChecksNotRun;
use crate::detect::DetectedChecks;
use crate::process::{AttemptDir, ProcessResult};

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
    AttemptEnd::Event(Box::new(Event::CheckEnded { attempt: spec.job.attempt, report }))
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
