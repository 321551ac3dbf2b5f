//! Landlock: a thread gives up rights for itself and for all it starts.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;

/// What is said where there is no such thing.
#[cfg(target_os = "linux")]
pub const ABSENT: &str = "the kernel has no Landlock";

#[cfg(not(target_os = "linux"))]
pub const ABSENT: &str = "only Linux can do that";

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

/// Runs `start` in a thread that may write only below `paths` and, if `ports` is set and the kernel has Landlock
/// version 4, connect only to `ports`. Processes that `start` starts inherit the limits; the caller does not.
///
/// The system takes rights from a thread, and a process has those of the thread that started it. That thread is also
/// what the process takes for its parent: who asked to be ended with its parent would be ended with the thread. So it
/// stays until this program ends.
pub fn within<T: Send + 'static>(
    paths: Vec<PathBuf>,
    ports: Option<Vec<u16>>,
    start: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (tell, told) = mpsc::sync_channel(1);
    let confined = move || {
        let started = restrict(&paths, ports.as_deref()).and_then(|_| start());
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

fn failed(error: &dyn std::fmt::Display) -> io::Error {
    io::Error::other(format!("confinement failed: {error}"))
}

/// The version that the kernel has, as a thread finds out that gives up its rights for a moment's life.
pub fn version() -> Option<u32> {
    let tried = thread::Builder::new().spawn(|| restrict(&[], None).ok());
    tried.ok()?.join().ok()?
}

/// Gives up writing elsewhere and signalling others, as far as this kernel can hold us to it; its version of Landlock. An error if it cannot
/// at all.
#[cfg(target_os = "linux")]
fn restrict(paths: &[PathBuf], ports: Option<&[u16]>) -> io::Result<u32> {
    use std::path::Path;

    use landlock::{
        ABI, AccessFs, AccessNet, LandlockStatus, NetPort, Ruleset, RulesetAttr, RulesetCreatedAttr,
        RulesetError, RulesetStatus, Scope, path_beneath_rules,
    };
    let writing = AccessFs::from_write(ABI::V5);
    let allowed = paths.iter().map(PathBuf::as_path).chain(DEVICES.map(Path::new));
    let give_up = || -> Result<_, RulesetError> {
        // From its version 6 on; what an agent starts itself stays within its reach.
        let rules = Ruleset::default().handle_access(writing)?.scope(Scope::Signal)?;
        let rules = if ports.is_some() { rules.handle_access(AccessNet::ConnectTcp)? } else { rules };
        let connect =
            |port: &u16| -> Result<_, RulesetError> { Ok(NetPort::new(*port, AccessNet::ConnectTcp)) };
        let ports = ports.unwrap_or_default().iter().map(connect);
        let rules = rules.create()?.add_rules(path_beneath_rules(allowed, writing))?.add_rules(ports)?;
        rules.restrict_self()
    };
    let status = give_up().map_err(|error| failed(&error))?;
    match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, _)
        | (_, LandlockStatus::NotEnabled | LandlockStatus::NotImplemented) => Err(failed(&ABSENT)),
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
