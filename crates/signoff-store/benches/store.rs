//! Benchmarks of table queries and log appends in a store with many tasks.

use std::sync::OnceLock;

use divan::{Bencher, black_box};
use jiff::Timestamp;
use signoff_core::group::{RunEvent, RunPolicy};
use signoff_core::ids::TaskId;
use signoff_core::machine::Policy;
use signoff_core::task::TaskSpec;
use signoff_core::wire::{Fact, LoopFact, RunFact};
use signoff_core::workflow::preset;
use signoff_store::{Lease, NewTask, SqliteStore, Store};
use tempfile::TempDir;

const TASKS: usize = 10_000;
const AT: Timestamp = Timestamp::UNIX_EPOCH;

fn main() {
    divan::main();
}

fn task(number: usize) -> NewTask {
    let text = format!("Task {number} with a title of usual length\n\n{}", "And what it is about. ".repeat(20));
    NewTask { spec: TaskSpec::from_text(&text), auto_review: true, max_review_cycles: Some(3) }
}

fn opened() -> Fact {
    let workflow = preset("loops").expect("shipped");
    let policy = RunPolicy::new(&workflow, 4);
    Fact::Run(RunFact::Opened { policy, workflow: Box::new(Policy::new(workflow)) })
}

/// Creates a database with many tasks, half of them taken by a run.
fn full() -> &'static TempDir {
    static FULL: OnceLock<TempDir> = OnceLock::new();
    FULL.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a directory");
        let store = SqliteStore::open(dir.path()).expect("a store");
        let tasks: Vec<_> = (0..TASKS).map(task).collect();
        let ids = store.add_tasks(AT, &tasks).expect("added");
        let lease = store.open_run(AT).expect("a run");
        let taken = ids.into_iter().step_by(2).map(|task| {
            let (title, branch) = (format!("Task {task}"), format!("signoff/task-{task}"));
            Fact::Loop(format!("L{task}").as_str().into(), LoopFact::Added { task, title, branch })
        });
        let facts: Vec<_> = [opened()].into_iter().chain(taken).collect();
        store.append(&lease, AT, &facts).expect("appended");
        dir
    })
}

fn store() -> SqliteStore {
    SqliteStore::open(full().path()).expect("a store")
}

#[divan::bench]
fn open(bencher: Bencher) {
    full();
    bencher.bench(store);
}

#[divan::bench]
fn open_and_list_all_tasks(bencher: Bencher) {
    full();
    bencher.bench(|| store().tasks().expect("tasks"));
}

#[divan::bench]
fn list_all_tasks(bencher: Bencher) {
    let store = store();
    bencher.bench(|| store.tasks().expect("tasks"));
}

#[divan::bench]
fn look_at_the_front_of_the_queue(bencher: Bencher) {
    let store = store();
    bencher.bench(|| store.queued(TaskId(0), 64).expect("the queue"));
}

#[divan::bench]
fn ask_for_the_version(bencher: Bencher) {
    let store = store();
    bencher.bench(|| black_box(store.version().expect("a number")));
}

/// Opens a small additional run.
fn running() -> (SqliteStore, Lease) {
    let store = store();
    let lease = store.open_run(AT).expect("a run");
    store.append(&lease, AT, &[opened()]).expect("appended");
    (store, lease)
}

#[divan::bench]
fn append_one_fact(bencher: Bencher) {
    let (store, lease) = running();
    let fact = [Fact::Run(RunFact::Transitioned(RunEvent::NothingToPick))];
    bencher.bench_local(|| store.append(&lease, AT, &fact).expect("appended"));
}

#[divan::bench]
fn append_a_hundred_facts(bencher: Bencher) {
    let (store, lease) = running();
    let facts = vec![Fact::Run(RunFact::Transitioned(RunEvent::NothingToPick)); 100];
    bencher.bench_local(|| store.append(&lease, AT, &facts).expect("appended"));
}
