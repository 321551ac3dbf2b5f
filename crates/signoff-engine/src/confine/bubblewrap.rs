//! Bubblewrap: a program that starts another one with most files read-only.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::detect;
use crate::process::system;

/// Name of the program.
pub const PROGRAM: &str = "bwrap";

/// Shared memory, which is writable only if it is one of the given paths.
const SHARED_MEMORY: &str = "/dev/shm";

/// The arguments before a program and its own arguments.
///
/// Hides other processes, because `/proc` gives access to their files regardless of the mounts.
pub fn command_line(writable: &[PathBuf], directory: &Path) -> Vec<OsString> {
    let mut line: Vec<OsString> =
        ["--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev", "--unshare-pid", "--proc", "/proc"]
            .map(OsString::from)
            .into();
    let bind = |how: &str, path: &Path| [OsString::from(how), path.into(), path.into()];
    if Path::new(SHARED_MEMORY).is_dir() {
        line.extend(bind("--ro-bind", Path::new(SHARED_MEMORY)));
    }
    // Bubblewrap cannot mount over a link.
    for path in writable.iter().filter_map(|path| path.canonicalize().ok()) {
        line.extend(bind("--bind", &path));
    }
    line.extend(["--die-with-parent".into(), "--chdir".into(), directory.into(), "--".into()]);
    line
}

/// Whether it is installed and works. It does not in some containers, or where users may not create namespaces.
pub fn check() -> Result<(), String> {
    if !detect::is_installed(PROGRAM) {
        return Err(format!("bubblewrap ({PROGRAM}) is not installed"));
    }
    let mut command = system::command(PROGRAM);
    command.args(command_line(&[], Path::new("/"))).arg("true").stdin(Stdio::null());
    let ended = command.output().map_err(|error| format!("bubblewrap cannot be started: {error}"))?;
    if ended.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&ended.stderr);
    let last = stderr.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it says nothing").trim();
    Err(format!("bubblewrap does not work here: {last}"))
}
