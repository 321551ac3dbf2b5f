//! Processes that may read everything and write almost nothing: how agents are run where the system allows it.
//!
//! There are two ways, with the same rights: Landlock, which the keeper's own thread gives itself, and bubblewrap, a
//! program that is started in front of the agent.

mod bubblewrap;
mod landlock;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use signoff_core::hold::Hold;

pub use bubblewrap::{PROGRAM as BUBBLEWRAP, command_line};
pub use landlock::within;

/// What a process is held to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    pub by: Hold,
    /// The only paths below which it may write.
    pub writable: Vec<PathBuf>,
    /// The only TCP ports that it may connect to; none: all.
    #[serde(default)]
    pub ports: Option<Vec<u16>>,
}

/// What this system can do about processes that write where they should not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Power {
    pub by: Hold,
    /// The version of Landlock that the kernel has.
    pub landlock: Option<u32>,
    /// Why nobody can hold an agent fully, in words.
    pub lacks: Option<String>,
}

/// From this version on, Landlock also keeps files from being cut short.
const WHOLE: u32 = 3;

impl Power {
    /// Looks what this system can do. A test can insist on one way.
    pub fn probe(wanted: Option<Hold>) -> Self {
        let landlock = landlock::version();
        let by = |by, lacks| Self { by, landlock, lacks };
        match wanted {
            Some(Hold::Nobody) => return by(Hold::Nobody, Some("a test wants it so".to_owned())),
            Some(Hold::Landlock) => return by(Hold::Landlock, None),
            Some(Hold::Bubblewrap) => return by(Hold::Bubblewrap, bubblewrap::trial().err()),
            None => {}
        }
        if landlock.is_some_and(|version| version >= WHOLE) {
            return by(Hold::Landlock, None);
        }
        match (bubblewrap::trial(), landlock) {
            (Ok(()), _) => by(Hold::Bubblewrap, None),
            (Err(why), Some(version)) => {
                let weak = format!(
                    "the kernel's Landlock (version {version}) does not keep files from being cut short, and {why}"
                );
                by(Hold::Landlock, Some(weak))
            }
            (Err(why), None) => by(Hold::Nobody, Some(format!("{}, and {why}", landlock::ABSENT))),
        }
    }

    /// Whether an agent is held to all it should be.
    pub fn is_whole(&self) -> bool {
        self.by != Hold::Nobody && self.lacks.is_none()
    }
}

/// Whether this kernel can hold a process to it.
pub fn is_possible() -> bool {
    landlock::version().is_some()
}
