//! Places where tests kill the program, by name and count.
//!
//! `SIGNOFF_FAILPOINT=append:3` ends the program with SIGKILL at the third append. `SIGNOFF_FAILPOINTS=FILE` writes
//! the name of every place that is passed. Only debug builds know them.

#[cfg(debug_assertions)]
mod armed {
    use std::collections::HashMap;
    use std::fs::File;
    use std::io::Write;
    use std::sync::{Mutex, OnceLock};

    #[expect(clippy::disallowed_methods, reason = "a test's own door, closed in release builds")]
    fn note(name: &str) {
        static LOG: OnceLock<Option<File>> = OnceLock::new();
        let open = || {
            let path = std::env::var_os("SIGNOFF_FAILPOINTS")?;
            File::options().create(true).append(true).open(path).ok()
        };
        if let Some(mut log) = LOG.get_or_init(open).as_ref() {
            log.write_all(format!("{name}\n").as_bytes()).ok();
        }
    }

    struct Trap {
        name: String,
        count: u64,
        seen: Mutex<HashMap<&'static str, u64>>,
    }

    #[expect(clippy::disallowed_methods, reason = "a test's own door, closed in release builds")]
    fn trap() -> Option<&'static Trap> {
        static TRAP: OnceLock<Option<Trap>> = OnceLock::new();
        let read = || {
            let text = std::env::var("SIGNOFF_FAILPOINT").ok()?;
            let (name, count) = text.split_once(':')?;
            Some(Trap { name: name.to_owned(), count: count.parse().ok()?, seen: Mutex::default() })
        };
        TRAP.get_or_init(read).as_ref()
    }

    pub fn pass(name: &'static str) {
        note(name);
        let Some(trap) = trap() else { return };
        let Ok(mut seen) = trap.seen.lock() else { return };
        let count = seen.entry(name).or_default();
        *count += 1;
        if trap.name == name && *count == trap.count {
            let own = rustix::process::getpid();
            rustix::process::kill_process(own, rustix::process::Signal::KILL).ok();
            // The signal is on its way; nothing more may happen here.
            loop {
                std::thread::park();
            }
        }
    }
}

/// Passes a place where a test may have asked for the program's death.
#[cfg(debug_assertions)]
pub fn pass(name: &'static str) {
    armed::pass(name);
}

/// Nothing, in a release build.
#[cfg(not(debug_assertions))]
pub fn pass(_name: &'static str) {}
