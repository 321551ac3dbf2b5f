//! Named points at which tests kill the program.
//!
//! `SIGNOFF_FAILPOINT=append:3` kills the program with SIGKILL at the third append. `SIGNOFF_FAILPOINTS=FILE`
//! writes the name of every failpoint that is passed. Only debug builds contain them.

/// Counts the passes of each failpoint.
#[cfg(debug_assertions)]
mod armed {
    use std::collections::HashMap;
    use std::fs::File;
    use std::io::Write;
    use std::sync::{Mutex, OnceLock};

    #[expect(clippy::disallowed_methods, reason = "for tests; not in release builds")]
    fn log_passed(name: &str) {
        static LOG: OnceLock<Option<File>> = OnceLock::new();
        let open = || {
            let path = std::env::var_os("SIGNOFF_FAILPOINTS")?;
            File::options().create(true).append(true).open(path).ok()
        };
        if let Some(mut log) = LOG.get_or_init(open).as_ref() {
            log.write_all(format!("{name}\n").as_bytes()).ok();
        }
    }

    struct Failpoint {
        name: String,
        count: u64,
        seen: Mutex<HashMap<&'static str, u64>>,
    }

    #[expect(clippy::disallowed_methods, reason = "for tests; not in release builds")]
    fn configured() -> Option<&'static Failpoint> {
        static FAILPOINT: OnceLock<Option<Failpoint>> = OnceLock::new();
        let read = || {
            let text = std::env::var("SIGNOFF_FAILPOINT").ok()?;
            let (name, count) = text.split_once(':')?;
            Some(Failpoint { name: name.to_owned(), count: count.parse().ok()?, seen: Mutex::default() })
        };
        FAILPOINT.get_or_init(read).as_ref()
    }

    pub fn pass(name: &'static str) {
        log_passed(name);
        let Some(trap) = configured() else { return };
        let Ok(mut seen) = trap.seen.lock() else { return };
        let count = seen.entry(name).or_default();
        *count += 1;
        if trap.name == name && *count == trap.count {
            let own = rustix::process::getpid();
            rustix::process::kill_process(own, rustix::process::Signal::KILL).ok();
            // The signal is pending; nothing more may happen here.
            loop {
                std::thread::park();
            }
        }
    }
}

/// Passes a failpoint, at which a test may kill the program.
#[cfg(debug_assertions)]
pub fn pass(name: &'static str) {
    armed::pass(name);
}

/// Does nothing in a release build.
#[cfg(not(debug_assertions))]
pub fn pass(_name: &'static str) {}
