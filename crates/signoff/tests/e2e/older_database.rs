//! A database of an earlier version: finished work is reported as before, except where that was wrong.
//!
//! `testdata/databases/finished-work.sql` is the dump of a queue (approved, out of cycles, failed, left for discussion,
//! accepted by a person, not reviewed), a run of two loops with a checkpoint review that found something, and a task of
//! type `review` that approved an empty diff.

use std::fs;

use signoff_testkit::TestProject;

use crate::PROGRAM;

const DUMP: &str = include_str!("../../../../testdata/databases/finished-work.sql");

fn project() -> TestProject {
    let project = TestProject::with_agent(PROGRAM, |script| script);
    let directory = project.env.work().join(".signoff");
    fs::create_dir_all(&directory).unwrap();
    let database = rusqlite::Connection::open(directory.join("signoff.db")).unwrap();
    database.execute_batch(DUMP).unwrap();
    project
}

#[test]
fn finished_work_is_reported_as_before() {
    let project = project();
    insta::assert_snapshot!(project.run(&["status"]), @"
    exit 0
    --- stdout
      ✓  1. implement approve later     completed  APPROVED (2 cycles)
      !  2. implement never good        completed  MAX_CYCLES_REACHED (3 cycles)
      ✗  3. implement breaks            failed     implementer_failed
      ✗  4. implement nothing at all    failed     implementer_failed
      !  5. implement talk              completed  NEEDS_DISCUSSION (1 cycle)
      ✓  6. implement overruled         completed  APPROVED (by a person), 1 open finding
      ○  7. implement quiet             completed  not reviewed
      ✓  8. implement Write a.txt       completed  APPROVED (1 cycle)
      ✓  9. implement Write b.txt       completed  APPROVED (1 cycle)
      ✓ 10. review    look at it        completed  APPROVED (1 cycle)
    ");
}

#[test]
fn rebuilding_the_tables_gives_the_same_report() {
    let project = project();
    let before = project.run(&["status", "--json"]);
    project.run(&["doctor", "--rebuild"]);
    assert_eq!(project.run(&["status", "--json"]), before);
}
