//! Where a run with slots takes its tasks from.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Supply {
    /// The queue in the store.
    #[default]
    Queue,
    /// A tracker with a program of its own, by name.
    Program { name: String },
    /// A tracker's file, which is only read.
    File { path: String },
}

impl Supply {
    /// Whether tasks are claimed and closed there.
    pub fn is_told(&self) -> bool {
        match self {
            Self::Program { .. } => true,
            Self::Queue | Self::File { .. } => false,
        }
    }

    /// Whether the tasks are a tracker's.
    pub fn is_tracker(&self) -> bool {
        match self {
            Self::Program { .. } | Self::File { .. } => true,
            Self::Queue => false,
        }
    }
}
