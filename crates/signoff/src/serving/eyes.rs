//! Who looks for changes: in the store, among those who work, and at what agents say.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use signoff_core::ids::LoopId;
use signoff_engine::layout::DIRECTORY;
use signoff_serve::web::{Change, Watcher};
use signoff_store::{SqliteStore, Store};

use super::changed;
use crate::failure::Failure;
use crate::follow::Follow;

/// Who works is looked at with every so many looks: a program that is killed records nothing.
const SELDOM: u64 = 20;

/// What agents said is looked at with every so many.
const OFTEN: u64 = 4;

pub struct Eyes {
    /// The directory of the store.
    own: PathBuf,
    /// None as long as there is no store.
    open: Option<Open>,
    looks: u64,
    /// How long the transcripts of those at work are.
    said: BTreeMap<PathBuf, u64>,
}

struct Open {
    store: Arc<SqliteStore>,
    follow: Follow,
    driven: BTreeSet<u64>,
}

impl Eyes {
    pub fn new(root: &Path) -> Self {
        let own = root.join(DIRECTORY);
        // What cannot be opened is tried again with every look.
        let open = Open::new(&own).ok().flatten();
        Self { own, open, looks: 0, said: BTreeMap::new() }
    }
}

impl Watcher for Eyes {
    fn look(&mut self) -> Change {
        self.looks += 1;
        let Some(open) = &mut self.open else {
            self.open = Open::new(&self.own).ok().flatten();
            return if self.open.is_some() { Change::everything() } else { Change::default() };
        };
        let Ok(mut change) = open.look(self.looks.is_multiple_of(SELDOM)) else {
            // Somebody took the store away, or put another one there: pages say what is wrong.
            self.open = None;
            return Change::everything();
        };
        if self.looks.is_multiple_of(OFTEN) {
            change.said.extend(self.heard());
        }
        change
    }
}

impl Eyes {
    /// The tasks whose agents said something since.
    fn heard(&mut self) -> BTreeSet<u64> {
        let links = fs::read_dir(self.own.join("live")).into_iter().flatten().flatten();
        let mut said = BTreeMap::new();
        let mut heard = BTreeSet::new();
        for attempt in links.filter_map(|link| fs::read_link(link.path()).ok()) {
            let length = attempt.join("stdout").metadata().map_or(0, |file| file.len());
            if self.said.get(&attempt).copied().unwrap_or(0) != length {
                heard.extend(task_of(&attempt));
            }
            said.insert(attempt, length);
        }
        self.said = said;
        heard
    }
}

/// The task of an attempt's directory, which bears the name of its loop's.
fn task_of(attempt: &Path) -> Option<u64> {
    let name = attempt.parent()?.file_name()?.to_str()?;
    changed::task(&LoopId::new(name))
}

impl Open {
    fn new(own: &Path) -> Result<Option<Self>, Failure> {
        let Some(store) = SqliteStore::open_if_there(own)?.map(Arc::new) else { return Ok(None) };
        let follow = Follow::from_now(store.clone())?;
        let driven = driven(&store)?;
        Ok(Some(Self { store, follow, driven }))
    }

    fn look(&mut self, who: bool) -> Result<Change, Failure> {
        let mut change = changed::by(&self.follow.news()?);
        if who {
            let driven = driven(&self.store)?;
            change.everything |= driven != self.driven;
            self.driven = driven;
        }
        Ok(change)
    }
}

/// The runs that some program works on now.
fn driven(store: &SqliteStore) -> Result<BTreeSet<u64>, Failure> {
    let mut driven = BTreeSet::new();
    for run in store.open_runs()? {
        if store.is_held(run.id)? {
            driven.insert(run.id.0);
        }
    }
    Ok(driven)
}
