//! Describes why a commit did not land, with the next command to run.

use signoff_core::ids::Commit;

use super::LandingResult;
use crate::error::EngineError;

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
                let first = findings.first().map(|finding| format!(": {}", finding.description));
                let first = first.unwrap_or_default();
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
