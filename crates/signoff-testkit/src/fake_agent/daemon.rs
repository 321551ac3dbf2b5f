//! A process that leaves its agent's session and stays.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::step::wait_for;
use super::{End, Failure, failed, hang as hang_for_ever};

/// The first argument that makes the fake agent a daemon.
pub const ARGUMENT: &str = "__daemon";

/// Starts a daemon, and waits until its number is in `pid_file`.
#[expect(clippy::disallowed_methods, reason = "the fake agent's one door for daemons")]
pub fn start(pid_file: &Path, ignores_term: bool) -> Result<(), Failure> {
    let program = std::env::current_exe().map_err(failed)?;
    let hearing = if ignores_term { "deaf" } else { "hears" };
    // Stdout and stderr stay those of the agent, as with real daemons.
    Command::new(program)
        .arg(ARGUMENT)
        .arg(pid_file)
        .arg(hearing)
        .stdin(Stdio::null())
        .spawn()
        .map_err(failed)?;
    wait_for(pid_file)
}

/// The daemon's own main.
pub fn hang(pid_file: &Path, deaf: bool) -> Result<End, Failure> {
    rustix::process::setsid().map_err(|error| failed(error.into()))?;
    if deaf {
        ignore_term()?;
    }
    let unfinished = pid_file.with_extension("unfinished");
    fs::write(&unfinished, std::process::id().to_string()).map_err(failed)?;
    fs::rename(unfinished, pid_file).map_err(failed)?;
    hang_for_ever()
}

/// From now on the signal is caught and forgotten.
pub fn ignore_term() -> Result<(), Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(failed)?;
    let _inside = runtime.enter();
    // The handler stays when the listener is gone.
    signal(SignalKind::terminate()).map(drop).map_err(failed)
}
