//! Why a commit did not land, in words, with what to type next. Nothing was changed then.

use signoff_core::ids::Commit;

use super::Brought;
use crate::error::EngineError;

/// What was to land, and where.
#[derive(Debug, Clone, Copy)]
pub struct Tried<'a> {
    /// `task 3`, `run 7`.
    pub what: &'a str,
    pub target: &'a str,
    pub commit: &'a Commit,
}

impl Brought {
    /// The commit that brought it in and whether it is new, or why it did not land.
    pub fn landed(&self, tried: Tried<'_>) -> Result<(Commit, bool), EngineError> {
        let Tried { what, target, commit } = tried;
        let (message, hint) = match self {
            Self::In { commit, now } => return Ok((commit.clone(), *now)),
            Self::Conflicting { files, .. } => {
                let files: Vec<String> = files.iter().map(|file| file.path.display().to_string()).collect();
                let by_hand = format!(
                    "nothing was changed. Merge it by hand: `git merge {commit}` on {target}, and resolve what git names"
                );
                (format!("{what} conflicts with {target} in {}", files.join(", ")), by_hand)
            }
            Self::Different { .. } => (
                format!("on top of {target}, {what} changes something else than what was approved"),
                format!(
                    "nothing was changed. `landing = \"merge\"` lands it as it is, or merge {commit} by hand"
                ),
            ),
            Self::Red { findings, .. } => {
                let first = findings.first().map(|finding| format!(": {}", finding.description));
                let first = first.unwrap_or_default();
                (
                    format!("together with {target}, the checks of {what} fail{first}"),
                    format!("nothing was changed. Mend {target} or the work, and type the same again"),
                )
            }
            Self::Unchecked(failure) => (
                format!("the checks of {what} {failure}"),
                "mend [checks] in signoff.toml, or raise limits.attempt".to_owned(),
            ),
            Self::Stopped => (
                format!("{what} has not landed: the checks were stopped"),
                "nothing was changed. Type the same again".to_owned(),
            ),
        };
        Err(EngineError::NotLanded { message, hint })
    }
}
