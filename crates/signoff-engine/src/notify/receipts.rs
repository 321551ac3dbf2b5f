//! What got through to whom, kept over the end of the program: what still holds is told again until it did.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use signoff_core::ids::RunId;
use signoff_core::notify::{Occasion, Occurrence};

/// What nobody took for so long is of no use any more.
const STALE: SignedDuration = SignedDuration::from_hours(7 * 24);

/// A file with more lines than this is made shorter, to half of it.
const MOST_LINES: usize = 1000;

/// A line in a file for each message that was due to a channel, and one for each that a channel took.
#[derive(Debug)]
pub struct Receipts {
    /// None where nothing is kept.
    path: Option<PathBuf>,
    book: Mutex<Book>,
}

/// What the lines say.
#[derive(Debug, Default)]
struct Book {
    /// The lines of what was taken.
    taken: BTreeSet<String>,
    /// Since when, and for which run, by the line that says that it was taken.
    due: BTreeMap<String, (Timestamp, RunId)>,
}

#[derive(Serialize, Deserialize)]
struct Receipt<'a> {
    #[serde(flatten)]
    of: Cow<'a, Occurrence>,
    channel: Cow<'a, str>,
    /// Since when it is due; none once it was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due: Option<Timestamp>,
}

impl Receipts {
    /// Those in this file, which need not be there yet. What cannot be read is told once more. A file that grew long is
    /// made shorter.
    pub fn in_file(path: PathBuf, now: Timestamp) -> Self {
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).into_owned();
        if text.lines().count() > MOST_LINES {
            // It stays long where it cannot be written.
            shorten(&path, now).ok();
        }
        Self { path: Some(path), book: Mutex::new(Book::of(&text, now)) }
    }

    /// None, and none is kept.
    pub fn none() -> Self {
        Self { path: None, book: Mutex::default() }
    }

    /// Whether a channel took it.
    pub fn has(&self, of: &Occurrence, channel: &str) -> bool {
        self.book().taken.contains(&line(of, channel, None))
    }

    /// Whether it was due to a channel that did not take it.
    pub fn owes(&self, of: &Occurrence, channel: &str) -> bool {
        let line = line(of, channel, None);
        let book = self.book();
        book.due.contains_key(&line) && !book.taken.contains(&line)
    }

    /// The runs of which something is due.
    pub fn owed(&self) -> BTreeSet<RunId> {
        let book = self.book();
        book.due.iter().filter(|(line, _)| !book.taken.contains(*line)).map(|(_, (_, run))| *run).collect()
    }

    /// A channel is to take it. Not kept of an end, which nobody needs to hear of later.
    pub fn owe(&self, of: &Occurrence, channel: &str, since: Timestamp) -> io::Result<()> {
        let known = line(of, channel, None);
        if of.event == Occasion::Done || self.book().due.contains_key(&known) {
            return Ok(());
        }
        self.append(&line(of, channel, Some(since)))?;
        self.book().due.insert(known, (since, of.run));
        Ok(())
    }

    /// A channel took it.
    pub fn keep(&self, of: &Occurrence, channel: &str) -> io::Result<()> {
        let line = line(of, channel, None);
        self.append(&line)?;
        self.book().taken.insert(line);
        Ok(())
    }

    /// Other programs write there as well: a line goes in at once, or not at all.
    fn append(&self, line: &str) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let mut file = OpenOptions::new().append(true).create(true).open(path)?;
        file.lock()?;
        file.write_all(format!("{line}\n").as_bytes())
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    fn of(text: &str, now: Timestamp) -> Self {
        let mut book = Self::default();
        for text in text.lines() {
            let Ok(receipt) = serde_json::from_str::<Receipt<'_>>(text) else { continue };
            let taken = line(&receipt.of, &receipt.channel, None);
            match receipt.due {
                None => drop(book.taken.insert(taken)),
                Some(since) if now.duration_since(since) > STALE => {}
                Some(since) => drop(book.due.insert(taken, (since, receipt.of.run))),
            }
        }
        book
    }
}

/// Leaves the newest of what was taken, and what is still due.
fn shorten(path: &Path, now: Timestamp) -> io::Result<()> {
    let mut file: File = OpenOptions::new().read(true).write(true).open(path)?;
    file.lock()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let book = Book::of(&text, now);
    let taken: Vec<&str> = text.lines().filter(|line| book.taken.contains(*line)).collect();
    let newest = taken.get(taken.len().saturating_sub(MOST_LINES / 2)..).unwrap_or_default();
    let is_due = |line: &&str| {
        let receipt = serde_json::from_str::<Receipt<'_>>(line).ok().filter(|receipt| receipt.due.is_some());
        let taken = receipt.map(|receipt| self::line(&receipt.of, &receipt.channel, None));
        taken.is_some_and(|taken| book.due.contains_key(&taken) && !book.taken.contains(&taken))
    };
    let due = text.lines().filter(is_due);
    let short: String = newest.iter().copied().chain(due).map(|line| format!("{line}\n")).collect();
    // Whoever is killed in between leaves lines twice, and at most a broken one.
    file.seek(SeekFrom::Start(0))?;
    file.write_all(short.as_bytes())?;
    file.set_len(short.len() as u64)
}

fn line(of: &Occurrence, channel: &str, due: Option<Timestamp>) -> String {
    let (of, channel) = (Cow::Borrowed(of), channel.into());
    serde_json::to_string(&Receipt { of, channel, due }).unwrap_or_default()
}
