//! A process that is killed while it holds a run.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

use signoff_store::{SqliteStore, Store, StoreError};

use crate::conformance::make;
use crate::sqlite::fixture::StoreFixture;

const DIR: &str = "SIGNOFF_STORE_TEST_DIR";

/// Starts this test binary again, as another process.
#[expect(clippy::disallowed_methods, reason = "a killed program has to be a program")]
fn program(fixture: &StoreFixture) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    command.args(["--exact", "sqlite::child::the_other_program", "--ignored", "--nocapture"]);
    command.env(DIR, fixture.dir()).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

#[expect(clippy::disallowed_methods, reason = "the variable names the database")]
fn dir() -> Option<String> {
    std::env::var(DIR).ok()
}

/// Opens a run, writes to it, and holds it until the process is killed.
#[test]
#[ignore = "a part of the test below"]
fn the_other_program() {
    let Some(dir) = dir() else { return };
    let store = SqliteStore::open(dir.as_ref()).expect("a store");
    let lease = store.open_run(make::at(1)).expect("a run");
    store.append(&lease, make::at(2), &[make::opened("task")]).expect("appended");
    println!("\nholding");
    let ended = std::io::stdin().read(&mut [0]).expect("stdin");
    drop((lease, ended));
}

fn wait_for_it(child: &mut Child) {
    let lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "holding"));
}

#[test]
fn the_run_of_a_killed_process_is_free() {
    let fixture = StoreFixture::new();
    let mut child = program(&fixture).spawn().expect("a program");
    wait_for_it(&mut child);
    let store = fixture.open();
    let run = signoff_core::ids::RunId(1);
    assert!(store.is_held(run).expect("is_held"));
    assert!(matches!(store.acquire(run), Err(StoreError::LeaseHeld(_))));

    child.kill().expect("killed");
    child.wait().expect("gone");
    assert!(!store.is_held(run).expect("is_held"));
    let lease = store.acquire(run).expect("free");
    assert_eq!(store.log(run).expect("a log").len(), 1, "committed data is kept");
    let next = store.append(&lease, make::at(3), &[make::run(signoff_core::group::RunEvent::Started)]);
    assert_eq!(next.expect("appended")[0].seq, 2);
    assert_eq!(store.check().expect("checked"), [""; 0]);
}
