//! The number of changed files and lines, as reported by git.

use schemars::JsonSchema;
use serde::Serialize;

/// In runs with more tasks than this, the changes of approved tasks are not counted.
pub const MAX_COUNTED_TASKS: usize = 200;

/// The size of a change.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Changes {
    /// The output of `git diff --stat`; null if unknown.
    pub stat: Option<String>,
    pub files: u64,
    pub insertions: u64,
    pub deletions: u64,
    /// Why the changes are unknown, or a remark about them.
    pub note: Option<String>,
}

impl Changes {
    /// Parses the numbers in the last line of the output.
    pub fn parse_stat(stat: &str) -> Self {
        let last = stat.trim_end().lines().last().unwrap_or_default();
        let number = |word: &str| {
            let part = last.split(',').find(|part| part.contains(word));
            part.and_then(|part| part.trim().split(' ').next()?.parse().ok()).unwrap_or(0)
        };
        Self {
            stat: Some(stat.to_owned()),
            files: number(" file"),
            insertions: number("insertion"),
            deletions: number("deletion"),
            note: None,
        }
    }

    /// Unknown changes, with the reason.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self { note: Some(why.into()), ..Self::default() }
    }

    /// The changes of a task in a run with too many tasks to start git for each.
    pub fn uncounted() -> Self {
        Self::unknown(format!("not counted in a run of more than {MAX_COUNTED_TASKS} tasks"))
    }

    pub fn is_uncounted(&self) -> bool {
        *self == Self::uncounted()
    }

    #[must_use]
    pub fn with_note(self, note: impl Into<String>) -> Self {
        Self { note: Some(note.into()), ..self }
    }

    /// `2 files changed, 3 insertions(+)`, or why it is unknown.
    pub fn summary(&self) -> String {
        let last = self.stat.as_deref().map(|stat| stat.trim_end().lines().last().unwrap_or_default().trim());
        match (last, &self.note) {
            (Some(""), _) => "nothing changed".to_owned(),
            (Some(last), _) => last.to_owned(),
            (None, Some(note)) => note.clone(),
            (None, None) => "unknown".to_owned(),
        }
    }
}
