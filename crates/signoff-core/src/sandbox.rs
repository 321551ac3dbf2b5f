//! The sandbox that restricts what an agent may write.

use serde::{Deserialize, Serialize};

/// The sandbox an attempt runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum SandboxBackend {
    /// No sandbox: changes outside the allowed paths are detected and undone afterwards.
    #[serde(rename = "nobody")]
    #[strum(serialize = "nobody")]
    None,
    Bubblewrap,
    Landlock,
}
