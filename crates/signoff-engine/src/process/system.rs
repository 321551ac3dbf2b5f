//! Access to the clock, the environment and process creation.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Pid;

/// The monotonic clock.
#[expect(clippy::disallowed_methods, reason = "the clock's one door for processes")]
pub fn now() -> Instant {
    Instant::now()
}

/// Maximum time to wait.
const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// `start` plus `time`, without overflow for any configured value.
pub fn deadline(start: Instant, time: Duration) -> Instant {
    start + time.min(CENTURY)
}

/// The current time.
#[expect(clippy::disallowed_methods, reason = "the clock's one door for processes")]
pub fn timestamp() -> Timestamp {
    Timestamp::now()
}

/// The processor time of this process, over all threads and without child processes.
pub fn processor_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(used).unwrap_or_default()
}

/// A file descriptor for waiting for the end of a process, on systems that support it.
#[cfg(target_os = "linux")]
pub fn pidfd(pid: Pid) -> Option<OwnedFd> {
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
pub fn handle(_: Pid) -> Option<OwnedFd> {
    None
}

/// The environment variables of this process, converted to UTF-8.
pub fn variables() -> Vec<(String, String)> {
    let text = |value: OsString| value.to_string_lossy().into_owned();
    std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect()
}

/// A command to be started: a supervisor, or an agent by its supervisor.
#[expect(clippy::disallowed_methods, reason = "the one door for starting agents")]
pub fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// Waits until one of `fds` is ready, at most `timeout`.
pub fn poll_fds(fds: &mut [PollFd<'_>], timeout: Duration) -> std::io::Result<()> {
    let timeout = Timespec::try_from(timeout).ok();
    match poll(fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Sleeps for `time`, to poll for the end of processes that are not our children.
pub fn pause(time: Duration) {
    // The caller polls again and has a deadline, so an error is ignored.
    poll_fds(&mut [], time).ok();
}
