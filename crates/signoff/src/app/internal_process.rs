//! Internal processes: signoff starts itself again with a hidden first argument.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use signoff_engine::agent::acp;
use signoff_engine::{builtin, process};

/// An internal process with its arguments.
pub enum InternalProcess {
    /// Supervises one agent; the argument is the attempt's directory.
    Supervisor(PathBuf),
    /// Runs the rest of the command line and kills it when signoff ends.
    Escort(Vec<OsString>),
    /// Runs the project's checks.
    Checks(PathBuf),
    /// Acts as the demo's agent.
    Demo,
    /// Runs the rest of the command line as an agent and speaks the Agent Client Protocol with it.
    Acp(Vec<OsString>),
}

/// Returns the internal process that the arguments ask for, if any.
pub fn from_arguments(arguments: &[OsString]) -> Option<InternalProcess> {
    let second = || arguments.get(2).map(PathBuf::from);
    match arguments.get(1)?.to_str()? {
        process::SUPERVISOR_SUBCOMMAND => second().map(InternalProcess::Supervisor),
        process::ESCORT_SUBCOMMAND => Some(InternalProcess::Escort(arguments[2..].to_vec())),
        "__checks" => second().map(InternalProcess::Checks),
        "__demo" => Some(InternalProcess::Demo),
        acp::ACP_SUBCOMMAND => Some(InternalProcess::Acp(arguments[2..].to_vec())),
        _ => None,
    }
}

impl InternalProcess {
    pub fn run(self) -> ExitCode {
        match self {
            Self::Supervisor(directory) => process::run_supervisor(&directory),
            Self::Escort(words) => process::run_escort(&words),
            Self::Checks(list) => builtin::checks::run(&list),
            Self::Demo => builtin::demo::run(),
            Self::Acp(arguments) => builtin::acp::run(&arguments),
        }
    }
}
