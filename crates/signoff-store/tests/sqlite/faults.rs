//! Full disks, damaged files, rows nobody can read.

use std::sync::Barrier;
use std::time::Duration;

use signoff_core::group::RunEvent;
use signoff_core::ids::{RunId, TaskId};
use signoff_core::wire::QUEUE;
use signoff_store::{SqliteOptions, SqliteStore, Store, StoreError};

use crate::place::Place;
use crate::say;

fn complaint<T>(result: Result<T, StoreError>) -> String {
    result.err().expect("refused").to_string()
}

#[test]
fn a_full_disk_loses_nothing_and_work_goes_on_when_there_is_room() {
    let place = Place::new();
    drop(place.open());
    let pages: u32 = place.ask("PRAGMA page_count").parse().expect("a number");
    let small = SqliteOptions { max_pages: Some(pages + 12), ..SqliteOptions::default() };
    let store = SqliteStore::open_with(&place.dir(), small).expect("a store");
    let lease = store.open_run(say::at(1)).expect("a run");
    store.append(&lease, say::at(1), &[say::opened("loops")]).expect("appended");

    let long = say::task(&format!("A task\n\n{}", "with many words ".repeat(200)));
    let mut added = 0;
    let error = loop {
        match store.add_tasks(say::at(2), std::slice::from_ref(&long)) {
            Ok(_) => added += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::Full), "{error}");
    assert!(added > 0);
    let facts: Vec<_> = (0..200).map(|_| say::run(RunEvent::NothingToPick)).collect();
    assert!(matches!(store.append(&lease, say::at(3), &facts), Err(StoreError::Full)));

    // The same store can still be read, and nothing of what was refused is there.
    assert_eq!(store.tasks().expect("tasks").len(), added);
    assert_eq!(store.log(lease.run()).expect("a log").len(), 1);
    assert_eq!(store.log(QUEUE).expect("a log").len(), added);
    assert_eq!(store.check().expect("checked"), [""; 0]);

    let roomy = place.open();
    let next = roomy.add_tasks(say::at(4), &[long]).expect("added");
    assert_eq!(next, [TaskId(added as u64 + 1)], "no number was lost");
    assert_eq!(roomy.append(&lease, say::at(5), &facts).expect("appended").len(), 200);
    assert_eq!(store.check().expect("checked"), [""; 0]);
}

#[test]
fn a_store_goes_on_after_a_commit_that_failed() {
    let place = Place::new();
    let small = SqliteOptions { max_pages: Some(80), ..SqliteOptions::default() };
    let store = SqliteStore::open_with(&place.dir(), small).expect("a store");
    let lease = store.open_run(say::at(1)).expect("a run");
    let many: Vec<_> = (0..5_000).map(|_| say::run(RunEvent::NothingToPick)).collect();
    for _ in 0..3 {
        assert!(matches!(store.append(&lease, say::at(2), &many), Err(StoreError::Full)));
        store.append(&lease, say::at(3), &[say::run(RunEvent::Started)]).expect("a small one fits");
    }
    assert_eq!(store.log(lease.run()).expect("a log").len(), 3);
}

#[test]
fn a_database_that_somebody_holds_is_busy_until_it_is_free() {
    let place = Place::new();
    let hasty = SqliteOptions { patience: Some(Duration::ZERO), ..SqliteOptions::default() };
    let store = SqliteStore::open_with(&place.dir(), hasty).expect("a store");
    let other = place.sql();
    other.execute_batch("BEGIN IMMEDIATE").expect("held");
    assert!(matches!(store.add_tasks(say::at(1), &[say::task("a")]), Err(StoreError::Busy)));
    assert_eq!(store.tasks().expect("readers do not wait"), []);
    other.execute_batch("COMMIT").expect("free");
    assert_eq!(store.add_tasks(say::at(1), &[say::task("a")]).expect("added"), [TaskId(1)]);
}

#[test]
fn a_file_that_is_no_database_is_named_so() {
    let place = Place::new();
    std::fs::create_dir_all(place.dir()).expect("a directory");
    std::fs::write(place.file(), "this is not a database, however long it is ".repeat(100)).expect("written");
    let refused = SqliteStore::open(&place.dir());
    assert!(matches!(refused, Err(StoreError::Damaged(_))));
    insta::assert_snapshot!(complaint(refused), @"the database is damaged: file is not a database");
}

#[test]
fn a_newer_database_is_left_alone() {
    let place = Place::new();
    drop(place.open());
    place.sql().pragma_update(None, "user_version", 99).expect("set");
    insta::assert_snapshot!(
        complaint(SqliteStore::open(&place.dir())),
        @"the database was written by a newer signoff (version 99, this one knows 7)"
    );
}

#[test]
fn a_damaged_file_is_noticed() {
    let place = Place::new();
    let tasks: Vec<_> = (0..400).map(|number| say::task(&format!("Task {number}"))).collect();
    place.open().add_tasks(say::at(1), &tasks).expect("added");
    // What is still in the log beside it is not read from the file.
    place.sql().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").expect("moved into the file");
    let mut bytes = std::fs::read(place.file()).expect("read");
    let half = bytes.len() / 2;
    bytes[half..half + 8_192].fill(0xA5);
    std::fs::write(place.file(), bytes).expect("written");
    assert_ne!(place.open().check().expect("checked"), [""; 0]);
}

#[test]
fn rows_that_cannot_be_read_are_named() {
    let place = Place::new();
    let store = place.open();
    let lease = store.open_run(say::at(1)).expect("a run");
    let facts = [say::opened("task"), say::run(RunEvent::Started), say::run(RunEvent::NothingToPick)];
    store.append(&lease, say::at(1), &facts).expect("appended");
    store.append(&lease, say::at(1), &facts[1..]).expect("appended");
    let sql = place.sql();
    for (seq, change) in [
        (2, "body = '{broken'"),
        (3, "kind = 'run.danced'"),
        (4, "version = 9"),
        (5, "body = CAST(x'ff' AS TEXT)"),
    ] {
        let changed = sql.execute(&format!("UPDATE events SET {change} WHERE seq = {seq}"), []);
        assert_eq!(changed.expect("changed"), 1);
    }
    assert!(matches!(store.log(RunId(1)), Err(StoreError::Unreadable { run: RunId(1), seq: 2, .. })));
    assert!(matches!(store.rebuild(), Err(StoreError::Unreadable { seq: 2, .. })));
    insta::assert_snapshot!(store.check().expect("checked").join("\n"), @r"
        run 1, fact 2: `body`: key must be a string at line 1 column 2
        run 1, fact 3: unknown kind `run.danced`
        run 1, fact 4: version 9 is newer than this program, which reads up to 1: update signoff
        run 1, fact 5: `body`: invalid utf-8 sequence of 1 bytes from index 0 at index 7
        ");
}

#[test]
fn tables_that_were_changed_by_hand_are_noticed_and_told_again() {
    let place = Place::new();
    let store = place.open();
    store.add_tasks(say::at(1), &[say::task("a"), say::task("b")]).expect("added");
    let before = place.dump();
    let version = store.version().expect("a number");
    place
        .sql()
        .execute_batch("UPDATE tasks SET title = 'c'; DELETE FROM tasks WHERE id = 2")
        .expect("changed");
    assert_ne!(store.version().expect("a number"), version);
    insta::assert_snapshot!(
        store.check().expect("checked").join("\n"),
        @"table tasks: 2 rows differ from the log: rebuild the tables"
    );
    store.rebuild().expect("rebuilt");
    assert_eq!(place.dump(), before);
    assert_eq!(store.check().expect("checked"), [""; 0]);
}

#[test]
fn an_odd_cell_is_an_error_with_a_way_out() {
    let place = Place::new();
    let store = place.open();
    store.add_tasks(say::at(1), &[say::task("a")]).expect("added");
    place.sql().execute_batch("UPDATE tasks SET status = 'dancing'").expect("changed");
    insta::assert_snapshot!(
        complaint(store.tasks()),
        @r#"the database is damaged: a table holds "dancing" where a word it knows belongs: rebuild the tables"#
    );
}

#[test]
fn a_crash_leaves_what_was_committed() {
    let place = Place::new();
    place.open().add_tasks(say::at(1), &[say::task("a")]).expect("added");
    let half_done = place.sql();
    half_done.execute_batch("BEGIN IMMEDIATE; DELETE FROM events; DELETE FROM tasks").expect("changed");
    drop(half_done);
    let store = place.open();
    assert_eq!(store.queued(TaskId(0), 99).expect("the queue").len(), 1);
    assert_eq!(store.check().expect("checked"), [""; 0]);
}

#[test]
fn programs_that_start_at_once_make_one_database() {
    let place = Place::new();
    let begin = Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                begin.wait();
                place.open().add_tasks(say::at(1), &[say::task("a")]).expect("added");
            });
        }
    });
    assert_eq!(place.open().queued(TaskId(0), 99).expect("the queue").len(), 8);
}

#[test]
fn looking_makes_no_database() {
    let place = Place::new();
    assert!(SqliteStore::open_if_there(&place.dir()).expect("looked").is_none());
    assert!(!place.dir().exists());
    drop(place.open());
    assert!(SqliteStore::open_if_there(&place.dir()).expect("looked").is_some());
}

#[test]
fn an_append_is_one_commit() {
    let place = Place::new();
    let store = place.open();
    let lease = store.open_run(say::at(1)).expect("a run");
    let before = store.commits();
    let facts: Vec<_> = (0..50).map(|_| say::run(RunEvent::NothingToPick)).collect();
    store.append(&lease, say::at(2), &facts).expect("appended");
    store.append(&lease, say::at(2), &[]).expect("nothing");
    assert_eq!(store.commits() - before, 1);
}

/// Programs that come and go, as people add tasks one by one.
#[test]
fn the_log_beside_the_file_stays_short() {
    let place = Place::new();
    let longest = (0..200).map(|number| {
        place.open().add_tasks(say::at(number), &[say::task("One more")]).expect("added");
        std::fs::metadata(place.file().with_extension("db-wal")).map_or(0, |log| log.len())
    });
    assert!(longest.max() < Some(2_000_000));
    assert_eq!(place.open().check().expect("checked"), [""; 0]);
}
