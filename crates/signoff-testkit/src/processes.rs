//! What runs in a test's place, told from the system's own table.

use std::fs;
use std::path::Path;
use std::time::Duration;

/// How often something is looked at, and how many times.
const PAUSE: Duration = Duration::from_millis(2);
const LOOKS: u32 = 30_000;

/// Waits until something is so.
///
/// # Panics
/// If it is not so after a minute.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..LOOKS {
        if is_so() {
            return;
        }
        std::thread::park_timeout(PAUSE);
    }
    panic!("{what}: waited a minute in vain");
}

/// The command lines of all processes that have this directory in their environment.
pub fn of(root: &Path) -> Vec<String> {
    let sign = root.display().to_string();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok());
    pids.filter_map(|entry| {
        let knows = |file: &str| {
            let bytes = fs::read(entry.path().join(file)).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let words = knows("cmdline").replace('\0', " ");
        // One that is dead and not yet waited for has neither.
        (knows("environ").contains(&sign) || words.contains(&sign))
            .then(|| format!("{} {words}", entry.file_name().to_string_lossy()))
    })
    .collect()
}

/// Sends a signal to a whole group of processes, by the number of the one that leads it.
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

/// Whether a process is there and not dead.
pub fn lives(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}
