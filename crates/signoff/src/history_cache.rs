//! The store of a process that outlives single queries, and the histories of the runs that the process has read.
//!
//! Every event that such a process reads or records is applied once, by the cache of the store. The histories take over
//! the transitions.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use signoff_core::ids::RunId;
use signoff_core::view::Transition;
use signoff_engine::layout::DIRECTORY;
use signoff_store::{SqliteStore, Store, TransitionObserver};
use signoff_term::show::RunHistory;

use crate::web_backend::StoreId;
use crate::{ReadOnlyProject, Result};

/// The histories of the runs in the cache of a store. The cache drops ended runs when there are many; they are read
/// again when they are needed again.
#[derive(Default)]
pub struct HistoryCache(Mutex<BTreeMap<RunId, Arc<RunHistory>>>);

impl TransitionObserver for HistoryCache {
    fn apply(&self, transition: &Transition) {
        let mut histories = self.histories();
        let history = histories.entry(transition.event.run).or_default();
        if transition.event.seq == 1 {
            *history = Arc::default();
        }
        Arc::make_mut(history).apply_transition(transition);
    }

    fn forget(&self, run: RunId) {
        self.histories().remove(&run);
    }
}

impl HistoryCache {
    fn histories(&self) -> MutexGuard<'_, BTreeMap<RunId, Arc<RunHistory>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The history of a run up to the end of its log.
    pub fn get(&self, store: &dyn Store, run: RunId) -> Result<Arc<RunHistory>> {
        store.run_state(run)?;
        Ok(self.cached(run).unwrap_or_default())
    }

    /// The history of a run, if it is known.
    pub fn cached(&self, run: RunId) -> Option<Arc<RunHistory>> {
        self.histories().get(&run).cloned()
    }
}

/// The store of a repository, opened when it is needed, and again when it was replaced.
pub struct SharedStore {
    root: PathBuf,
    open: Mutex<Option<OpenStore>>,
}

struct OpenStore {
    id: Option<StoreId>,
    store: Arc<SqliteStore>,
    histories: Arc<HistoryCache>,
}

impl OpenStore {
    fn new(id: Option<StoreId>, store: Arc<SqliteStore>) -> Self {
        let histories = Arc::<HistoryCache>::default();
        store.set_observer(histories.clone());
        Self { id, store, histories }
    }
}

impl SharedStore {
    pub fn new(root: PathBuf) -> Self {
        Self { root, open: Mutex::default() }
    }

    /// Starts with a store that is already open, for example that of the dispatcher.
    pub fn with_store(root: PathBuf, store: Arc<SqliteStore>) -> Self {
        let open = OpenStore::new(StoreId::from_directory(&root.join(DIRECTORY)), store);
        Self { root, open: Mutex::new(Some(open)) }
    }

    /// The project with the current store, if there is one.
    pub fn project(&self) -> Result<Option<ReadOnlyProject>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        // Read the identity before opening: a file replaced in between is noticed by the next call.
        let id = StoreId::from_directory(&self.root.join(DIRECTORY));
        if open.as_ref().is_none_or(|open| open.id != id) {
            let project = ReadOnlyProject::open_at(self.root.clone())?;
            *open = project.map(|project| OpenStore::new(id, project.store));
        }
        Ok(open.as_ref().map(|open| ReadOnlyProject {
            root: self.root.clone(),
            store: open.store.clone(),
            histories: Some(open.histories.clone()),
        }))
    }
}
