//! What got through to whom, kept over the end of the program: what still holds is told again until it did.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use signoff_core::notify::Occurrence;

/// One line in a file for each message that a channel took.
#[derive(Debug)]
pub struct Receipts {
    /// None where nothing is kept.
    path: Option<PathBuf>,
    known: Mutex<BTreeSet<String>>,
}

#[derive(Serialize)]
struct Receipt<'a> {
    #[serde(flatten)]
    of: &'a Occurrence,
    channel: &'a str,
}

impl Receipts {
    /// Those in this file, which need not be there yet. What cannot be read is told once more.
    pub fn in_file(path: PathBuf) -> Self {
        let kept = fs::read(&path).unwrap_or_default();
        let known = String::from_utf8_lossy(&kept).lines().map(str::to_owned).collect();
        Self { path: Some(path), known: Mutex::new(known) }
    }

    /// None, and none is kept.
    pub fn none() -> Self {
        Self { path: None, known: Mutex::default() }
    }

    /// Whether a channel took it.
    pub fn has(&self, of: &Occurrence, channel: &str) -> bool {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).contains(&line(of, channel))
    }

    /// A channel took it.
    pub fn keep(&self, of: &Occurrence, channel: &str) -> io::Result<()> {
        let line = line(of, channel);
        // Other programs write there as well: a line goes in at once, or not at all.
        if let Some(path) = &self.path {
            let mut file = OpenOptions::new().append(true).create(true).open(path)?;
            file.write_all(format!("{line}\n").as_bytes())?;
        }
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(line);
        Ok(())
    }
}

fn line(of: &Occurrence, channel: &str) -> String {
    serde_json::to_string(&Receipt { of, channel }).unwrap_or_default()
}
