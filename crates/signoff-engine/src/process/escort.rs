//! The escort process, started as `__escort LENGTH PROGRAM …`.
//!
//! It runs a short program and kills it with its child processes when signoff exits or is killed: the escort's
//! stdin is a pipe that only signoff holds. Processes that the program leaves after its own end are not
//! touched.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, ExitCode, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid};

use super::{process_table, system};

/// The subcommand of the escort.
pub const ESCORT_SUBCOMMAND: &str = "__escort";

/// Exit code if the program does not exist. The escort then prints `NOT_FOUND_MESSAGE`.
pub(super) const EXIT_NOT_FOUND: u8 = 127;
pub(super) const NOT_FOUND_MESSAGE: &str = "signoff did not find the program\n";

/// How long to wait for killed processes.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// Poll interval on systems without pidfd.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Timeout with a pidfd.
const PIDFD_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs the program in `words`. The first word is the number of stdin bytes for it.
pub fn run_escort(arguments: &[OsString]) -> ExitCode {
    let [length, program, arguments @ ..] = arguments else { return ExitCode::FAILURE };
    let length = length.to_str().and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut input = vec![0; length];
    // The parent may die before it has written everything.
    if become_subreaper().is_err() || io::stdin().read_exact(&mut input).is_err() {
        return ExitCode::FAILURE;
    }
    let mut command = system::command(program);
    command.args(arguments).stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
    match command.spawn() {
        Ok(mut child) => {
            // The program may ignore its input.
            child.stdin.take().map(|mut stdin| stdin.write_all(&input));
            wait_for_end(&child)
        }
        Err(error) => report_start_error(&error),
    }
}

/// Makes orphaned descendants our children, on systems that support it.
fn become_subreaper() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(getpid()))?;
    Ok(())
}

fn report_start_error(error: &io::Error) -> ExitCode {
    let missing = error.kind() == io::ErrorKind::NotFound;
    let why = if missing { NOT_FOUND_MESSAGE.to_owned() } else { format!("cannot be started: {error}\n") };
    // If stderr is closed, the message is lost.
    io::stderr().write_all(why.as_bytes()).ok();
    ExitCode::from(if missing { EXIT_NOT_FOUND } else { EXIT_NOT_FOUND - 1 })
}

/// Waits for the end of the program or of signoff.
fn wait_for_end(child: &Child) -> ExitCode {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let handle = pid.and_then(system::pidfd);
    loop {
        if let Some(status) = reap(pid) {
            return exit_like(status);
        }
        if is_parent_gone(handle.as_ref()) {
            kill_descendants();
            return ExitCode::FAILURE;
        }
    }
}

/// The program's exit status, if it has ended. Reaps all other ended processes.
fn reap(pid: Option<Pid>) -> Option<WaitStatus> {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((one, status))) if Some(one) == pid => return Some(status),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) | Err(_) => return None,
        }
    }
}

/// Waits for an event. Returns whether signoff is gone.
fn is_parent_gone(handle: Option<&OwnedFd>) -> bool {
    let stdin = io::stdin();
    let mut fds = vec![PollFd::new(&stdin, PollFlags::IN)];
    fds.extend(handle.map(|handle| PollFd::new(handle, PollFlags::IN)));
    let failed = system::poll_fds(&mut fds, if handle.is_some() { PIDFD_TIMEOUT } else { POLL_INTERVAL }).is_err();
    // Nothing more is sent, so a readable stdin means that it was closed.
    failed || fds.first().is_some_and(|fd| !fd.revents().is_empty())
}

fn kill_descendants() {
    let own = getpid().as_raw_nonzero().get();
    let deadline = system::deadline(system::now(), KILL_TIMEOUT);
    while system::now() < deadline {
        let left = process_table::descendants(&process_table::read_all(), [own]);
        if left.is_empty() {
            break;
        }
        left.iter().for_each(|row| row.identity.send_signal(Signal::KILL));
        reap(None);
        system::pause(POLL_INTERVAL);
    }
    // Without a process table, the group is all that is known, and this process belongs to it.
    #[cfg(not(target_os = "linux"))]
    rustix::process::kill_process_group(getpid(), Signal::KILL).ok();
}

/// Ends with the exit code or signal of the program.
fn exit_like(status: WaitStatus) -> ExitCode {
    if let Some(signal) = status.terminating_signal().and_then(Signal::from_named_raw) {
        rustix::process::kill_process(getpid(), signal).ok();
    }
    let code = status.exit_status().and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}
