//! The log: appended facts are stored completely and in order.

use signoff_core::group::RunEvent;
use signoff_core::ids::{AttemptId, RunId, TaskId};
use signoff_core::view::RunState;
use signoff_core::wire::{LoopFact, RecordedFact};
use signoff_store::{Lease, Store, StoreError};

use crate::conformance::factory::StoreFactory;
use crate::conformance::make;
use crate::conformance::queue::added;

pub fn facts_round_trip(factory: &dyn StoreFactory) {
    let store = factory.open_store();
    store.add_tasks(make::at(1), &[make::task("ä \"quoted\" \u{1F600}\n\nand more")]).expect("added");
    let lease = store.open_run(make::at(1)).expect("a run");
    let line = LoopFact::AgentOutput { attempt: AttemptId(1), line: "tab\t nul\u{0} é".into() };
    let facts =
        [make::opened("loops"), make::taken("A", TaskId(1)), make::loop_fact("A", line), make::run(RunEvent::Started)];
    let written = store.append(&lease, make::at(7), &facts).expect("appended");
    let expected: Vec<_> =
        (1..).zip(facts).map(|(seq, fact)| RecordedFact { run: RunId(1), seq, at: make::at(7), fact }).collect();
    assert_eq!(written, expected);
    assert_eq!(factory.open_store().log(RunId(1)).expect("a log"), expected);
    assert!(matches!(store.log(RunId(2)), Err(StoreError::NoRun(RunId(2)))));
}

/// A reader that follows a log gets each new fact once.
pub fn a_reader_gets_only_facts_after_a_sequence_number(factory: &dyn StoreFactory) {
    let store = factory.open_store();
    let lease = store.open_run(make::at(1)).expect("a run");
    let other = store.open_run(make::at(1)).expect("a run");
    store.append(&other, make::at(2), &[make::opened("plan")]).expect("appended");
    store.append(&lease, make::at(2), &[make::opened("task")]).expect("appended");
    let reader = factory.open_store();
    let seen = reader.log_after(lease.run(), 0).expect("a log");
    assert_eq!(seen, reader.log(lease.run()).expect("a log"));
    assert!(reader.log_after(lease.run(), seen[0].seq).expect("a log").is_empty());
    let new = store.append(&lease, make::at(3), &[make::run(RunEvent::Started)]).expect("appended");
    assert_eq!(reader.log_after(lease.run(), seen[0].seq).expect("a log"), new);
    assert_eq!(reader.last_seq(lease.run()).expect("a number"), new.last().expect("a fact").seq);
    assert_eq!(reader.last_seq(RunId(9)).expect("a number"), 0);
    assert!(matches!(reader.log_after(RunId(9), 0), Err(StoreError::NoRun(RunId(9)))));
    let presets: Vec<_> = reader.runs().expect("runs").into_iter().map(|run| (run.id, run.preset)).collect();
    assert_eq!(presets, [(RunId(1), "task".to_owned()), (RunId(2), "plan".to_owned())]);
}

/// The log of one loop has no facts of other loops. A long log can be read in parts.
pub fn a_log_can_be_read_by_loop_and_in_parts(factory: &dyn StoreFactory) {
    let store = factory.open_store();
    store.add_tasks(make::at(1), &[make::task("One"), make::task("Two")]).expect("added");
    let lease = store.open_run(make::at(1)).expect("a run");
    let facts = [
        make::opened("loops"),
        make::taken("A", TaskId(1)),
        make::taken("AB", TaskId(2)),
        make::started("AB"),
        make::run(RunEvent::Started),
        make::started("A"),
    ];
    let log = store.append(&lease, make::at(2), &facts).expect("appended");
    let (run, reader) = (lease.run(), factory.open_store());
    let own = reader.loop_log(run, &"A".into()).expect("a log");
    assert_eq!(own, [0, 1, 4, 5].map(|index| log[index].clone()));
    let of_unknown_loop = reader.loop_log(run, &"B".into()).expect("a log");
    assert_eq!(of_unknown_loop, [0, 4].map(|index| log[index].clone()));
    assert_eq!(reader.log_page(run, 0, 4).expect("a log"), log[..4]);
    assert_eq!(reader.log_page(run, 4, 4).expect("a log"), log[4..]);
    assert_eq!(reader.log_page(run, 6, 4).expect("a log"), []);
    assert!(matches!(reader.log_page(RunId(9), 0, 4), Err(StoreError::NoRun(RunId(9)))));
    assert!(matches!(reader.loop_log(RunId(9), &"A".into()), Err(StoreError::NoRun(RunId(9)))));
}

pub fn an_empty_append_adds_nothing(factory: &dyn StoreFactory) {
    let store = factory.open_store();
    let lease = store.open_run(make::at(1)).expect("a run");
    assert!(store.append(&lease, make::at(2), &[]).expect("nothing").is_empty());
    assert!(store.log(lease.run()).expect("a log").is_empty());
    assert_eq!(store.open_runs().expect("runs"), []);
}

pub fn another_process_continues_a_run(factory: &dyn StoreFactory) {
    let run = {
        let store = factory.open_store();
        store.add_tasks(make::at(1), &[make::task("a")]).expect("added");
        let lease = store.open_run(make::at(2)).expect("a run");
        let facts = [make::opened("task"), make::run(RunEvent::Started), make::taken("A", TaskId(1))];
        store.append(&lease, make::at(3), &facts).expect("appended");
        store.append(&lease, make::at(4), &[make::started("A")]).expect("appended");
        lease.run()
    };
    let store = factory.open_store();
    let lease = store.acquire(run).expect("free");
    let next = store.append(&lease, make::at(5), &[make::work_ended("A", 1, 1)]).expect("appended");
    assert_eq!(next[0].seq, 5);
    let row = store.task(TaskId(1)).expect("a row").expect("a task");
    assert_eq!((row.review_cycle, row.phase.as_deref()), (1, Some("review")));
    assert_eq!(row.started_at.as_deref(), Some("1970-01-01T00:00:04Z"));
    assert_eq!(store.check().expect("checked"), [""; 0]);
}

/// A refused append changes neither the log nor the tables nor the sequence numbers.
pub fn a_refused_append_changes_nothing(factory: &dyn StoreFactory) {
    let store = factory.open_store();
    store.add_tasks(make::at(1), &[make::task("a")]).expect("added");
    let lease = store.open_run(make::at(2)).expect("a run");
    let facts =
        [make::opened("task"), added(TaskId(30), "own"), make::taken("A", TaskId(1)), make::taken("B", TaskId(2))];
    assert!(matches!(store.append(&lease, make::at(3), &facts), Err(StoreError::NoTask(TaskId(2)))));
    assert!(store.log(lease.run()).expect("a log").is_empty());
    assert_eq!(crate::conformance::queue::queued(&*store).len(), 1);
    assert_eq!(store.run(lease.run()).expect("query"), None);
    assert_eq!(store.reserve_tasks(1).expect("a number"), [TaskId(2)]);
    assert_eq!(store.append(&lease, make::at(4), &facts[..3]).expect("appended").len(), 3);
}

pub fn writers_of_different_runs_do_not_lose_facts(factory: &dyn StoreFactory) {
    let leases: Vec<_> = (0..4).map(|_| factory.open_store().open_run(make::at(1)).expect("a run")).collect();
    std::thread::scope(|scope| {
        for lease in &leases {
            scope.spawn(move || {
                let store = factory.open_store();
                store.append(lease, make::at(1), &[make::opened("task")]).expect("appended");
                for second in 0..25 {
                    let added = store.add_tasks(make::at(second), &[make::task("a")]).expect("added");
                    let facts = [make::taken(&format!("L{second}"), added[0])];
                    store.append(lease, make::at(second), &facts).expect("appended");
                }
            });
        }
    });
    let store = factory.open_store();
    let ids: Vec<_> = store.tasks().expect("tasks").iter().map(|task| task.id).collect();
    assert_eq!(ids, (1..=100).collect::<Vec<_>>());
    for lease in &leases {
        let log = store.log(lease.run()).expect("a log");
        assert_eq!(log.iter().map(|fact| fact.seq).collect::<Vec<_>>(), (1..=26).collect::<Vec<_>>());
    }
    assert_eq!(store.check().expect("checked"), [""; 0]);
}

pub fn the_version_changes_when_another_process_writes(factory: &dyn StoreFactory) {
    let (one, other) = (factory.open_store(), factory.open_store());
    let before = one.version().expect("a number");
    assert_eq!(one.version().expect("a number"), before);
    other.add_tasks(make::at(1), &[make::task("a")]).expect("added");
    assert_ne!(one.version().expect("a number"), before);
}

pub fn each_observer_gets_the_whole_log(factory: &dyn StoreFactory) {
    let (one, other) = (factory.open_store(), factory.open_store());
    let lease = one.open_run(make::at(1)).expect("a run");
    let run = lease.run();
    one.append(&lease, make::at(2), &[make::opened("task")]).expect("appended");
    drop(lease);

    // The state that was read before the lease was acquired stays valid.
    assert_eq!(other.preload(run).expect("a log").seq, 1);
    let lease = other.acquire(run).expect("free");
    let mut run_state = other.preload(run).expect("a log");
    other.append_to(&mut run_state, &lease, make::at(3), &[make::run(RunEvent::Started)]).expect("appended");
    assert_eq!(observed(&*other, &lease), [1, 2]);
    assert_eq!(observed(&*other, &lease), [1, 2], "also the next observer");
    assert_eq!(other.run_state(run).expect("a log"), run_state);
    drop(lease);

    // Another holder appends after the state was read.
    assert_eq!(one.preload(run).expect("a log").seq, 2);
    assert_eq!(one.run_state(run).expect("a log").seq, 2);
    let lease = other.acquire(run).expect("free");
    other.append(&lease, make::at(4), &[make::run(RunEvent::NothingToPick)]).expect("appended");
    drop(lease);
    assert_eq!(one.run_state(run).expect("a log").seq, 3);
    let lease = one.acquire(run).expect("free");
    assert_eq!(observed(&*one, &lease), [1, 2, 3]);
    let log = one.log(run).expect("a log");
    assert_eq!(one.run_state(run).expect("a log"), RunState::from_log(&log));
    assert_eq!(one.check().expect("checked"), Vec::<String>::new());
}

/// The numbers of the events that an observer of the run gets.
fn observed(store: &dyn Store, lease: &Lease) -> Vec<u64> {
    let mut seqs = Vec::new();
    store.load(lease.run(), &mut |transition| seqs.push(transition.event.seq)).expect("a log");
    seqs
}
