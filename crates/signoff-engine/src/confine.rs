//! Processes that may read everything and write almost nothing: how reviewers are run where the system allows it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

/// Where writing does no harm, and many programs cannot do without. Not all of `/dev`: below it there is room for files.
#[cfg(target_os = "linux")]
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

/// Does `start` where nothing may be written but below `paths`. What it starts is held by the same, with all that
/// comes after it; the caller is not.
///
/// The system takes rights from a thread, and a process has those of the thread that started it. That thread is also
/// what the process takes for its parent: who asked to be ended with its parent would be ended with the thread. So it
/// stays until this program ends.
pub fn within<T: Send + 'static>(
    paths: Vec<PathBuf>,
    start: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (tell, told) = mpsc::sync_channel(1);
    let confined = move || {
        let started = restrict(&paths).map_err(|error| failed(&error)).and_then(|()| start());
        let is_parent = started.is_ok();
        tell.send(started).ok();
        if is_parent {
            stay();
        }
    };
    thread::Builder::new().spawn(confined)?;
    told.recv().unwrap_or_else(|error| Err(failed(&error)))
}

/// Waits for what never comes: parking may end for no reason.
fn stay() -> ! {
    loop {
        thread::park();
    }
}

fn failed(error: &dyn std::error::Error) -> io::Error {
    io::Error::other(format!("confinement failed: {error}"))
}

/// Gives up writing elsewhere, as far as this kernel can hold us to it.
#[cfg(target_os = "linux")]
fn restrict(paths: &[PathBuf]) -> Result<(), landlock::RulesetError> {
    use landlock::{ABI, AccessFs, Ruleset, RulesetAttr, RulesetCreatedAttr, path_beneath_rules};
    let writing = AccessFs::from_write(ABI::V5);
    let allowed = paths.iter().map(PathBuf::as_path).chain(DEVICES.map(Path::new));
    let rules = Ruleset::default().handle_access(writing)?.create()?;
    rules.add_rules(path_beneath_rules(allowed, writing))?.restrict_self()?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn restrict(_paths: &[PathBuf]) -> Result<(), std::convert::Infallible> {
    Ok(())
}

/// Whether this kernel can hold a process to it.
#[cfg(target_os = "linux")]
pub fn is_possible() -> bool {
    use landlock::{ABI, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr};
    let strict = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    strict.handle_access(AccessFs::from_write(ABI::V1)).and_then(|rules| rules.create()).is_ok()
}

#[cfg(not(target_os = "linux"))]
pub fn is_possible() -> bool {
    false
}
