//! What was changed, as git counts it; or why that cannot be told.

use schemars::JsonSchema;
use serde::Serialize;

/// In a run of more tasks than this, what was signed off is not counted.
pub const COUNTED: usize = 200;

/// How much was changed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Changes {
    /// What `git diff --stat` prints; null where it cannot be told.
    pub stat: Option<String>,
    pub files: u64,
    pub insertions: u64,
    pub deletions: u64,
    /// Why it cannot be told, or what else there is to know of it.
    pub note: Option<String>,
}

impl Changes {
    /// Reads the numbers of the last line.
    pub fn of(stat: &str) -> Self {
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

    /// There is nothing to count, for this reason.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self { note: Some(why.into()), ..Self::default() }
    }

    /// Of a task among so many that each would take a git of its own.
    pub fn uncounted() -> Self {
        Self::unknown(format!("not counted in a run of more than {COUNTED} tasks"))
    }

    pub fn is_uncounted(&self) -> bool {
        *self == Self::uncounted()
    }

    #[must_use]
    pub fn noting(self, note: impl Into<String>) -> Self {
        Self { note: Some(note.into()), ..self }
    }

    /// `2 files changed, 3 insertions(+)`, or why nobody knows.
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
