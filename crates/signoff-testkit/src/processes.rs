//! Finds and signals the processes of a test, through `/proc`.

use std::fs;
use std::path::Path;
use std::time::Duration;

/// Polling interval and maximum number of polls.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
const MAX_POLLS: u32 = 30_000;

/// Polls until a condition holds.
///
/// # Panics
/// If it does not hold within a minute.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..MAX_POLLS {
        if condition() {
            return;
        }
        std::thread::park_timeout(POLL_INTERVAL);
    }
    panic!("{what}: timed out after a minute");
}

/// The command lines of all processes that have this directory in their environment or arguments.
pub fn with_root(root: &Path) -> Vec<String> {
    let needle = root.display().to_string();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok());
    pids.filter_map(|entry| {
        let read_file = |file: &str| {
            let bytes = fs::read(entry.path().join(file)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let words = read_file("cmdline").replace('\0', " ");
        // A zombie has neither.
        (read_file("environ").contains(&needle) || words.contains(&needle))
            .then(|| format!("{} {words}", entry.file_name().to_string_lossy()))
    })
    .collect()
}

/// Sends a signal to a process group, by the pid of its leader.
///
/// # Panics
/// If there is no such group or no such signal.
#[cfg(unix)]
pub fn signal_group(leader: u32, signal: i32) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let group = i32::try_from(leader).ok().and_then(Pid::from_raw).expect("the number of a process");
    let signal = Signal::from_named_raw(signal).expect("a signal");
    kill_process_group(group, signal).expect("a group that is there");
}

/// Whether a process exists and is not a zombie.
pub fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}
