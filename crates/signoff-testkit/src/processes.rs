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

/// Whether a process is there and not dead.
pub fn lives(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}
