//! Access to the operating system: the clock, the environment, process creation, and the process table with signals that
//! never reach the wrong process.
//!
//! The process table is read from `/proc`. On systems without it nothing is found, and only process groups are ended.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

use super::{ATTEMPT_VARIABLE, SUPERVISOR_SUBCOMMAND};

/// The monotonic clock.
#[expect(clippy::disallowed_methods, reason = "the only place that reads the clock for processes")]
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
#[expect(clippy::disallowed_methods, reason = "the only place that reads the clock for processes")]
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
pub fn pidfd(_: Pid) -> Option<OwnedFd> {
    None
}

/// Makes orphaned descendants our children, on systems that support it.
pub fn become_subreaper() -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}

/// The environment variables of this process, converted to UTF-8.
pub fn variables() -> Vec<(String, String)> {
    let text = |value: OsString| value.to_string_lossy().into_owned();
    std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect()
}

/// A command to be started: a supervisor, or an agent by its supervisor.
#[expect(clippy::disallowed_methods, reason = "the only place that starts supervisors and agents")]
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

/// Identifies a process, even if its number is reused later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProcessIdentity {
    pub pid: i32,
    /// Start time in clock ticks since boot.
    pub start: u64,
}

/// An entry of the process table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessRow {
    pub identity: ProcessIdentity,
    pub parent: i32,
    pub group: i32,
    /// Ended, but not reaped by its parent yet.
    pub is_zombie: bool,
}

impl ProcessIdentity {
    /// The process that has this number now.
    pub fn from_pid(pid: i32) -> Option<Self> {
        read_row(pid).map(|row| row.identity)
    }

    pub fn is_alive(self) -> bool {
        read_row(self.pid).is_some_and(|row| row.identity == self && !row.is_zombie)
    }

    /// Sends a signal to this process, unless its number belongs to another one by now.
    #[cfg(target_os = "linux")]
    pub fn send_signal(self, signal: Signal) {
        use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
        let Some(pid) = Pid::from_raw(self.pid) else { return };
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return };
        // The pidfd refers to one process, so checking the identity afterwards is safe.
        if Self::from_pid(self.pid) == Some(self) {
            // The process may have ended or belong to another user; the caller checks again.
            pidfd_send_signal(handle, signal).ok();
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub fn send_signal(self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.pid).filter(|_| Self::from_pid(self.pid) == Some(self)) {
            rustix::process::kill_process(pid, signal).ok();
        }
    }
}

/// All processes, including zombies.
pub fn read_all() -> Vec<ProcessRow> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| read_row(entry.file_name().to_str()?.parse().ok()?)).collect()
}

fn read_row(pid: i32) -> Option<ProcessRow> {
    parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Parses `/proc/PID/stat`. A process chooses its own name, which may contain spaces and parentheses.
fn parse(pid: i32, stat: &str) -> Option<ProcessRow> {
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    Some(ProcessRow {
        identity: ProcessIdentity { pid, start: fields.get(19)?.parse().ok()? },
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        is_zombie: matches!(*fields.first()?, "Z" | "X"),
    })
}

/// All descendants of `ancestors`, without these.
pub fn descendants(rows: &[ProcessRow], ancestors: impl IntoIterator<Item = i32>) -> Vec<ProcessRow> {
    let mut family: BTreeSet<i32> = ancestors.into_iter().collect();
    let mut found: Vec<ProcessRow> = Vec::new();
    loop {
        let before = found.len();
        for row in rows {
            if family.contains(&row.parent) && family.insert(row.identity.pid) {
                found.push(*row);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// The processes of an attempt.
#[derive(Debug, Default)]
pub struct AttemptProcesses {
    pub rows: Vec<ProcessRow>,
    /// Whether a process could not be read and should be read again.
    pub is_incomplete: bool,
}

/// Finds the processes of the attempt in `directory` by their environment. Also finds a child of its supervisor
/// before its `exec`, which still has its parent's arguments and environment.
pub fn attempt_processes(rows: &[ProcessRow], directory: &Path) -> AttemptProcesses {
    let cookie = [ATTEMPT_VARIABLE.as_bytes(), b"=", directory.as_os_str().as_bytes()].concat();
    let supervisor = [SUPERVISOR_SUBCOMMAND.as_bytes(), directory.as_os_str().as_bytes()];
    let mut members = AttemptProcesses::default();
    for row in rows.iter().filter(|row| !row.is_zombie) {
        let read = |file: &str| fs::read(format!("/proc/{}/{file}", row.identity.pid));
        let (Ok(environment), Ok(arguments)) = (read("environ"), read("cmdline")) else { continue };
        let arguments: Vec<&[u8]> = arguments.split(|&byte| byte == 0).collect();
        let belongs = environment.split(|&byte| byte == 0).any(|entry| entry == cookie)
            || arguments.windows(2).any(|pair| pair == supervisor);
        if belongs {
            members.rows.push(*row);
        }
        // During an `exec` a process has neither environment nor arguments.
        members.is_incomplete |= environment.is_empty() && arguments.concat().is_empty();
    }
    members
}

/// Identifies the current boot of the machine.
pub fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_cannot_forge_other_columns() {
        let stat = "7 (a) Z (b) S 3 5 5 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 1 1";
        let row = parse(7, stat).unwrap();
        assert_eq!(
            row,
            ProcessRow { identity: ProcessIdentity { pid: 7, start: 12345 }, parent: 3, group: 5, is_zombie: false }
        );
    }

    #[test]
    fn descendants_are_found_in_any_order() {
        let row = |pid, parent| ProcessRow {
            identity: ProcessIdentity { pid, start: 1 },
            parent,
            group: 1,
            is_zombie: false,
        };
        let rows = [row(9, 8), row(8, 2), row(2, 1), row(3, 1), row(4, 3)];
        let pids = |ancestor| {
            let mut pids: Vec<i32> = descendants(&rows, [ancestor]).iter().map(|row| row.identity.pid).collect();
            pids.sort_unstable();
            pids
        };
        assert_eq!(pids(2), [8, 9]);
        assert_eq!(pids(1), [2, 3, 4, 8, 9]);
        assert_eq!(pids(9), [0; 0]);
    }

    #[test]
    fn a_cycle_of_parents_terminates() {
        let row = |pid, parent| ProcessRow {
            identity: ProcessIdentity { pid, start: 1 },
            parent,
            group: 1,
            is_zombie: false,
        };
        assert_eq!(descendants(&[row(1, 2), row(2, 1)], [1]).len(), 1);
    }
}
