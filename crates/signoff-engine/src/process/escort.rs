//! The escort: what runs when the program is started as `__escort LENGTH PROGRAM …`.
//!
//! It runs somebody else's short program, and ends it with all that it started when our own is gone, however that went:
//! its stdin is a pipe that only we hold. What the program left behind when it ended by itself is its own business.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, ExitCode, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid};

use super::{door, table};

/// The first argument that makes the program an escort.
pub const ESCORT: &str = "__escort";

/// It ends so where there is no such program, and says [`MISSING`].
pub(super) const NOT_THERE: u8 = 127;
pub(super) const MISSING: &str = "signoff found no such program\n";

/// How long those that are killed may take to be gone.
const GIVE_UP: Duration = Duration::from_secs(2);

/// How often is looked where nobody tells.
const SOON: Duration = Duration::from_millis(10);
const LATER: Duration = Duration::from_secs(60);

/// Runs the program in `words`, behind how many bytes of our stdin are meant for it.
pub fn escort(words: &[OsString]) -> ExitCode {
    let [length, program, arguments @ ..] = words else { return ExitCode::FAILURE };
    let length = length.to_str().and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut input = vec![0; length];
    // Whoever started us may be gone before it said all.
    if become_the_ancestor().is_err() || io::stdin().read_exact(&mut input).is_err() {
        return ExitCode::FAILURE;
    }
    let mut command = door::command(program);
    command.args(arguments).stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
    match command.spawn() {
        Ok(mut child) => {
            // Who does not want to read it may leave it.
            child.stdin.take().map(|mut stdin| stdin.write_all(&input));
            see_through(&child)
        }
        Err(error) => not_started(&error),
    }
}

/// What it starts and leaves behind becomes ours, where the system knows that.
fn become_the_ancestor() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(getpid()))?;
    Ok(())
}

fn not_started(error: &io::Error) -> ExitCode {
    let missing = error.kind() == io::ErrorKind::NotFound;
    let why = if missing { MISSING.to_owned() } else { format!("cannot be started: {error}\n") };
    // Nobody there to read it is nobody to tell.
    io::stderr().write_all(why.as_bytes()).ok();
    ExitCode::from(if missing { NOT_THERE } else { NOT_THERE - 1 })
}

/// Waits for the end of the program, or of ours.
fn see_through(child: &Child) -> ExitCode {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let handle = pid.and_then(door::handle);
    loop {
        if let Some(status) = ended(pid) {
            return as_it_ended(status);
        }
        if is_alone(handle.as_ref()) {
            end_all();
            return ExitCode::FAILURE;
        }
    }
}

/// How the program ended, if it did. Whatever else ended is buried.
fn ended(pid: Option<Pid>) -> Option<WaitStatus> {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((one, status))) if Some(one) == pid => return Some(status),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) | Err(_) => return None,
        }
    }
}

/// Waits for news. Whether our own program is gone.
fn is_alone(handle: Option<&OwnedFd>) -> bool {
    let stdin = io::stdin();
    let mut fds = vec![PollFd::new(&stdin, PollFlags::IN)];
    fds.extend(handle.map(|handle| PollFd::new(handle, PollFlags::IN)));
    let failed = door::wait_for(&mut fds, if handle.is_some() { LATER } else { SOON }).is_err();
    // Nothing more is ever said: what can be read is the end.
    failed || fds.first().is_some_and(|fd| !fd.revents().is_empty())
}

fn end_all() {
    let own = getpid().as_raw_nonzero().get();
    let deadline = door::after(door::now(), GIVE_UP);
    while door::now() < deadline {
        let left = table::descendants(&table::rows(), [own]);
        if left.is_empty() {
            break;
        }
        left.iter().for_each(|row| row.identity.send(Signal::KILL));
        ended(None);
        door::pause(SOON);
    }
    // Where there is no table, the group is all that is known, and this process is one of it.
    #[cfg(not(target_os = "linux"))]
    rustix::process::kill_process_group(getpid(), Signal::KILL).ok();
}

/// Ends as the program did.
fn as_it_ended(status: WaitStatus) -> ExitCode {
    if let Some(signal) = status.terminating_signal().and_then(Signal::from_named_raw) {
        rustix::process::kill_process(getpid(), signal).ok();
    }
    let code = status.exit_status().and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}
