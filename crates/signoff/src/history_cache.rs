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

/// The longest log, in events, whose history is kept for a query. Longer ones are read again for each query.
const MAX_KEPT: u64 = 20_000;

/// The histories of the runs in the cache of a store. The cache drops ended runs when there are many; they are read
/// again when they are needed again.
#[derive(Default)]
pub struct HistoryCache {
    histories: Mutex<BTreeMap<RunId, Arc<RunHistory>>>,
    /// The transitions since the last `take_transitions`, if they are followed.
    transitions: Option<Mutex<Vec<Transition>>>,
}

impl TransitionObserver for HistoryCache {
    fn apply(&self, transition: &Transition) {
        let mut histories = lock(&self.histories);
        let history = histories.entry(transition.event.run).or_default();
        if transition.event.seq == 1 {
            *history = Arc::default();
        }
        Arc::make_mut(history).apply_transition(transition);
        self.transitions.iter().for_each(|transitions| lock(transitions).push(transition.clone()));
    }

    fn forget(&self, run: RunId) {
        lock(&self.histories).remove(&run);
    }
}

impl HistoryCache {
    /// Whether it keeps the transitions for `take_transitions`.
    pub fn is_followed(&self) -> bool {
        self.transitions.is_some()
    }

    /// Takes the transitions since the last call.
    pub fn take_transitions(&self) -> Vec<Transition> {
        self.transitions.as_ref().map(|transitions| std::mem::take(&mut *lock(transitions))).unwrap_or_default()
    }

    /// Whether the history of a run is known, or short enough to be kept.
    pub fn keeps(&self, store: &dyn Store, run: RunId) -> Result<bool> {
        Ok(self.cached(run).is_some() || store.last_seq(run)? <= MAX_KEPT)
    }

    /// The history of a run up to the end of its log.
    pub fn get(&self, store: &dyn Store, run: RunId) -> Result<Arc<RunHistory>> {
        store.run_state(run)?;
        Ok(self.cached(run).unwrap_or_default())
    }

    /// The history of a run, if it is known.
    pub fn cached(&self, run: RunId) -> Option<Arc<RunHistory>> {
        lock(&self.histories).get(&run).cloned()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The store of a repository, opened when it is needed, and again when it was replaced.
pub struct SharedStore {
    root: PathBuf,
    /// Whether the histories keep the transitions for `take_transitions`.
    is_followed: bool,
    open: Mutex<Option<OpenStore>>,
}

struct OpenStore {
    id: Option<StoreId>,
    store: Arc<SqliteStore>,
    histories: Arc<HistoryCache>,
}

impl OpenStore {
    fn new(id: Option<StoreId>, store: Arc<SqliteStore>, is_followed: bool) -> Self {
        let transitions = is_followed.then(Mutex::default);
        let histories = Arc::new(HistoryCache { transitions, ..HistoryCache::default() });
        store.set_observer(histories.clone());
        Self { id, store, histories }
    }
}

impl SharedStore {
    pub fn new(root: PathBuf) -> Self {
        Self { root, is_followed: false, open: Mutex::default() }
    }

    /// Keeps the transitions for `take_transitions`.
    pub fn followed(root: PathBuf) -> Self {
        Self { is_followed: true, ..Self::new(root) }
    }

    /// Starts with a store that is already open, for example that of the dispatcher.
    pub fn with_store(root: PathBuf, store: Arc<SqliteStore>) -> Self {
        let open = OpenStore::new(StoreId::from_directory(&root.join(DIRECTORY)), store, false);
        Self { root, is_followed: false, open: Mutex::new(Some(open)) }
    }

    /// The project with the current store, if there is one.
    pub fn project(&self) -> Result<Option<ReadOnlyProject>> {
        let mut open = lock(&self.open);
        // Read the identity before opening: a file replaced in between is noticed by the next call.
        let id = StoreId::from_directory(&self.root.join(DIRECTORY));
        if open.as_ref().is_none_or(|open| open.id != id) {
            // A store that is just being created is opened by the next call.
            let project = id.as_ref().map(|_| ReadOnlyProject::open_at(self.root.clone())).transpose()?.flatten();
            *open = project.map(|project| OpenStore::new(id, project.store, self.is_followed));
        }
        Ok(open.as_ref().map(|open| ReadOnlyProject {
            root: self.root.clone(),
            store: open.store.clone(),
            histories: Some(open.histories.clone()),
        }))
    }

    /// Whether the store of this project was deleted or replaced.
    pub fn is_replaced(&self, project: &ReadOnlyProject) -> Result<bool> {
        Ok(self.project()?.is_none_or(|current| !Arc::ptr_eq(&current.store, &project.store)))
    }
}
