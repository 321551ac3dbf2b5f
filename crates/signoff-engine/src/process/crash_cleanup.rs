//! Finds out after a crash how an attempt ended, and ends its remaining processes.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use super::attempt_dir::{SupervisorRecord, SupervisorSpec};
use super::system::{self, AttemptProcesses, ProcessIdentity};
use super::{AttemptDir, ProcessResult};
use crate::atomic_file;

/// Time beyond the agent's grace period that a supervisor gets to end everything and write the result.
const SUPERVISOR_MARGIN: Duration = Duration::from_secs(6);
/// Time that remaining processes get to end by themselves.
const GRACE: Duration = Duration::from_secs(1);
/// Time limit for killed processes. One that remains hangs in the kernel or belongs to another user.
const KILL_TIMEOUT: Duration = Duration::from_secs(4);
/// Time limit for a process whose environment cannot be read. Within an `exec` it is unreadable only briefly.
const UNREADABLE_TIMEOUT: Duration = Duration::from_millis(500);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Finds out what became of an attempt after its main program is gone. Returns its result if it ended by itself, so
/// that it is not repeated.
///
/// Waits for its supervisor, which notices that the main program is gone. When this returns, no process of the
/// attempt runs, and a late supervisor starts nothing.
pub fn recover_attempt(dir: &AttemptDir) -> io::Result<Option<ProcessResult>> {
    if !dir.path().is_dir() {
        kill_remaining(None, dir.path());
        return Ok(None);
    }
    dir.abandon()?;
    wait_for_supervisor(dir)?;
    match dir.read_result() {
        Some(ended) if ended.exit.is_final() && dir.has_complete_output(&ended) => Ok(Some(ended)),
        Some(_) => Ok(None),
        None => {
            clean_up(dir);
            Ok(None)
        }
    }
}

/// Waits until no supervisor holds the attempt, and kills it after a time limit.
fn wait_for_supervisor(dir: &AttemptDir) -> io::Result<()> {
    let grace = atomic_file::read_json::<SupervisorSpec>(&dir.launch())
        .map_or(Duration::ZERO, |order| order.launch.limits.grace);
    let deadline = system::deadline(system::now(), grace.saturating_add(SUPERVISOR_MARGIN));
    while is_supervised(dir)? {
        if system::now() >= deadline {
            kill_supervisor(dir);
        }
        system::pause(POLL_INTERVAL);
    }
    Ok(())
}

fn is_supervised(dir: &AttemptDir) -> io::Result<bool> {
    match dir.try_lock() {
        Ok(lock) => Ok(lock.is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Kills a hanging supervisor after its descendants, which are unknown once it is gone.
fn kill_supervisor(dir: &AttemptDir) {
    let Some(supervisor) = dir.read_record().filter(is_of_this_boot).and_then(|kept| kept.supervisor) else {
        return;
    };
    if supervisor.is_alive() {
        for row in system::descendants(&system::read_all(), [supervisor.pid]) {
            row.identity.send_signal(Signal::KILL);
        }
        supervisor.send_signal(Signal::KILL);
    }
}

/// Ends the processes of attempts whose supervisors were killed. Returns the number of processes.
///
/// `live_dir` is the launcher's directory of links. Skips attempts that have a supervisor.
pub fn kill_orphans(live_dir: &Path) -> io::Result<u32> {
    let entries = match fs::read_dir(live_dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut ended = 0;
    for link in entries {
        let link = link?.path();
        // Other entries are not ours.
        if let Ok(directory) = fs::read_link(&link) {
            ended += kill_orphans_of(&link, &directory)?;
        }
    }
    Ok(ended)
}

fn kill_orphans_of(link: &Path, directory: &Path) -> io::Result<u32> {
    let dir = AttemptDir::new(directory);
    let ended = match dir.try_lock() {
        Ok(None) => return Ok(0),
        Ok(Some(_lock)) => kill_remaining(dir.read_record(), directory),
        // The directory was removed, and with it the lock that shows a live supervisor.
        Err(error) if error.kind() == io::ErrorKind::NotFound => match supervisor_of(link) {
            Some(supervisor) if supervisor.is_alive() => return Ok(0),
            Some(_) | None => kill_remaining(None, directory),
        },
        Err(error) => return Err(error),
    };
    remove_link(link)?;
    Ok(ended)
}

/// The supervisor that created this link, from its name.
fn supervisor_of(link: &Path) -> Option<ProcessIdentity> {
    let mut parts = link.file_name()?.to_str()?.split('-');
    Some(ProcessIdentity { pid: parts.next()?.parse().ok()?, start: parts.next()?.parse().ok()? })
}

/// Removes a link. Another process may have removed it before.
fn remove_link(link: &Path) -> io::Result<()> {
    match fs::remove_file(link) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Ends the processes of an attempt whose supervisor is gone, and removes its link.
pub(super) fn clean_up(dir: &AttemptDir) -> u32 {
    // Without a record nothing was started.
    let Some(record) = dir.read_record() else { return 0 };
    let (cookie, link) = (record.cookie.clone(), record.link.clone());
    let ended = kill_remaining(Some(record), &cookie);
    // If the link stays, the next command finds nothing to do.
    remove_link(&link).ok();
    ended
}

/// Ends the agent, every process with the attempt's variable, and all their descendants.
fn kill_remaining(record: Option<SupervisorRecord>, cookie: &Path) -> u32 {
    let agent = record.filter(is_of_this_boot).and_then(|kept| kept.agent);
    let (started, mut signalled) = (system::now(), BTreeSet::new());
    loop {
        let AttemptProcesses { rows: left, is_incomplete: unsure } = remaining_processes(agent, cookie);
        let elapsed = system::now().duration_since(started);
        let nothing = left.is_empty() && (!unsure || elapsed > UNREADABLE_TIMEOUT);
        if nothing || elapsed > KILL_TIMEOUT {
            return u32::try_from(signalled.len()).unwrap_or(u32::MAX);
        }
        for row in left {
            if signalled.insert(row.identity) {
                row.identity.send_signal(Signal::TERM);
            }
            if elapsed > GRACE {
                row.identity.send_signal(Signal::KILL);
            }
        }
        system::pause(POLL_INTERVAL);
    }
}

fn remaining_processes(agent: Option<ProcessIdentity>, cookie: &Path) -> AttemptProcesses {
    let rows = system::read_all();
    let mut members = system::attempt_processes(&rows, cookie);
    members.rows.extend(rows.iter().filter(|row| Some(row.identity) == agent));
    let ancestors: Vec<i32> = members.rows.iter().map(|row| row.identity.pid).collect();
    members.rows.extend(system::descendants(&rows, ancestors));
    let own = rustix::process::getpid().as_raw_nonzero().get();
    members.rows.retain(|row| !row.is_zombie && row.identity.pid != own);
    members
}

fn is_of_this_boot(record: &SupervisorRecord) -> bool {
    record.boot == system::boot_id()
}
