//! Records which channels received which messages, so that undelivered messages are retried after a restart.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use signoff_core::ids::RunId;
use signoff_core::notify::{NotificationKey, NotificationKind};

/// Undelivered messages older than this are dropped.
const STALE: SignedDuration = SignedDuration::from_hours(7 * 24);

/// A file with more lines is compacted, and keeps half as many deliveries.
const MOST_LINES: usize = 1000;

/// A JSON-lines file with a record for each message due to a channel, and one for each delivered message.
#[derive(Debug)]
pub struct DeliveryLog {
    /// `None` if nothing is stored.
    path: Option<PathBuf>,
    records: Mutex<Vec<DeliveryRecord>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct DeliveryRecord {
    #[serde(flatten)]
    of: NotificationKey,
    channel: String,
    /// When the message became due; `None` for a delivery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due: Option<Timestamp>,
}

impl DeliveryRecord {
    fn is_for(&self, of: &NotificationKey, channel: &str) -> bool {
        self.of == *of && self.channel == channel
    }

    fn is_delivered(&self, records: &[Self]) -> bool {
        records.iter().any(|record| record.due.is_none() && record.is_for(&self.of, &self.channel))
    }

    fn to_line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

impl DeliveryLog {
    /// Reads a log file, which may be missing, and compacts it if it is long. Messages on unreadable lines are sent
    /// again.
    pub fn open(path: PathBuf, now: Timestamp) -> Self {
        let text = fs::read(&path).unwrap_or_default();
        let records = parse(&text, now);
        if text.iter().filter(|byte| **byte == b'\n').count() > MOST_LINES {
            // A read-only file stays long.
            compact(&path, now).ok();
        }
        Self { path: Some(path), records: Mutex::new(records) }
    }

    /// A log that stores nothing.
    pub fn disabled() -> Self {
        Self { path: None, records: Mutex::default() }
    }

    /// Whether a message was delivered to a channel.
    pub fn is_delivered(&self, of: &NotificationKey, channel: &str) -> bool {
        self.records().iter().any(|record| record.due.is_none() && record.is_for(of, channel))
    }

    /// Whether a message is due to a channel and not delivered.
    pub fn is_undelivered(&self, of: &NotificationKey, channel: &str) -> bool {
        !self.is_delivered(of, channel) && self.records().iter().any(|record| record.is_for(of, channel))
    }

    /// The runs with undelivered messages.
    pub fn runs_with_undelivered(&self) -> BTreeSet<RunId> {
        let records = self.records();
        records.iter().filter(|record| !record.is_delivered(&records)).map(|record| record.of.run).collect()
    }

    /// Records that a message is due to a channel. The end of a run is not retried, so it is not recorded.
    pub fn record_due(&self, of: &NotificationKey, channel: &str, since: Timestamp) -> io::Result<()> {
        let is_known = self.records().iter().any(|record| record.due.is_some() && record.is_for(of, channel));
        if is_known || of.event == NotificationKind::Done { Ok(()) } else { self.append(of, channel, Some(since)) }
    }

    /// Records that a message was delivered to a channel.
    pub fn record_delivered(&self, of: &NotificationKey, channel: &str) -> io::Result<()> {
        self.append(of, channel, None)
    }

    /// Appends a record under a lock, since other processes write to the same file.
    fn append(&self, of: &NotificationKey, channel: &str, due: Option<Timestamp>) -> io::Result<()> {
        let record = DeliveryRecord { of: of.clone(), channel: channel.to_owned(), due };
        if let Some(path) = &self.path {
            let mut file = OpenOptions::new().append(true).create(true).open(path)?;
            file.lock()?;
            file.write_all(record.to_line().as_bytes())?;
        }
        self.records().push(record);
        Ok(())
    }

    fn records(&self) -> MutexGuard<'_, Vec<DeliveryRecord>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn parse(text: &[u8], now: Timestamp) -> Vec<DeliveryRecord> {
    let records = text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    let is_fresh = |record: &DeliveryRecord| record.due.is_none_or(|since| now.duration_since(since) <= STALE);
    records.filter(is_fresh).collect()
}

/// Keeps the newest deliveries and all undelivered messages.
fn compact(path: &Path, now: Timestamp) -> io::Result<()> {
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    file.lock()?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    let records = parse(&text, now);
    let (delivered, due): (Vec<_>, Vec<_>) = records.iter().partition(|record| record.due.is_none());
    let newest = delivered.get(delivered.len().saturating_sub(MOST_LINES / 2)..).unwrap_or_default().iter().copied();
    let undelivered = due.into_iter().filter(|record| !record.is_delivered(&records));
    let short: String = newest.chain(undelivered).map(DeliveryRecord::to_line).collect();
    // In place, because other processes may wait for the lock on this file. If the process is killed here, lines are
    // duplicated and at most one is broken.
    file.seek(SeekFrom::Start(0))?;
    file.write_all(short.as_bytes())?;
    file.set_len(short.len() as u64)
}
