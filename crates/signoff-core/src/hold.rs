//! Who holds an agent to what it may write.

use serde::{Deserialize, Serialize};

/// Who holds an agent to what it may do, besides itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// Nobody: what it does is found and undone.
    Nobody,
    Bubblewrap,
    Landlock,
}

impl Hold {
    /// As it stands in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Nobody => "nobody",
            Self::Bubblewrap => "bubblewrap",
            Self::Landlock => "landlock",
        }
    }
}
