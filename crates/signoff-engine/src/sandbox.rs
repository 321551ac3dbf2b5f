//! Sandboxes for agents on Linux: they may read everything and write only to given paths.
//!
//! There are two backends with the same rights: Landlock, which restricts the supervisor's own thread, and
//! bubblewrap, a program that starts the agent.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc;
use std::{io, thread};

use serde::{Deserialize, Serialize};
use signoff_core::sandbox::SandboxBackend;

use crate::detect;
use crate::process::system;

/// The restrictions of a sandboxed process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxPolicy {
    #[serde(rename = "by")]
    pub backend: SandboxBackend,
    /// The only paths below which it may write.
    pub writable: Vec<PathBuf>,
    /// The only TCP ports it may connect to. `None` allows all.
    pub ports: Option<Vec<u16>>,
}

/// The sandbox support of this system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxSupport {
    pub backend: SandboxBackend,
    /// The kernel's Landlock version.
    pub landlock: Option<u32>,
    /// Why the sandbox is missing or incomplete.
    pub missing: Option<String>,
}

/// The first Landlock version that also prevents truncating files.
const MIN_FULL_LANDLOCK: u32 = 3;

impl SandboxSupport {
    /// Probes this system. `forced` selects one backend, for tests.
    pub fn probe(forced: Option<SandboxBackend>) -> Self {
        let landlock = landlock_version();
        let support = |by, lacks| Self { backend: by, landlock, missing: lacks };
        match forced {
            Some(SandboxBackend::None) => support(SandboxBackend::None, Some("disabled by a test".to_owned())),
            Some(SandboxBackend::Landlock) => support(SandboxBackend::Landlock, None),
            Some(SandboxBackend::Bubblewrap) => support(SandboxBackend::Bubblewrap, check_bubblewrap().err()),
            None if landlock.is_some_and(|version| version >= MIN_FULL_LANDLOCK) => {
                support(SandboxBackend::Landlock, None)
            }
            None => match (check_bubblewrap(), landlock) {
                (Ok(()), _) => support(SandboxBackend::Bubblewrap, None),
                (Err(reason), Some(version)) => {
                    let weak = format!(
                        "the kernel's Landlock (version {version}) does not prevent truncating files, and {reason}"
                    );
                    support(SandboxBackend::Landlock, Some(weak))
                }
                (Err(reason), None) => support(SandboxBackend::None, Some(format!("{NO_LANDLOCK}, and {reason}"))),
            },
        }
    }

    /// Whether an agent can be fully sandboxed.
    pub fn is_complete(&self) -> bool {
        self.backend != SandboxBackend::None && self.missing.is_none()
    }
}

/// Name of the bubblewrap program.
pub const BUBBLEWRAP: &str = "bwrap";

/// Shared memory, which is writable only if it is one of the given paths.
const SHARED_MEMORY: &str = "/dev/shm";

/// The arguments before a program and its own arguments.
///
/// Hides other processes, because `/proc` gives access to their files regardless of the mounts.
pub fn bubblewrap_args(writable: &[PathBuf], directory: &Path) -> Vec<OsString> {
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

/// Whether bubblewrap is installed and works. It does not in some containers, or where users may not create namespaces.
fn check_bubblewrap() -> Result<(), String> {
    if !detect::is_installed(BUBBLEWRAP) {
        return Err(format!("bubblewrap ({BUBBLEWRAP}) is not installed"));
    }
    let mut command = system::command(BUBBLEWRAP);
    command.args(bubblewrap_args(&[], Path::new("/"))).arg("true").stdin(Stdio::null());
    let ended = command.output().map_err(|error| format!("bubblewrap cannot be started: {error}"))?;
    if ended.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&ended.stderr);
    let last = stderr.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it printed nothing").trim();
    Err(format!("bubblewrap does not work here: {last}"))
}

/// Message for a system without Landlock.
#[cfg(target_os = "linux")]
const NO_LANDLOCK: &str = "the kernel has no Landlock";

#[cfg(not(target_os = "linux"))]
const NO_LANDLOCK: &str = "sandboxing needs Linux";

/// Devices that many programs need to write to. Not all of `/dev`, because files can be created below it.
#[cfg(target_os = "linux")]
const DEVICES: [&str; 8] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts"];

/// Runs `start` in a thread that may write only below `paths` and, if `ports` is set and the kernel has Landlock
/// version 4, connect only to `ports`. Processes that `start` starts inherit the limits; the caller does not.
///
/// The kernel restricts threads, and a process inherits the restrictions of the thread that started it. That
/// thread also counts as the process's parent: a process that asked for a signal at its parent's death would
/// get it when the thread ends. So the thread stays until this program ends.
pub fn run_restricted<T: Send + 'static>(
    paths: Vec<PathBuf>,
    ports: Option<Vec<u16>>,
    start: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let restricted = move || {
        let started = restrict(&paths, ports.as_deref()).and_then(|_| start());
        let is_parent = started.is_ok();
        sender.send(started).ok();
        if is_parent {
            park_forever();
        }
    };
    thread::Builder::new().spawn(restricted)?;
    receiver.recv().unwrap_or_else(|error| Err(failed(&error)))
}

/// Parks in a loop, because `park` may return spuriously.
fn park_forever() -> ! {
    loop {
        thread::park();
    }
}

fn failed(error: &dyn std::fmt::Display) -> io::Error {
    io::Error::other(format!("cannot apply the sandbox: {error}"))
}

/// The kernel's Landlock version, determined in a short-lived thread.
fn landlock_version() -> Option<u32> {
    let tried = thread::Builder::new().spawn(|| restrict(&[], None).ok());
    tried.ok()?.join().ok()?
}

/// Restricts this thread's writes, signals and connections as far as the kernel supports it. Returns the
/// Landlock version, or an error if Landlock is not available.
#[cfg(target_os = "linux")]
fn restrict(paths: &[PathBuf], ports: Option<&[u16]>) -> io::Result<u32> {
    use landlock::{
        ABI, AccessFs, AccessNet, LandlockStatus, NetPort, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
        RulesetStatus, Scope, path_beneath_rules,
    };
    let writing = AccessFs::from_write(ABI::V5);
    let allowed = paths.iter().map(PathBuf::as_path).chain(DEVICES.map(Path::new));
    let apply = || -> Result<_, RulesetError> {
        // Takes effect from version 6 on. The agent can still signal the processes it starts.
        let rules = Ruleset::default().handle_access(writing)?.scope(Scope::Signal)?;
        let rules = if ports.is_some() { rules.handle_access(AccessNet::ConnectTcp)? } else { rules };
        let connect = |port: &u16| -> Result<_, RulesetError> { Ok(NetPort::new(*port, AccessNet::ConnectTcp)) };
        let ports = ports.unwrap_or_default().iter().map(connect);
        let rules = rules.create()?.add_rules(path_beneath_rules(allowed, writing))?.add_rules(ports)?;
        rules.restrict_self()
    };
    let status = apply().map_err(|error| failed(&error))?;
    match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, _) | (_, LandlockStatus::NotEnabled | LandlockStatus::NotImplemented) => {
            Err(failed(&NO_LANDLOCK))
        }
        (_, LandlockStatus::Available { effective_abi, kernel_abi }) => {
            let newer = kernel_abi.and_then(|version| u32::try_from(version).ok());
            Ok(newer.unwrap_or(effective_abi as u32))
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn restrict(_paths: &[PathBuf], _ports: Option<&[u16]>) -> io::Result<u32> {
    Err(failed(&NO_LANDLOCK))
}
