//! Effort: how often and how closely the loops preset reviews.

use serde::{Deserialize, Serialize};

use crate::prompt::Depth;

#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
    strum::EnumString,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Effort {
    Low,
    Medium,
    High,
    Max,
}

impl Effort {
    pub const ALL: [Self; 4] = [Self::Low, Self::Medium, Self::High, Self::Max];

    pub fn as_str(self) -> &'static str {
        self.into()
    }

    pub fn parse(word: &str) -> Option<Self> {
        word.parse().ok()
    }

    /// The number of attempts after which all active loops are reviewed, finished or not.
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
