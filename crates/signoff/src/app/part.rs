//! The parts of signoff that run as processes of their own: it starts itself with a hidden first argument.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use signoff_engine::agent::acp;
use signoff_engine::{builtin, process};

/// A part, with what it works on.
pub enum Part {
    /// Keeps one agent.
    Keeper(PathBuf),
    /// Sees to it that a program does not outlive us, over the rest of the command line.
    Escort(Vec<OsString>),
    /// Runs the project's checks.
    Checks(PathBuf),
    /// Plays an agent.
    Demo,
    /// Speaks with an agent, over the rest of the command line.
    Acp(Vec<OsString>),
}

/// The part that a command line asks for, if it asks for one.
pub fn of(arguments: &[OsString]) -> Option<Part> {
    let second = || arguments.get(2).map(PathBuf::from);
    match arguments.get(1)?.to_str()? {
        process::KEEP => second().map(Part::Keeper),
        process::ESCORT => Some(Part::Escort(arguments[2..].to_vec())),
        "__checks" => second().map(Part::Checks),
        "__demo" => Some(Part::Demo),
        acp::SPEAK => Some(Part::Acp(arguments[2..].to_vec())),
        _ => None,
    }
}

impl Part {
    pub fn run(self) -> ExitCode {
        match self {
            Self::Keeper(directory) => process::keep(&directory),
            Self::Escort(words) => process::escort(&words),
            Self::Checks(list) => builtin::checks::run(&list),
            Self::Demo => builtin::demo::run(),
            Self::Acp(arguments) => builtin::acp::run(&arguments),
        }
    }
}
