//! A process applies each event once, with any number of connections. Each test is a process of its own.

use std::sync::{Arc, Mutex};

use signoff_core::group::RunEvent;
use signoff_core::ids::RunId;
use signoff_core::view::{Transition, applied_events};
use signoff_store::{SqliteStore, Store, TransitionObserver};

use crate::conformance::make;

/// Keeps the numbers of the events it gets.
#[derive(Default)]
struct Numbers(Mutex<Vec<u64>>);

impl TransitionObserver for Numbers {
    fn apply(&self, transition: &Transition) {
        self.0.lock().expect("a lock").push(transition.event.seq);
    }

    fn forget(&self, _run: RunId) {}
}

#[test]
fn a_log_that_grows_is_not_applied_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let writer = SqliteStore::open(dir.path()).expect("a store");
    let lease = writer.open_run(make::at(1)).expect("a run");
    writer.append(&lease, make::at(2), &[make::opened("task")]).expect("appended");
    let reader = SqliteStore::open(dir.path()).expect("a store");
    let observer = Arc::new(Numbers::default());
    reader.set_observer(observer.clone());
    let sibling = reader.reconnect().expect("a connection");
    for (store, seq) in [(&reader, 2), (&sibling, 3), (&reader, 4)] {
        assert_eq!(store.run_state(lease.run()).expect("a state").seq, seq - 1);
        writer.append(&lease, make::at(3), &[make::run(RunEvent::Started)]).expect("appended");
        assert_eq!(store.preload(lease.run()).expect("a state").seq, seq);
    }
    drop(lease);
    // The writer has its own cache: it applied each event too.
    let applied: Vec<_> = applied_events().into_values().collect();
    assert_eq!(applied, [2, 2, 2, 2]);
    assert_eq!(*observer.0.lock().expect("a lock"), [1, 2, 3, 4]);
    let lease = sibling.acquire(RunId(1)).expect("free");
    sibling.append(&lease, make::at(4), &[make::run(RunEvent::NothingToPick)]).expect("appended");
    assert_eq!(reader.run_state(RunId(1)).expect("a state").seq, 5);
    assert_eq!(applied_events().get(&(RunId(1), 5)), Some(&1));
    assert_eq!(reader.check().expect("checked"), Vec::<String>::new());
}

#[test]
fn a_fact_that_was_not_appended_is_forgotten_by_all_connections() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = SqliteStore::open(dir.path()).expect("a store");
    let sibling = store.reconnect().expect("a connection");
    let observer = Arc::new(Numbers::default());
    store.set_observer(observer.clone());
    let lease = store.open_run(make::at(1)).expect("a run");
    store.append(&lease, make::at(2), &[make::opened("task")]).expect("appended");
    let blocker = rusqlite::Connection::open(SqliteStore::path(dir.path())).expect("a connection");
    blocker
        .execute_batch("CREATE TRIGGER refuse BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'no'); END")
        .expect("SQL");
    store.append(&lease, make::at(3), &[make::run(RunEvent::Started)]).expect_err("refused");
    assert_eq!(sibling.run_state(lease.run()).expect("a state").seq, 1);
    blocker.execute_batch("DROP TRIGGER refuse").expect("SQL");
    sibling.append(&lease, make::at(3), &[make::run(RunEvent::Started)]).expect("appended");
    assert_eq!(store.run_state(lease.run()).expect("a state").seq, 2);
    // The refused event was not observed; the run starts again after it.
    assert_eq!(*observer.0.lock().expect("a lock"), [1, 1, 2]);
}

#[test]
fn a_log_is_applied_in_parts_by_any_connection() {
    let dir = tempfile::tempdir().expect("a directory");
    let writer = SqliteStore::open(dir.path()).expect("a store");
    let lease = writer.open_run(make::at(1)).expect("a run");
    let facts = [make::opened("task"), make::run(RunEvent::Started), make::run(RunEvent::NothingToPick)];
    writer.append(&lease, make::at(2), &facts).expect("appended");
    let reader = SqliteStore::open(dir.path()).expect("a store");
    let observer = Arc::new(Numbers::default());
    reader.set_observer(observer.clone());
    let sibling = reader.reconnect().expect("a connection");
    for (store, is_complete, seqs) in [
        (&reader, false, &[1][..]),
        (&sibling, false, &[1, 2]),
        (&reader, true, &[1, 2, 3]),
        (&reader, true, &[1, 2, 3]),
    ] {
        assert_eq!(store.advance(lease.run(), 1).expect("a log"), is_complete);
        assert_eq!(*observer.0.lock().expect("a lock"), seqs);
    }
    assert_eq!(reader.run_state(lease.run()).expect("a state").seq, 3);
    // The writer has applied each event too.
    assert!(applied_events().values().all(|count| *count == 2));
}

#[test]
fn a_run_that_was_read_is_executed_without_applying_its_events_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let writer = SqliteStore::open(dir.path()).expect("a store");
    let lease = writer.open_run(make::at(1)).expect("a run");
    writer.append(&lease, make::at(2), &[make::opened("task")]).expect("appended");
    drop(lease);
    let store = SqliteStore::open(dir.path()).expect("a store");
    let mut run_state = store.run_state(RunId(1)).expect("a state");
    let lease = store.acquire(RunId(1)).expect("free");
    assert_eq!(store.preload(RunId(1)).expect("a state"), run_state);
    store.append_to(&mut run_state, &lease, make::at(3), &[make::run(RunEvent::Started)]).expect("appended");
    // The writer has applied the first event too.
    assert_eq!(applied_events().into_values().collect::<Vec<_>>(), [2, 1]);
    assert_eq!(store.check().expect("checked"), Vec::<String>::new());
}
