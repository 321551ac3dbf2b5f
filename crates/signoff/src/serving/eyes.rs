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
use super::same::Same;
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
    /// Why there is none, where there should be one.
    broken: Option<String>,
    looks: u64,
    /// How long the transcripts of those at work are.
    said: BTreeMap<PathBuf, u64>,
}

struct Open {
    /// The file that was opened. One that is thrown away can be read for ever, and nobody writes to it.
    same: Option<Same>,
    store: Arc<SqliteStore>,
    follow: Follow,
    driven: BTreeSet<u64>,
}

impl Eyes {
    pub fn new(root: &Path) -> Self {
        let own = root.join(DIRECTORY);
        let mut this = Self { own, open: None, broken: None, looks: 0, said: BTreeMap::new() };
        this.open();
        this
    }

    /// Opens the store. Whether anything is different now: it is there, or it is broken in another way than before.
    fn open(&mut self) -> bool {
        let (open, broken) = match Open::new(&self.own) {
            Ok(open) => (open, None),
            Err(failure) => (None, Some(failure.message().to_owned())),
        };
        let news = open.is_some() || broken != self.broken;
        (self.open, self.broken) = (open, broken);
        news
    }
}

impl Watcher for Eyes {
    fn look(&mut self) -> Change {
        self.looks += 1;
        // Somebody took the store away, or put another one there.
        let gone =
            self.open.take_if(|open| self.looks.is_multiple_of(OFTEN) && Same::of(&self.own) != open.same);
        let Some(open) = &mut self.open else {
            let news = self.open() || gone.is_some();
            return if news { Change::everything() } else { Change::default() };
        };
        let mut change = match open.look(self.looks.is_multiple_of(SELDOM)) {
            Ok(change) => change,
            Err(failure) => {
                // Pages say what is wrong.
                (self.open, self.broken) = (None, Some(failure.message().to_owned()));
                return Change::everything();
            }
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
        // Looked at first: what is put there meanwhile is another one with the next look.
        let same = Same::of(own);
        let Some(store) = SqliteStore::open_if_there(own)?.map(Arc::new) else { return Ok(None) };
        let follow = Follow::from_now(store.clone())?;
        let driven = driven(&store)?;
        Ok(Some(Self { same, store, follow, driven }))
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
