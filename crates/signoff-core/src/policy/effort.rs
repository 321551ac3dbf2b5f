//! Effort: how often and how closely the loops preset looks.

use serde::{Deserialize, Serialize};

use crate::prompt::Depth;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    Low,
    Medium,
    High,
    Max,
}

impl Effort {
    pub const ALL: [Self; 4] = [Self::Low, Self::Medium, Self::High, Self::Max];

    pub fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Max => "max",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effort| effort.word() == word)
    }

    /// After how many attempts all active loops are reviewed, finished or not.
    pub fn checkpoint_interval(self) -> Option<u32> {
        match self {
            Self::Low => None,
            Self::Medium => Some(5),
            Self::High => Some(3),
            Self::Max => Some(1),
        }
    }

    pub fn max_fixes(self) -> u32 {
        match self {
            Self::Low => 2,
            Self::Medium => 3,
            Self::High => 4,
            Self::Max => 5,
        }
    }

    pub fn depth(self) -> Depth {
        match self {
            Self::Low => Depth::Shallow,
            Self::Medium => Depth::Standard,
            Self::High => Depth::Deep,
            Self::Max => Depth::Comprehensive,
        }
    }
}
