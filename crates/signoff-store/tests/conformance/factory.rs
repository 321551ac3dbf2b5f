//! Factories that open one store several times, as several processes would.

use signoff_store::{SqliteStore, Store};
use signoff_testkit::MemoryStore;
use tempfile::TempDir;

pub trait StoreFactory: Sync {
    /// Opens the store like another process.
    fn open_store(&self) -> Box<dyn Store>;

    /// Drops all lease locks, as a host crash would.
    fn lose_leases(&self);
}

pub struct SqliteFactory {
    dir: TempDir,
}

impl Default for SqliteFactory {
    fn default() -> Self {
        Self { dir: tempfile::tempdir().expect("a directory") }
    }
}

impl StoreFactory for SqliteFactory {
    fn open_store(&self) -> Box<dyn Store> {
        Box::new(SqliteStore::open(&self.dir.path().join(".signoff")).expect("a store"))
    }

    fn lose_leases(&self) {
        std::fs::remove_dir_all(self.dir.path().join(".signoff/leases")).expect("leases");
    }
}

#[derive(Default)]
pub struct MemoryFactory {
    store: MemoryStore,
}

impl StoreFactory for MemoryFactory {
    fn open_store(&self) -> Box<dyn Store> {
        Box::new(self.store.clone())
    }

    fn lose_leases(&self) {
        self.store.lose_leases();
    }
}
