//! Full disks, damaged files and unreadable rows.

use std::sync::Barrier;
use std::time::Duration;

use signoff_core::group::RunEvent;
use signoff_core::ids::{RunId, TaskId};
use signoff_core::wire::QUEUE;
use signoff_store::{SqliteOptions, SqliteStore, Store, StoreError};

use crate::conformance::make;
use crate::sqlite::fixture::StoreFixture;

fn error_message<T>(result: Result<T, StoreError>) -> String {
    result.err().expect("refused").to_string()
}

#[test]
fn a_full_disk_loses_nothing_and_appends_work_again_later() {
    let fixture = StoreFixture::new();
    drop(fixture.open());
    let pages: u32 = fixture.query("PRAGMA page_count").parse().expect("a number");
    let small = SqliteOptions { max_pages: Some(pages + 12), ..SqliteOptions::default() };
    let store = SqliteStore::open_with_options(&fixture.dir(), small).expect("a store");
    let lease = store.open_run(make::at(1)).expect("a run");
    store.append(&lease, make::at(1), &[make::opened("loops")]).expect("appended");

    let long = make::task(&format!("A task\n\n{}", "with many words ".repeat(200)));
    let mut added = 0;
    let error = loop {
        match store.add_tasks(make::at(2), std::slice::from_ref(&long)) {
            Ok(_) => added += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::DiskFull), "{error}");
    assert!(added > 0);
    let facts: Vec<_> = (0..200).map(|_| make::run(RunEvent::NothingToPick)).collect();
    assert!(matches!(store.append(&lease, make::at(3), &facts), Err(StoreError::DiskFull)));

    // The same store can still be read, and the refused data is absent.
    assert_eq!(store.tasks().expect("tasks").len(), added);
    assert_eq!(store.log(lease.run()).expect("a log").len(), 1);
    assert_eq!(store.log(QUEUE).expect("a log").len(), added);
    assert_eq!(store.check().expect("checked"), [""; 0]);

    let roomy = fixture.open();
    let next = roomy.add_tasks(make::at(4), &[long]).expect("added");
    assert_eq!(next, [TaskId(added as u64 + 1)], "no number was lost");
    assert_eq!(roomy.append(&lease, make::at(5), &facts).expect("appended").len(), 200);
    assert_eq!(store.check().expect("checked"), [""; 0]);
}

#[test]
fn a_store_works_after_a_failed_commit() {
    let fixture = StoreFixture::new();
    let small = SqliteOptions { max_pages: Some(80), ..SqliteOptions::default() };
    let store = SqliteStore::open_with_options(&fixture.dir(), small).expect("a store");
    let lease = store.open_run(make::at(1)).expect("a run");
    let many: Vec<_> = (0..5_000).map(|_| make::run(RunEvent::NothingToPick)).collect();
    for _ in 0..3 {
        assert!(matches!(store.append(&lease, make::at(2), &many), Err(StoreError::DiskFull)));
        store.append(&lease, make::at(3), &[make::run(RunEvent::Started)]).expect("a small one fits");
    }
    assert_eq!(store.log(lease.run()).expect("a log").len(), 3);
}

#[test]
fn a_locked_database_is_busy_until_it_is_free() {
    let fixture = StoreFixture::new();
    let hasty = SqliteOptions { busy_timeout: Some(Duration::ZERO), ..SqliteOptions::default() };
    let store = SqliteStore::open_with_options(&fixture.dir(), hasty).expect("a store");
    let other = fixture.sql();
    other.execute_batch("BEGIN IMMEDIATE").expect("held");
    assert!(matches!(store.add_tasks(make::at(1), &[make::task("a")]), Err(StoreError::Busy)));
    assert_eq!(store.tasks().expect("readers do not wait"), []);
    other.execute_batch("COMMIT").expect("free");
    assert_eq!(store.add_tasks(make::at(1), &[make::task("a")]).expect("added"), [TaskId(1)]);
}

#[test]
fn a_file_that_is_no_database_is_an_error() {
    let fixture = StoreFixture::new();
    std::fs::create_dir_all(fixture.dir()).expect("a directory");
    std::fs::write(fixture.file(), "this is not a database, however long it is ".repeat(100)).expect("written");
    let refused = SqliteStore::open(&fixture.dir());
    assert!(matches!(refused, Err(StoreError::Damaged(_))));
    insta::assert_snapshot!(error_message(refused), @"the database is damaged: file is not a database");
}

#[test]
fn a_newer_database_is_not_opened() {
    let fixture = StoreFixture::new();
    drop(fixture.open());
    fixture.sql().pragma_update(None, "user_version", 99).expect("set");
    insta::assert_snapshot!(
        error_message(SqliteStore::open(&fixture.dir())),
        @"the database was written by a newer signoff (version 99, this signoff supports version 8)"
    );
}

#[test]
fn a_damaged_file_is_detected() {
    let fixture = StoreFixture::new();
    let tasks: Vec<_> = (0..400).map(|number| make::task(&format!("Task {number}"))).collect();
    fixture.open().add_tasks(make::at(1), &tasks).expect("added");
    // Move the write-ahead log into the file, so that all data is read from the file.
    fixture.sql().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").expect("moved into the file");
    let mut bytes = std::fs::read(fixture.file()).expect("read");
    let half = bytes.len() / 2;
    bytes[half..half + 8_192].fill(0xA5);
    std::fs::write(fixture.file(), bytes).expect("written");
    assert_ne!(fixture.open().check().expect("checked"), [""; 0]);
}

#[test]
fn unreadable_rows_are_reported() {
    let fixture = StoreFixture::new();
    let store = fixture.open();
    let lease = store.open_run(make::at(1)).expect("a run");
    let facts = [make::opened("task"), make::run(RunEvent::Started), make::run(RunEvent::NothingToPick)];
    store.append(&lease, make::at(1), &facts).expect("appended");
    store.append(&lease, make::at(1), &facts[1..]).expect("appended");
    let sql = fixture.sql();
    for (seq, change) in
        [(2, "body = '{broken'"), (3, "kind = 'run.danced'"), (4, "version = 9"), (5, "body = CAST(x'ff' AS TEXT)")]
    {
        let changed = sql.execute(&format!("UPDATE events SET {change} WHERE seq = {seq}"), []);
        assert_eq!(changed.expect("changed"), 1);
    }
    assert!(matches!(store.log(RunId(1)), Err(StoreError::Unreadable { run: RunId(1), seq: 2, .. })));
    assert!(matches!(store.rebuild(), Err(StoreError::Unreadable { seq: 2, .. })));
    insta::assert_snapshot!(store.check().expect("checked").join("\n"), @r"
        run 1, event 2: `body`: key must be a string at line 1 column 2
        run 1, event 3: unknown kind `run.danced`
        run 1, event 4: version 9 is newer than this program, which reads up to 1: update signoff
        run 1, event 5: `body`: invalid utf-8 sequence of 1 bytes from index 0 at index 7
        ");
}

#[test]
fn manual_changes_of_tables_are_detected_and_rebuilt() {
    let fixture = StoreFixture::new();
    let store = fixture.open();
    store.add_tasks(make::at(1), &[make::task("a"), make::task("b")]).expect("added");
    let before = fixture.dump();
    let version = store.version().expect("a number");
    fixture.sql().execute_batch("UPDATE tasks SET title = 'c'; DELETE FROM tasks WHERE id = 2").expect("changed");
    assert_ne!(store.version().expect("a number"), version);
    insta::assert_snapshot!(
        store.check().expect("checked").join("\n"),
        @"table tasks: 2 rows differ from the log: rebuild the tables"
    );
    store.rebuild().expect("rebuilt");
    assert_eq!(fixture.dump(), before);
    assert_eq!(store.check().expect("checked"), [""; 0]);
}

#[test]
fn an_unknown_value_in_a_cell_is_an_error_with_a_hint() {
    let fixture = StoreFixture::new();
    let store = fixture.open();
    store.add_tasks(make::at(1), &[make::task("a")]).expect("added");
    fixture.sql().execute_batch("UPDATE tasks SET status = 'dancing'").expect("changed");
    insta::assert_snapshot!(
        error_message(store.tasks()),
        @r#"the database is damaged: a table holds "dancing" instead of a known word; `signoff doctor --rebuild` rebuilds the tables"#
    );
}

#[test]
fn a_reason_of_a_newer_version_is_left_out() {
    let fixture = StoreFixture::new();
    let store = fixture.open();
    store.add_tasks(make::at(1), &[make::task("a")]).expect("added");
    fixture.sql().execute_batch("UPDATE tasks SET reason = 'of_tomorrow'").expect("changed");
    assert_eq!(store.tasks().expect("read")[0].reason, None);
}

#[test]
fn a_crash_keeps_committed_data() {
    let fixture = StoreFixture::new();
    fixture.open().add_tasks(make::at(1), &[make::task("a")]).expect("added");
    let half_done = fixture.sql();
    half_done.execute_batch("BEGIN IMMEDIATE; DELETE FROM events; DELETE FROM tasks").expect("changed");
    drop(half_done);
    let store = fixture.open();
    assert_eq!(store.queued(TaskId(0), 99).expect("the queue").len(), 1);
    assert_eq!(store.check().expect("checked"), [""; 0]);
}

#[test]
fn concurrent_first_opens_create_one_database() {
    let fixture = StoreFixture::new();
    let begin = Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                begin.wait();
                fixture.open().add_tasks(make::at(1), &[make::task("a")]).expect("added");
            });
        }
    });
    assert_eq!(fixture.open().queued(TaskId(0), 99).expect("the queue").len(), 8);
}

#[test]
fn a_missing_database_is_not_created() {
    let fixture = StoreFixture::new();
    assert!(SqliteStore::open_existing(&fixture.dir()).expect("query").is_none());
    assert!(!fixture.dir().exists());
    drop(fixture.open());
    assert!(SqliteStore::open_existing(&fixture.dir()).expect("query").is_some());
}

#[test]
fn an_append_is_one_commit() {
    let fixture = StoreFixture::new();
    let store = fixture.open();
    let lease = store.open_run(make::at(1)).expect("a run");
    let before = store.commits();
    let facts: Vec<_> = (0..50).map(|_| make::run(RunEvent::NothingToPick)).collect();
    store.append(&lease, make::at(2), &facts).expect("appended");
    store.append(&lease, make::at(2), &[]).expect("nothing");
    assert_eq!(store.commits() - before, 1);
}

/// Many short-lived processes, as when a user adds tasks one by one.
#[test]
fn the_write_ahead_log_stays_short() {
    let fixture = StoreFixture::new();
    let longest = (0..200).map(|number| {
        fixture.open().add_tasks(make::at(number), &[make::task("One more")]).expect("added");
        std::fs::metadata(fixture.file().with_extension("db-wal")).map_or(0, |log| log.len())
    });
    assert!(longest.max() < Some(2_000_000));
    assert_eq!(fixture.open().check().expect("checked"), [""; 0]);
}
