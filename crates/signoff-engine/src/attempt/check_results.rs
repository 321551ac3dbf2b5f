//! The results of the project's checks: reads what they printed, and makes an event of it.

use std::path::Path;

use signoff_core::checks::{self, Ran};
use signoff_core::ids::ReviewerName;
use signoff_core::machine::{CheckReport, Event, Failure};
use signoff_core::review::name_files;

use super::base_checks;
use super::checks::detected;
use super::conclude::{failed, failure, is_stopped, stdout};
use super::reviewed::roots;
use super::{End, Workshop};
use crate::assignment::Assignment;
use crate::builtin::checks::NotRun;
use crate::detect::Found;
use crate::process::{AttemptDir, Ended};

/// Makes an event of the checks of an attempt. Failures that the base has too become a note.
pub(super) fn check(
    shop: &Workshop,
    task: &Assignment,
    (dir, ended): (&AttemptDir, &Ended),
    notes: &mut Vec<String>,
) -> End {
    let ran = match checked(dir, ended) {
        Checks::Stopped => return End::Stopped,
        Checks::Failed(failure) => return failed(task, failure),
        Checks::Ran(ran) => ran,
    };
    let base = base_checks::known(shop, task.base(), dir).unwrap_or_default();
    let sorted = checks::against_base(&ReviewerName::new("checks"), &ran, &base);
    notes.extend(sorted.note(task.base().as_str()));
    let mut findings = sorted.new;
    name_files(&mut findings, &roots(shop, task).each_ref().map(String::as_str));
    let report = if findings.is_empty() { CheckReport::Passed } else { CheckReport::Failed { findings } };
    End::Event(Box::new(Event::CheckEnded { attempt: task.job.attempt, report }))
}

/// What the project's commands came to.
#[derive(Debug)]
pub enum Checks {
    Stopped,
    Failed(Failure),
    /// How each of them went.
    Ran(Vec<Ran>),
}

/// Reads what the project's commands left.
pub fn checked(dir: &AttemptDir, ended: &Ended) -> Checks {
    if is_stopped(&ended.exit) {
        return Checks::Stopped;
    }
    if let Some(failure) = failure(&ended.exit) {
        return Checks::Failed(failure);
    }
    match ran(&stdout(dir)) {
        Ok(ran) => Checks::Ran(ran),
        Err(failure) => Checks::Failed(failure),
    }
}

/// How the project's commands ended. A command whose end is unknown has not passed.
pub(super) fn ran(text: &[u8]) -> Result<Vec<Ran>, Failure> {
    if let Ok(NotRun { not_run }) = serde_json::from_slice(text) {
        return Err(Failure::NotStarted { message: not_run });
    }
    let bad = |message: String| Failure::BadAnswer { message };
    let ran: Vec<Ran> = serde_json::from_slice(text)
        .map_err(|error| bad(format!("how the checks went cannot be read: {error}")))?;
    if ran.is_empty() { Err(bad("no check was run".to_owned())) } else { Ok(ran) }
}

/// Which checks were run, where the settings name none.
pub(super) fn found_checks(shop: &Workshop, task: &Assignment) -> Option<String> {
    let Found { checks, missing } = detected(Path::new(&task.place.worktree));
    let commands: Vec<String> = checks.into_iter().map(|one| one.command).collect();
    let named = shop.settings.checks().is_empty() && !commands.is_empty();
    let missing: String = missing.iter().map(|one| format!("; {one}")).collect();
    named.then(|| format!("no [checks] are configured; found and run: {}{missing}", commands.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::ran;

    #[test]
    fn checks_of_which_nothing_can_be_told_have_not_passed() {
        let told =
            |text: &str| ran(text.as_bytes()).map_or_else(|failure| failure.to_string(), |_| String::new());
        let whole = r#"[{"name":"test","command":"false","code":1,"output":""}]"#;
        assert_eq!(told(whole), "");
        let no_check = "gave an answer that cannot be used: no check was run";
        assert_eq!(told("[]"), no_check);
        let missing = r#"{"not_run":"`go` is not installed"}"#;
        assert_eq!(told(missing), "could not be started: `go` is not installed");
        let unreadable =
            "gave an answer that cannot be used: how the checks went cannot be read: EOF while parsing";
        for cut in 0..whole.len() {
            assert!(told(&whole[..cut]).starts_with(unreadable), "{cut}");
        }
    }
}
