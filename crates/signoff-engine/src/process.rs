//! Runs agents under a supervisor, and leaves no process behind.
//!
//! Every attempt has a supervisor: a small process of its own, the same program started as `__keep DIR`. It
//! starts the agent, saves its output to files, enforces the limits, ends the agent and its child processes,
//! and writes the result. The main program holds one end of a pipe to it. When the main program exits or is
//! killed, the pipe closes, and the supervisor ends the agent. If the supervisor itself is killed,
//! `recover_attempt` and `kill_orphans` find its processes by process id and start time, and by an environment
//! variable that all of them inherit.

mod attempt_dir;
mod crash_cleanup;
mod running;
mod short_command;
mod supervisor;
pub(crate) mod system;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::agent::EnvChanges;
use crate::sandbox::SandboxPolicy;

pub use attempt_dir::AttemptDir;
pub(crate) use attempt_dir::{create_private_dir, file_len, open_private};
pub use crash_cleanup::{kill_orphans, recover_attempt};
pub use running::SupervisorLauncher;
pub use running::{OutputLines, RunningAttempt, StopHandle, StopRequest};
pub use short_command::{CommandError, CommandOutput, ShortCommand, run_command};
pub use short_command::{REAPER_SUBCOMMAND, run_reaper};
pub use supervisor::run_supervisor;
pub(crate) use system::variables;
pub use system::{ProcessIdentity, processor_time};

/// The subcommand of the supervisor. Its argument is the attempt's directory.
pub const SUPERVISOR_SUBCOMMAND: &str = "__keep";

/// Environment variable of every process of an attempt. Its value is the attempt's directory.
pub const ATTEMPT_VARIABLE: &str = "SIGNOFF_KEEPER";

/// A program to run, with its limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessLaunch {
    pub program: String,
    pub arguments: Vec<String>,
    /// Working directory.
    pub directory: PathBuf,
    /// Differences to our own environment: a value to set, or `None` to remove the variable. Never written to
    /// disk, because it contains secrets: the supervisor gets it as its own environment and passes it on.
    #[serde(skip)]
    pub environment: EnvChanges,
    /// Write restrictions. `None` if it may write anywhere.
    #[serde(rename = "held")]
    pub sandbox: Option<SandboxPolicy>,
    pub limits: ProcessLimits,
}

/// Time limits of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessLimits {
    /// Total time.
    pub time: Option<Duration>,
    /// Time without output on stdout or stderr.
    pub silence: Option<Duration>,
    /// Time between asking it to end and killing it.
    pub grace: Duration,
}

/// How an attempt's process ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessExit {
    /// It exited with this code.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// It exceeded its total time.
    TimedOut,
    /// It printed nothing for too long.
    Silent,
    /// Stopped on request.
    Stopped,
    /// The main program is gone.
    Orphaned,
    /// Its output could not be saved, for example on a full disk, and it was ended.
    #[serde(rename = "unkept")]
    OutputLost { message: String },
    /// It could not be started. `missing` says that the program does not exist.
    NotStarted { message: String, missing: bool },
}

impl ProcessExit {
    fn not_started(message: String) -> Self {
        Self::NotStarted { message, missing: false }
    }

    /// Whether the agent itself or its limits ended it, so that the attempt must not be repeated.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Code(_) | Self::Signal(_) | Self::TimedOut | Self::Silent | Self::NotStarted { .. } => true,
            Self::Stopped | Self::Orphaned | Self::OutputLost { .. } => false,
        }
    }
}

/// The result of an attempt's process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessResult {
    pub exit: ProcessExit,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    /// Measured by a monotonic clock.
    pub duration_ms: u64,
    pub stdout_bytes: u64,
    pub stderr_bytes: u64,
    /// Number of processes that would have outlived the agent; for diagnosis in `result.json`.
    pub strays_ended: u32,
    /// Processor time of the supervisor, without the agent. 0 if unknown.
    #[serde(rename = "keeper_cpu_us")]
    #[serde(default)]
    pub supervisor_cpu_us: u64,
}

impl ProcessResult {
    /// The result of a process that ends now, without output.
    fn new(exit: ProcessExit, started_at: Timestamp, started: Instant) -> Self {
        Self {
            exit,
            started_at,
            ended_at: system::timestamp(),
            duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            stdout_bytes: 0,
            stderr_bytes: 0,
            strays_ended: 0,
            supervisor_cpu_us: 0,
        }
    }
}
