//! Records which channels received which messages, so that undelivered messages are retried after a restart.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use signoff_core::ids::RunId;
use signoff_core::notify::{NotificationKey, NotificationKind};

/// Undelivered messages older than this are dropped.
const STALE: SignedDuration = SignedDuration::from_hours(7 * 24);

/// A file with more lines is compacted to half of this.
const MOST_LINES: usize = 1000;

/// A file with one line for each message due to a channel, and one for each delivered message.
#[derive(Debug)]
pub struct DeliveryLog {
    /// `None` if nothing is stored.
    path: Option<PathBuf>,
    state: Mutex<DeliveryState>,
}

/// The parsed lines.
#[derive(Debug, Default)]
struct DeliveryState {
    /// The lines of delivered messages.
    delivered: BTreeSet<String>,
    /// Time and run of due messages, by the line that would mark them as delivered.
    due: BTreeMap<String, (Timestamp, RunId)>,
}

#[derive(Serialize, Deserialize)]
struct DeliveryRecord<'a> {
    #[serde(flatten)]
    of: Cow<'a, NotificationKey>,
    channel: Cow<'a, str>,
    /// When the message became due; `None` for a delivery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due: Option<Timestamp>,
}

impl DeliveryLog {
    /// Reads a log file, which may be missing, and compacts it if it is long. Messages on unreadable lines are sent
    /// again.
    pub fn open(path: PathBuf, now: Timestamp) -> Self {
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).into_owned();
        if text.lines().count() > MOST_LINES {
            // A read-only file stays long.
            compact(&path, now).ok();
        }
        Self { path: Some(path), state: Mutex::new(DeliveryState::parse(&text, now)) }
    }

    /// A log that stores nothing.
    pub fn disabled() -> Self {
        Self { path: None, state: Mutex::default() }
    }

    /// Whether a message was delivered to a channel.
    pub fn is_delivered(&self, of: &NotificationKey, channel: &str) -> bool {
        self.state().delivered.contains(&line(of, channel, None))
    }

    /// Whether a message is due to a channel and not delivered.
    pub fn is_undelivered(&self, of: &NotificationKey, channel: &str) -> bool {
        let line = line(of, channel, None);
        let state = self.state();
        state.due.contains_key(&line) && !state.delivered.contains(&line)
    }

    /// The runs with undelivered messages.
    pub fn runs_with_undelivered(&self) -> BTreeSet<RunId> {
        let state = self.state();
        state.due.iter().filter(|(line, _)| !state.delivered.contains(*line)).map(|(_, (_, run))| *run).collect()
    }

    /// Records that a message is due to a channel. The end of a run is not retried, so it is not recorded.
    pub fn record_due(&self, of: &NotificationKey, channel: &str, since: Timestamp) -> io::Result<()> {
        let known = line(of, channel, None);
        if of.event == NotificationKind::Done || self.state().due.contains_key(&known) {
            return Ok(());
        }
        self.append(&line(of, channel, Some(since)))?;
        self.state().due.insert(known, (since, of.run));
        Ok(())
    }

    /// Records that a message was delivered to a channel.
    pub fn record_delivered(&self, of: &NotificationKey, channel: &str) -> io::Result<()> {
        let line = line(of, channel, None);
        self.append(&line)?;
        self.state().delivered.insert(line);
        Ok(())
    }

    /// Appends a line under a lock, since other processes write to the same file.
    fn append(&self, line: &str) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let mut file = OpenOptions::new().append(true).create(true).open(path)?;
        file.lock()?;
        file.write_all(format!("{line}\n").as_bytes())
    }

    fn state(&self) -> MutexGuard<'_, DeliveryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DeliveryState {
    fn parse(text: &str, now: Timestamp) -> Self {
        let mut state = Self::default();
        for text in text.lines() {
            let Ok(receipt) = serde_json::from_str::<DeliveryRecord<'_>>(text) else { continue };
            let taken = line(&receipt.of, &receipt.channel, None);
            match receipt.due {
                None => drop(state.delivered.insert(taken)),
                Some(since) if now.duration_since(since) > STALE => {}
                Some(since) => drop(state.due.insert(taken, (since, receipt.of.run))),
            }
        }
        state
    }
}

/// Keeps the newest deliveries and all undelivered messages.
fn compact(path: &Path, now: Timestamp) -> io::Result<()> {
    let mut file: File = OpenOptions::new().read(true).write(true).open(path)?;
    file.lock()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let state = DeliveryState::parse(&text, now);
    let taken: Vec<&str> = text.lines().filter(|line| state.delivered.contains(*line)).collect();
    let newest = taken.get(taken.len().saturating_sub(MOST_LINES / 2)..).unwrap_or_default();
    let is_due = |line: &&str| {
        let receipt = serde_json::from_str::<DeliveryRecord<'_>>(line).ok().filter(|receipt| receipt.due.is_some());
        let taken = receipt.map(|receipt| self::line(&receipt.of, &receipt.channel, None));
        taken.is_some_and(|taken| state.due.contains_key(&taken) && !state.delivered.contains(&taken))
    };
    let due = text.lines().filter(is_due);
    let short: String = newest.iter().copied().chain(due).map(|line| format!("{line}\n")).collect();
    // If the process is killed here, lines are duplicated and at most one is broken.
    file.seek(SeekFrom::Start(0))?;
    file.write_all(short.as_bytes())?;
    file.set_len(short.len() as u64)
}

fn line(of: &NotificationKey, channel: &str, due: Option<Timestamp>) -> String {
    let (of, channel) = (Cow::Borrowed(of), channel.into());
    serde_json::to_string(&DeliveryRecord { of, channel, due }).unwrap_or_default()
}
