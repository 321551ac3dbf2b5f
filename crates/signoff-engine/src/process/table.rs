//! The machine's table of processes: who descends from whom, and signals that never hit the wrong one.
//!
//! Read from `/proc`. Where there is none, nothing is found, and only process groups are ended.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

use super::{COOKIE, KEEP};

/// A process that cannot be mistaken for a later one with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Identity {
    pub pid: i32,
    /// When it started, in ticks since boot.
    pub start: u64,
}

/// A process as the table has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub identity: Identity,
    pub parent: i32,
    pub group: i32,
    /// Over, and waiting to be noticed by its parent.
    pub zombie: bool,
}

impl Identity {
    /// The process that has this number now.
    pub fn of(pid: i32) -> Option<Self> {
        row(pid).map(|row| row.identity)
    }

    pub fn lives(self) -> bool {
        row(self.pid).is_some_and(|row| row.identity == self && !row.zombie)
    }

    /// Sends a signal to this very process; to nobody if its number has gone to another.
    #[cfg(target_os = "linux")]
    pub fn send(self, signal: Signal) {
        use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
        let Some(pid) = Pid::from_raw(self.pid) else { return };
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return };
        // The handle stays with the process it was opened for: looking now is looking in time.
        if Self::of(self.pid) == Some(self) {
            // It may be over by now, or another user's: whoever asked looks again.
            pidfd_send_signal(handle, signal).ok();
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub fn send(self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.pid).filter(|_| Self::of(self.pid) == Some(self)) {
            rustix::process::kill_process(pid, signal).ok();
        }
    }
}

/// Everything that runs, zombies included.
pub fn rows() -> Vec<Row> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| row(entry.file_name().to_str()?.parse().ok()?)).collect()
}

fn row(pid: i32) -> Option<Row> {
    parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads a line of `/proc/PID/stat`. A process chooses its own name, which may hold spaces and brackets.
fn parse(pid: i32, stat: &str) -> Option<Row> {
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    Some(Row {
        identity: Identity { pid, start: fields.get(19)?.parse().ok()? },
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        zombie: matches!(*fields.first()?, "Z" | "X"),
    })
}

/// All that descend from one of `ancestors`, without these.
pub fn descendants(rows: &[Row], ancestors: impl IntoIterator<Item = i32>) -> Vec<Row> {
    let mut family: BTreeSet<i32> = ancestors.into_iter().collect();
    let mut found: Vec<Row> = Vec::new();
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

/// Those that belong to an attempt.
#[derive(Debug, Default)]
pub struct Members {
    pub rows: Vec<Row>,
    /// Whether somebody could not be asked, and should be asked again.
    pub unsure: bool,
}

/// Those whose environment says that they belong to the attempt in `directory`, and a child of its keeper that
/// has not yet become the agent: until then it has its parent's arguments and environment.
pub fn members(rows: &[Row], directory: &Path) -> Members {
    let cookie = [COOKIE.as_bytes(), b"=", directory.as_os_str().as_bytes()].concat();
    let keeper = [KEEP.as_bytes(), directory.as_os_str().as_bytes()];
    let mut members = Members::default();
    for row in rows.iter().filter(|row| !row.zombie) {
        let read = |file: &str| fs::read(format!("/proc/{}/{file}", row.identity.pid));
        let (Ok(environment), Ok(arguments)) = (read("environ"), read("cmdline")) else { continue };
        let arguments: Vec<&[u8]> = arguments.split(|&byte| byte == 0).collect();
        let belongs = environment.split(|&byte| byte == 0).any(|entry| entry == cookie)
            || arguments.windows(2).any(|pair| pair == keeper);
        if belongs {
            members.rows.push(*row);
        }
        // In the middle of becoming another program a process has neither.
        members.unsure |= environment.is_empty() && arguments.concat().is_empty();
    }
    members
}

/// What tells this boot of the machine from all others.
pub fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_chooses_its_name_but_not_its_row() {
        let stat = "7 (a) Z (b) S 3 5 5 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 1 1";
        let row = parse(7, stat).unwrap();
        assert_eq!(
            row,
            Row { identity: Identity { pid: 7, start: 12345 }, parent: 3, group: 5, zombie: false }
        );
    }

    #[test]
    fn descendants_are_found_whatever_their_order() {
        let row = |pid, parent| Row { identity: Identity { pid, start: 1 }, parent, group: 1, zombie: false };
        let rows = [row(9, 8), row(8, 2), row(2, 1), row(3, 1), row(4, 3)];
        let pids = |ancestor| {
            let mut pids: Vec<i32> =
                descendants(&rows, [ancestor]).iter().map(|row| row.identity.pid).collect();
            pids.sort_unstable();
            pids
        };
        assert_eq!(pids(2), [8, 9]);
        assert_eq!(pids(1), [2, 3, 4, 8, 9]);
        assert_eq!(pids(9), [0; 0]);
    }

    #[test]
    fn a_ring_of_parents_ends() {
        let row = |pid, parent| Row { identity: Identity { pid, start: 1 }, parent, group: 1, zombie: false };
        assert_eq!(descendants(&[row(1, 2), row(2, 1)], [1]).len(), 1);
    }
}
