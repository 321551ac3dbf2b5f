//! Landlock: restricts a thread and all processes it starts.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;

/// Message for a system without Landlock.
#[cfg(target_os = "linux")]
pub const ABSENT: &str = "the kernel has no Landlock";

#[cfg(not(target_os = "linux"))]
pub const ABSENT: &str = "only Linux can do that";

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
    let confined = move || {
        let started = restrict(&paths, ports.as_deref()).and_then(|_| start());
        let is_parent = started.is_ok();
        sender.send(started).ok();
        if is_parent {
            park_forever();
        }
    };
    thread::Builder::new().spawn(confined)?;
    receiver.recv().unwrap_or_else(|error| Err(failed(&error)))
}

/// Parks in a loop, because `park` may return spuriously.
fn park_forever() -> ! {
    loop {
        thread::park();
    }
}

fn failed(error: &dyn std::fmt::Display) -> io::Error {
    io::Error::other(format!("confinement failed: {error}"))
}

/// The kernel's Landlock version, determined in a short-lived thread.
pub fn version() -> Option<u32> {
    let tried = thread::Builder::new().spawn(|| restrict(&[], None).ok());
    tried.ok()?.join().ok()?
}

/// Restricts this thread's writes, signals and connections as far as the kernel supports it. Returns the
/// Landlock version, or an error if Landlock is not available.
#[cfg(target_os = "linux")]
fn restrict(paths: &[PathBuf], ports: Option<&[u16]>) -> io::Result<u32> {
    use std::path::Path;

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
            Err(failed(&ABSENT))
        }
        (_, LandlockStatus::Available { effective_abi, kernel_abi }) => {
            let newer = kernel_abi.and_then(|version| u32::try_from(version).ok());
            Ok(newer.unwrap_or(effective_abi as u32))
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn restrict(_paths: &[PathBuf], _ports: Option<&[u16]>) -> io::Result<u32> {
    Err(failed(&ABSENT))
}
