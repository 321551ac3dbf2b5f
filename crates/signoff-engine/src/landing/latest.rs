//! What this process landed last on the branch of each run.
//!
//! A landing is recorded after its turn is over, so the log may lack what the branch already has.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use signoff_core::ids::{Commit, RunId};

/// The newest landed commit of each run. Read and written only by the holder of the landing turn.
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
