//! Remembers which notes were shown, so that each is shown once.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// The notes that this process has shown.
#[derive(Debug, Default)]
pub struct SeenNotes(Mutex<BTreeSet<String>>);

impl SeenNotes {
    /// Whether the note was not shown before. Remembers it.
    pub fn is_new(&self, note: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(note.to_owned())
    }
}
