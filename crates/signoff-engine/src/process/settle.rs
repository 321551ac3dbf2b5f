//! After a crash: what became of an attempt, and an end to what it left behind.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use super::attempt_dir::Kept;
use super::table::{self, Identity, Members};
use super::{AttemptDir, Ended, door};

/// A keeper gets this much longer than the agent's grace to end everything and write it down.
const MARGIN: Duration = Duration::from_secs(6);
/// What was left behind gets this long to end in order.
const GRACE: Duration = Duration::from_secs(1);
/// What is not gone by then hangs in the kernel or is not ours to kill.
const GIVE_UP: Duration = Duration::from_secs(4);
/// Who cannot be asked for longer than this is not becoming another program: it has nothing to say.
const DOUBT: Duration = Duration::from_millis(500);
const SOON: Duration = Duration::from_millis(5);

/// What became of an attempt whose program was killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// It came to its end in spite of that: nothing is to be done again.
    Ended(Ended),
    /// It did not, and never will.
    Lost,
}

/// Finds out what became of an attempt, after the program that started it is gone.
///
/// Waits for its keeper, which notices by itself that the program is gone. When this returns nothing of the
/// attempt runs, and a keeper that comes late starts nothing.
pub fn settle(dir: &AttemptDir) -> io::Result<Found> {
    if !dir.path().is_dir() {
        end_remains(None, dir.path());
        return Ok(Found::Lost);
    }
    dir.abandon()?;
    outwait_keeper(dir)?;
    match dir.ended() {
        Some(ended) if ended.exit.is_its_own() && dir.holds_all_of(&ended) => Ok(Found::Ended(ended)),
        Some(_) => Ok(Found::Lost),
        None => {
            clear(dir);
            Ok(Found::Lost)
        }
    }
}

/// Returns when no keeper holds the attempt, at the latest when that has been made so.
fn outwait_keeper(dir: &AttemptDir) -> io::Result<()> {
    let grace = dir.order().map_or(Duration::ZERO, |order| order.launch.limits.grace);
    let deadline = door::after(door::now(), grace.saturating_add(MARGIN));
    while is_kept(dir)? {
        if door::now() >= deadline {
            kill_keeper(dir);
        }
        door::pause(SOON);
    }
    Ok(())
}

fn is_kept(dir: &AttemptDir) -> io::Result<bool> {
    match dir.try_lock() {
        Ok(lock) => Ok(lock.is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Kills a keeper that hangs, and first what it keeps: once it is gone nobody knows its descendants.
fn kill_keeper(dir: &AttemptDir) {
    let Some(keeper) = dir.kept().filter(is_of_this_boot).and_then(|kept| kept.keeper) else { return };
    if keeper.lives() {
        for row in table::descendants(&table::rows(), [keeper.pid]) {
            row.identity.send(Signal::KILL);
        }
        keeper.send(Signal::KILL);
    }
}

/// Ends what attempts have left behind whose keepers were killed; how many processes that were.
///
/// `live` is the directory of [`super::Keeper::live`]. Attempts that have a keeper are left alone.
pub fn end_strays(live: &Path) -> io::Result<u32> {
    let entries = match fs::read_dir(live) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut ended = 0;
    for link in entries {
        let link = link?.path();
        // Whatever else lies there is not ours.
        if let Ok(directory) = fs::read_link(&link) {
            ended += end_strays_of(&link, &directory)?;
        }
    }
    Ok(ended)
}

fn end_strays_of(link: &Path, directory: &Path) -> io::Result<u32> {
    let dir = AttemptDir::new(directory);
    let ended = match dir.try_lock() {
        Ok(None) => return Ok(0),
        Ok(Some(_lock)) => end_remains(dir.kept(), directory),
        // Somebody removed the directory, and with it the sign that its keeper lives.
        Err(error) if error.kind() == io::ErrorKind::NotFound => match keeper_of(link) {
            Some(keeper) if keeper.lives() => return Ok(0),
            Some(_) | None => end_remains(None, directory),
        },
        Err(error) => return Err(error),
    };
    remove(link)?;
    Ok(ended)
}

/// The keeper that made this link, from its name.
fn keeper_of(link: &Path) -> Option<Identity> {
    let mut parts = link.file_name()?.to_str()?.split('-');
    Some(Identity { pid: parts.next()?.parse().ok()?, start: parts.next()?.parse().ok()? })
}

/// Another program may have been faster.
fn remove(link: &Path) -> io::Result<()> {
    match fs::remove_file(link) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Ends what an attempt left behind whose keeper is gone, and takes it off the list.
pub(super) fn clear(dir: &AttemptDir) -> u32 {
    // Without a word of a keeper nothing was started.
    let Some(kept) = dir.kept() else { return 0 };
    let (cookie, link) = (kept.cookie.clone(), kept.link.clone());
    let ended = end_remains(Some(kept), &cookie);
    // If it stays, the next command finds that there is nothing to do.
    remove(&link).ok();
    ended
}

/// Ends the agent, whatever carries the attempt's cookie, and all that descends from these.
fn end_remains(kept: Option<Kept>, cookie: &Path) -> u32 {
    let agent = kept.filter(is_of_this_boot).and_then(|kept| kept.agent);
    let (started, mut met) = (door::now(), BTreeSet::new());
    loop {
        let Members { rows: left, unsure } = remains(agent, cookie);
        let elapsed = door::now().duration_since(started);
        let nothing = left.is_empty() && (!unsure || elapsed > DOUBT);
        if nothing || elapsed > GIVE_UP {
            return u32::try_from(met.len()).unwrap_or(u32::MAX);
        }
        for row in left {
            if met.insert(row.identity) {
                row.identity.send(Signal::TERM);
            }
            if elapsed > GRACE {
                row.identity.send(Signal::KILL);
            }
        }
        door::pause(SOON);
    }
}

fn remains(agent: Option<Identity>, cookie: &Path) -> Members {
    let rows = table::rows();
    let mut members = table::members(&rows, cookie);
    members.rows.extend(rows.iter().filter(|row| Some(row.identity) == agent));
    let ancestors: Vec<i32> = members.rows.iter().map(|row| row.identity.pid).collect();
    members.rows.extend(table::descendants(&rows, ancestors));
    let own = rustix::process::getpid().as_raw_nonzero().get();
    members.rows.retain(|row| !row.zombie && row.identity.pid != own);
    members
}

fn is_of_this_boot(kept: &Kept) -> bool {
    kept.boot == table::boot()
}
