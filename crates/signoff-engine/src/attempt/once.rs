//! What people need to be told once.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// What was said by this program already.
#[derive(Debug, Default)]
pub struct Once(Mutex<BTreeSet<String>>);

impl Once {
    /// Whether it has not been said before.
    pub fn is_new(&self, note: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(note.to_owned())
    }
}
