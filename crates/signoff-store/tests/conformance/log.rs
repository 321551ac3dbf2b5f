//! What is written stays written.

use signoff_core::group::RunEvent;
use signoff_core::ids::{AttemptId, RunId, TaskId};
use signoff_core::wire::{LoopFact, Recorded};
use signoff_store::StoreError;

use crate::house::House;
use crate::queue::added;
use crate::say;

pub fn facts_come_back_as_they_were_written(house: &dyn House) {
    let store = house.program();
    store.add_tasks(say::at(1), &[say::task("ä \"quoted\" \u{1F600}\n\nand more")]).expect("added");
    let lease = store.open_run(say::at(1)).expect("a run");
    let line = LoopFact::Said { attempt: AttemptId(1), line: "tab\t nul\u{0} é".into() };
    let facts =
        [say::opened("loops"), say::taken("A", TaskId(1)), say::of("A", line), say::run(RunEvent::Started)];
    let written = store.append(&lease, say::at(7), &facts).expect("appended");
    let expected: Vec<_> =
        (1..).zip(facts).map(|(seq, fact)| Recorded { run: RunId(1), seq, at: say::at(7), fact }).collect();
    assert_eq!(written, expected);
    assert_eq!(house.program().log(RunId(1)).expect("a log"), expected);
    assert!(matches!(store.log(RunId(2)), Err(StoreError::NoRun(RunId(2)))));
}

/// Whoever follows a log is told what is new, and nothing twice.
pub fn what_was_added_after_a_fact(house: &dyn House) {
    let store = house.program();
    let lease = store.open_run(say::at(1)).expect("a run");
    let other = store.open_run(say::at(1)).expect("a run");
    store.append(&other, say::at(2), &[say::opened("plan")]).expect("appended");
    store.append(&lease, say::at(2), &[say::opened("task")]).expect("appended");
    let reader = house.program();
    let seen = reader.log_after(lease.run(), 0).expect("a log");
    assert_eq!(seen, reader.log(lease.run()).expect("a log"));
    assert!(reader.log_after(lease.run(), seen[0].seq).expect("a log").is_empty());
    let new = store.append(&lease, say::at(3), &[say::run(RunEvent::Started)]).expect("appended");
    assert_eq!(reader.log_after(lease.run(), seen[0].seq).expect("a log"), new);
    assert_eq!(reader.last_seq(lease.run()).expect("a number"), new.last().expect("a fact").seq);
    assert_eq!(reader.last_seq(RunId(9)).expect("a number"), 0);
    assert!(matches!(reader.log_after(RunId(9), 0), Err(StoreError::NoRun(RunId(9)))));
    let presets: Vec<_> = reader.runs().expect("runs").into_iter().map(|run| (run.id, run.preset)).collect();
    assert_eq!(presets, [(RunId(1), "task".to_owned()), (RunId(2), "plan".to_owned())]);
}

/// Whoever looks at one loop is spared the others; whoever reads all of a long log, reads it in parts.
pub fn parts_of_a_log(house: &dyn House) {
    let store = house.program();
    store.add_tasks(say::at(1), &[say::task("One"), say::task("Two")]).expect("added");
    let lease = store.open_run(say::at(1)).expect("a run");
    let facts = [
        say::opened("loops"),
        say::taken("A", TaskId(1)),
        say::taken("AB", TaskId(2)),
        say::started("AB"),
        say::run(RunEvent::Started),
        say::started("A"),
    ];
    let log = store.append(&lease, say::at(2), &facts).expect("appended");
    let (run, reader) = (lease.run(), house.program());
    let own = reader.log_of_loop(run, &"A".into()).expect("a log");
    assert_eq!(own, [0, 1, 4, 5].map(|index| log[index].clone()));
    let of_nobody = reader.log_of_loop(run, &"B".into()).expect("a log");
    assert_eq!(of_nobody, [0, 4].map(|index| log[index].clone()));
    assert_eq!(reader.log_part(run, 0, 4).expect("a log"), log[..4]);
    assert_eq!(reader.log_part(run, 4, 4).expect("a log"), log[4..]);
    assert_eq!(reader.log_part(run, 6, 4).expect("a log"), []);
    assert!(matches!(reader.log_part(RunId(9), 0, 4), Err(StoreError::NoRun(RunId(9)))));
    assert!(matches!(reader.log_of_loop(RunId(9), &"A".into()), Err(StoreError::NoRun(RunId(9)))));
}

pub fn nothing_is_a_fact_less(house: &dyn House) {
    let store = house.program();
    let lease = store.open_run(say::at(1)).expect("a run");
    assert!(store.append(&lease, say::at(2), &[]).expect("nothing").is_empty());
    assert!(store.log(lease.run()).expect("a log").is_empty());
    assert_eq!(store.open_runs().expect("runs"), []);
}

pub fn another_program_goes_on_where_one_stopped(house: &dyn House) {
    let run = {
        let store = house.program();
        store.add_tasks(say::at(1), &[say::task("a")]).expect("added");
        let lease = store.open_run(say::at(2)).expect("a run");
        let facts = [say::opened("task"), say::run(RunEvent::Started), say::taken("A", TaskId(1))];
        store.append(&lease, say::at(3), &facts).expect("appended");
        store.append(&lease, say::at(4), &[say::started("A")]).expect("appended");
        lease.run()
    };
    let store = house.program();
    let lease = store.acquire(run).expect("free");
    let next = store.append(&lease, say::at(5), &[say::works("A", 1, 1)]).expect("appended");
    assert_eq!(next[0].seq, 5);
    let row = store.task(TaskId(1)).expect("a row").expect("a task");
    assert_eq!((row.review_cycle, row.phase.as_deref()), (1, Some("review")));
    assert_eq!(row.started_at.as_deref(), Some("1970-01-01T00:00:04Z"));
    assert_eq!(store.check().expect("checked"), [""; 0]);
}

/// A refused append is refused whole: log, tables, numbers.
pub fn what_is_refused_leaves_no_trace(house: &dyn House) {
    let store = house.program();
    store.add_tasks(say::at(1), &[say::task("a")]).expect("added");
    let lease = store.open_run(say::at(2)).expect("a run");
    let facts = [
        say::opened("task"),
        added(TaskId(30), "own"),
        say::taken("A", TaskId(1)),
        say::taken("B", TaskId(2)),
    ];
    assert!(matches!(store.append(&lease, say::at(3), &facts), Err(StoreError::NoTask(TaskId(2)))));
    assert!(store.log(lease.run()).expect("a log").is_empty());
    assert_eq!(crate::queue::queued(&*store).len(), 1);
    assert_eq!(store.run(lease.run()).expect("looked"), None);
    assert_eq!(store.reserve_tasks(1).expect("a number"), [TaskId(2)]);
    assert_eq!(store.append(&lease, say::at(4), &facts[..3]).expect("appended").len(), 3);
}

pub fn writers_of_different_runs_do_not_lose_facts(house: &dyn House) {
    let leases: Vec<_> = (0..4).map(|_| house.program().open_run(say::at(1)).expect("a run")).collect();
    std::thread::scope(|scope| {
        for lease in &leases {
            scope.spawn(move || {
                let store = house.program();
                store.append(lease, say::at(1), &[say::opened("task")]).expect("appended");
                for second in 0..25 {
                    let added = store.add_tasks(say::at(second), &[say::task("a")]).expect("added");
                    let facts = [say::taken(&format!("L{second}"), added[0])];
                    store.append(lease, say::at(second), &facts).expect("appended");
                }
            });
        }
    });
    let store = house.program();
    let ids: Vec<_> = store.tasks().expect("tasks").iter().map(|task| task.id).collect();
    assert_eq!(ids, (1..=100).collect::<Vec<_>>());
    for lease in &leases {
        let log = store.log(lease.run()).expect("a log");
        assert_eq!(log.iter().map(|fact| fact.seq).collect::<Vec<_>>(), (1..=26).collect::<Vec<_>>());
    }
    assert_eq!(store.check().expect("checked"), [""; 0]);
}

pub fn the_version_tells_that_another_program_wrote(house: &dyn House) {
    let (one, other) = (house.program(), house.program());
    let before = one.version().expect("a number");
    assert_eq!(one.version().expect("a number"), before);
    other.add_tasks(say::at(1), &[say::task("a")]).expect("added");
    assert_ne!(one.version().expect("a number"), before);
}
