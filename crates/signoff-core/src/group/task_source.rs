//! The source of tasks for a run with slots.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskSource {
    /// The queue in the store.
    #[default]
    Queue,
    /// A tracker with its own program, by name.
    Program { name: String },
    /// A tracker's file, which is read-only.
    File { path: String },
}

impl TaskSource {
    /// Whether tasks are claimed and closed at the source.
    pub fn closes_tasks(&self) -> bool {
        match self {
            Self::Program { .. } => true,
            Self::Queue | Self::File { .. } => false,
        }
    }

    /// Whether the tasks come from a tracker.
    pub fn is_tracker(&self) -> bool {
        match self {
            Self::Program { .. } | Self::File { .. } => true,
            Self::Queue => false,
        }
    }
}
