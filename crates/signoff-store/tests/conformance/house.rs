//! A place where stores live that outlive any one program.

use signoff_store::{MemoryStore, SqliteStore, Store};
use tempfile::TempDir;

pub trait House: Sync {
    /// The store as one more program sees it.
    fn program(&self) -> Box<dyn Store>;

    /// The host forgets who holds what.
    fn lose_leases(&self);
}

pub struct OnDisk {
    dir: TempDir,
}

impl Default for OnDisk {
    fn default() -> Self {
        Self { dir: tempfile::tempdir().expect("a directory") }
    }
}

impl House for OnDisk {
    fn program(&self) -> Box<dyn Store> {
        Box::new(SqliteStore::open(&self.dir.path().join(".signoff")).expect("a store"))
    }

    fn lose_leases(&self) {
        std::fs::remove_dir_all(self.dir.path().join(".signoff/leases")).expect("leases");
    }
}

#[derive(Default)]
pub struct InMemory {
    store: MemoryStore,
}

impl House for InMemory {
    fn program(&self) -> Box<dyn Store> {
        Box::new(self.store.clone())
    }

    fn lose_leases(&self) {
        self.store.lose_leases();
    }
}
