//! Bubblewrap: a program that shows another one the same files, most of them read-only.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::detect;
use crate::process::door;

/// What it is called.
pub const PROGRAM: &str = "bwrap";

/// Memory that looks like files: whoever may write there is named like any other path.
const SHARED_MEMORY: &str = "/dev/shm";

/// The arguments that go before a program and its own.
///
/// Processes are out of its sight, because the files of another process are reached through `/proc` without asking
/// where they may be written.
pub fn command_line(writable: &[PathBuf], directory: &Path) -> Vec<OsString> {
    let mut line: Vec<OsString> =
        ["--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev", "--unshare-pid", "--proc", "/proc"]
            .map(OsString::from)
            .into();
    let bind = |how: &str, path: &Path| [OsString::from(how), path.into(), path.into()];
    if Path::new(SHARED_MEMORY).is_dir() {
        line.extend(bind("--ro-bind", Path::new(SHARED_MEMORY)));
    }
    // Nothing can be put in the place of a link.
    for path in writable.iter().filter_map(|path| path.canonicalize().ok()) {
        line.extend(bind("--bind", &path));
    }
    line.extend(["--die-with-parent".into(), "--chdir".into(), directory.into(), "--".into()]);
    line
}

/// Whether it is here and can do what it is for: in a container, or where people may not make namespaces, it cannot.
pub fn trial() -> Result<(), String> {
    if !detect::is_installed(PROGRAM) {
        return Err(format!("bubblewrap ({PROGRAM}) is not installed"));
    }
    let mut trial = door::command(PROGRAM);
    trial.args(command_line(&[], Path::new("/"))).arg("true").stdin(Stdio::null());
    let ended = trial.output().map_err(|error| format!("bubblewrap cannot be started: {error}"))?;
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it says nothing").trim();
    Err(format!("bubblewrap does not work here: {last}"))
}
