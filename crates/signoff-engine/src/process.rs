//! Runs agents, watches over them, and ends them without leaving anything behind.
//!
//! Every attempt has a keeper: a small process of its own, the same program started as `__keep DIR`. It starts
//! the agent, keeps what the agent says in files, enforces the limits, ends the agent and whatever that
//! started, and writes down how it ended. The program holds one end of a pipe to it. When the program is
//! gone, however it went, the pipe closes, and the keeper ends the agent. What the keeper cannot see to,
//! because it was itself killed, [`settle()`] and [`end_strays`] find by process number and start time, and by
//! a variable in the environment of everything the agent started.

mod ask;
mod attempt_dir;
pub(crate) mod door;
mod escort;
mod keep;
mod keeper;
mod running;
mod settle;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::confine::Held;

pub use ask::{Answer, AskError, Question, ask};
pub use attempt_dir::AttemptDir;
pub(crate) use attempt_dir::private;
pub use door::processor_time;
pub(crate) use door::variables;
pub use escort::{ESCORT, escort};
pub use keep::keep;
pub use keeper::Keeper;
pub use running::{Lines, Running, Stoppable, Stopper};
pub use settle::{Found, end_strays, settle};
pub use table::Identity;

/// The first argument that makes the program a keeper. The second is the attempt's directory.
pub const KEEP: &str = "__keep";

/// The variable by which everything an agent started is known. Its value is the attempt's directory.
pub const COOKIE: &str = "SIGNOFF_KEEPER";

/// What is to be run, and how long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    pub program: String,
    pub arguments: Vec<String>,
    /// Where it runs.
    pub directory: PathBuf,
    /// What differs from our own environment: set, or removed if `None`. Never written down, because it holds
    /// secrets: the keeper is started with it and passes it on.
    #[serde(skip)]
    pub environment: Vec<(String, Option<String>)>,
    /// What it is held to; none: it may write anywhere.
    pub held: Option<Held>,
    pub limits: Limits,
}

/// How long an agent may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// All in all.
    pub time: Option<Duration>,
    /// Without a byte on stdout or stderr.
    pub silence: Option<Duration>,
    /// Between asking it to end and killing it.
    pub grace: Duration,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    Code(i32),
    Signal(i32),
    TimedOut,
    Silent,
    /// Somebody asked for it.
    Stopped,
    /// The program went away.
    Orphaned,
    /// What it said could not be kept, on a full disk say. It was ended.
    Unkept {
        message: String,
    },
    NotStarted {
        message: String,
        /// There is no such program.
        missing: bool,
    },
}

impl Exit {
    /// Whether nobody's wish and no fault of ours ended it, so that doing it again would be doing it twice.
    pub fn is_its_own(&self) -> bool {
        match self {
            Self::Code(_) | Self::Signal(_) | Self::TimedOut | Self::Silent | Self::NotStarted { .. } => true,
            Self::Stopped | Self::Orphaned | Self::Unkept { .. } => false,
        }
    }
}

/// An attempt that is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub exit: Exit,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    /// By a clock that nobody sets.
    pub duration_ms: u64,
    pub stdout_bytes: u64,
    pub stderr_bytes: u64,
    /// Processes that would have outlived the agent.
    pub strays_ended: u32,
    /// What keeping it took of the processor, without the agent; 0 where nobody can tell.
    #[serde(default)]
    pub keeper_cpu_us: u64,
}
