//! A daemon that leaves the agent's session and keeps running.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::step::wait_for;
use super::{AgentFailure, FakeAgentExit, hang as hang_for_ever, step_failed};

/// The first argument that makes the fake agent a daemon.
pub const DAEMON_ARGUMENT: &str = "__daemon";

/// Starts a daemon and waits until its pid is in `pid_file`.
#[expect(clippy::disallowed_methods, reason = "the fake agent's one door for daemons")]
pub fn start(pid_file: &Path, ignores_term: bool) -> Result<(), AgentFailure> {
    let program = std::env::current_exe().map_err(step_failed)?;
    let term_argument = if ignores_term { "deaf" } else { "hears" };
    // It keeps the agent's stdout and stderr, as real daemons do.
    Command::new(program)
        .arg(DAEMON_ARGUMENT)
        .arg(pid_file)
        .arg(term_argument)
        .stdin(Stdio::null())
        .spawn()
        .map_err(step_failed)?;
    wait_for(pid_file)
}

/// The main function of the daemon.
pub fn run_daemon(pid_file: &Path, ignores_term: bool) -> Result<FakeAgentExit, AgentFailure> {
    rustix::process::setsid().map_err(|error| step_failed(error.into()))?;
    if ignores_term {
        ignore_term()?;
    }
    let unfinished = pid_file.with_extension("unfinished");
    fs::write(&unfinished, std::process::id().to_string()).map_err(step_failed)?;
    fs::rename(unfinished, pid_file).map_err(step_failed)?;
    hang_for_ever()
}

/// Ignores SIGTERM from now on.
pub fn ignore_term() -> Result<(), AgentFailure> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(step_failed)?;
    let _inside = runtime.enter();
    // The handler stays installed after the listener is dropped.
    signal(SignalKind::terminate()).map(drop).map_err(step_failed)
}
