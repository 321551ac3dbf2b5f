//! See ARCHITECTURE.md.

use serde::{Deserialize, Serialize};

/// How deep a reviewer is asked to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Depth {
    Shallow,
    #[default]
    Standard,
    Deep,
    Comprehensive,
}
