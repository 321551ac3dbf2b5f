//! Sandboxes for agents on Linux: they may read everything and write only to given paths.
//!
//! There are two backends with the same rights: Landlock, which restricts the supervisor's own thread, and
//! bubblewrap, a program that starts the agent.

mod bubblewrap;
mod landlock;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use signoff_core::sandbox::SandboxBackend;

pub use bubblewrap::{PROGRAM as BUBBLEWRAP, command_line};
pub use landlock::run_restricted;

/// The restrictions of a sandboxed process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxPolicy {
    #[serde(rename = "by")]
    pub backend: SandboxBackend,
    /// The only paths below which it may write.
    pub writable: Vec<PathBuf>,
    /// The only TCP ports it may connect to. `None` allows all.
    #[serde(default)]
    pub ports: Option<Vec<u16>>,
}

/// The sandbox support of this system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxSupport {
    pub backend: SandboxBackend,
    /// The kernel's Landlock version.
    pub landlock: Option<u32>,
    /// Why the sandbox is missing or incomplete.
    pub missing: Option<String>,
}

/// The first Landlock version that also prevents truncating files.
const MIN_FULL_LANDLOCK: u32 = 3;

impl SandboxSupport {
    /// Probes this system. `wanted` forces one backend, for tests.
    pub fn probe(forced: Option<SandboxBackend>) -> Self {
        let landlock = landlock::version();
        let support = |by, lacks| Self { backend: by, landlock, missing: lacks };
        match forced {
            Some(SandboxBackend::None) => {
                return support(SandboxBackend::None, Some("a test wants it so".to_owned()));
            }
            Some(SandboxBackend::Landlock) => return support(SandboxBackend::Landlock, None),
            Some(SandboxBackend::Bubblewrap) => {
                return support(SandboxBackend::Bubblewrap, bubblewrap::check().err());
            }
            None => {}
        }
        if landlock.is_some_and(|version| version >= MIN_FULL_LANDLOCK) {
            return support(SandboxBackend::Landlock, None);
        }
        match (bubblewrap::check(), landlock) {
            (Ok(()), _) => support(SandboxBackend::Bubblewrap, None),
            (Err(why), Some(version)) => {
                let weak = format!(
                    "the kernel's Landlock (version {version}) does not keep files from being cut short, and {why}"
                );
                support(SandboxBackend::Landlock, Some(weak))
            }
            (Err(why), None) => support(SandboxBackend::None, Some(format!("{}, and {why}", landlock::ABSENT))),
        }
    }

    /// Whether an agent can be fully sandboxed.
    pub fn is_complete(&self) -> bool {
        self.backend != SandboxBackend::None && self.missing.is_none()
    }
}

/// Whether this kernel supports Landlock.
pub fn has_landlock() -> bool {
    landlock::version().is_some()
}
