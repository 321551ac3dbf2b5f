//! This module's one door to the clock and to starting processes.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Pid;

/// A clock that only goes forward.
#[expect(clippy::disallowed_methods, reason = "the clock's one door for processes")]
pub fn now() -> Instant {
    Instant::now()
}

/// Longer than anybody waits.
const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// A point in time so much later, whatever a person has configured.
pub fn after(start: Instant, time: Duration) -> Instant {
    start + time.min(CENTURY)
}

/// The time of day.
#[expect(clippy::disallowed_methods, reason = "the clock's one door for processes")]
pub fn time_of_day() -> Timestamp {
    Timestamp::now()
}

/// What this process has taken of the processor, in all its threads and without what it started.
pub fn processor_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(used).unwrap_or_default()
}

/// Something to wait for the end of a process with, where the system has that.
#[cfg(target_os = "linux")]
pub fn handle(pid: Pid) -> Option<OwnedFd> {
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
pub fn handle(_: Pid) -> Option<OwnedFd> {
    None
}

/// The variables of this process, as far as they are text.
pub fn variables() -> Vec<(String, String)> {
    let text = |value: OsString| value.to_string_lossy().into_owned();
    std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect()
}

/// A command to be started: a keeper, or by a keeper its agent.
#[expect(clippy::disallowed_methods, reason = "the one door for starting agents")]
pub fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// Waits until one of `fds` has something to say, at most `timeout`.
pub fn wait_for(fds: &mut [PollFd<'_>], timeout: Duration) -> std::io::Result<()> {
    let timeout = Timespec::try_from(timeout).ok();
    match poll(fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Lets `time` pass while others' processes, which cannot be waited for, come to their end.
pub fn pause(time: Duration) {
    // Nothing can be done about a poll that fails; the caller looks again and has a bound.
    wait_for(&mut [], time).ok();
}
