//! Processes that may read everything and write almost nothing: how reviewers are run where the system allows it.

use std::io;
use std::path::PathBuf;
use std::thread;

/// Where writing does no harm, and many programs cannot do without.
#[cfg(target_os = "linux")]
const DEVICES: &str = "/dev";

/// Does `start` where nothing may be written but below `paths`. What it starts is held by the same, with all that
/// comes after it; the caller is not.
///
/// The system takes rights from a thread, and a process has those of the thread that started it.
pub fn within<T: Send>(paths: &[PathBuf], start: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    let confined = || {
        restrict(paths).map_err(|error| io::Error::other(format!("confinement failed: {error}")))?;
        start()
    };
    let ended = thread::scope(|scope| scope.spawn(confined).join());
    ended.unwrap_or_else(|_| Err(io::Error::other("confinement failed")))
}

/// Gives up writing elsewhere, as far as this kernel can hold us to it.
#[cfg(target_os = "linux")]
fn restrict(paths: &[PathBuf]) -> Result<(), landlock::RulesetError> {
    use landlock::{ABI, AccessFs, Ruleset, RulesetAttr, RulesetCreatedAttr, path_beneath_rules};
    let writing = AccessFs::from_write(ABI::V5);
    let allowed = paths.iter().map(PathBuf::as_path).chain([DEVICES.as_ref()]);
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
