//! Remembers the last commit that this process landed on the branch of each run.
//!
//! A landing is recorded after its lock is released, so the log may lack commits that the branch already contains.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use signoff_core::ids::{Commit, RunId};

/// The newest landed commit of each run. Accessed only while holding the landing lock.
#[derive(Debug, Default)]
pub struct LatestLandings {
    commits: Mutex<BTreeMap<RunId, Commit>>,
}

impl LatestLandings {
    pub fn get(&self, run: RunId) -> Option<Commit> {
        self.commits.lock().unwrap_or_else(PoisonError::into_inner).get(&run).cloned()
    }

    pub fn set(&self, run: RunId, commit: Commit) {
        self.commits.lock().unwrap_or_else(PoisonError::into_inner).insert(run, commit);
    }
}
