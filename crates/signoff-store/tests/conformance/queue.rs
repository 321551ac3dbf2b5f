//! The queue: tasks that no run has taken yet.

use signoff_core::group::RunEvent;
use signoff_core::ids::{RunId, TaskId};
use signoff_core::machine::{Event, OutcomeKind};
use signoff_core::task::{TaskSpec, TrackerRef};
use signoff_core::view::TaskStatus;
use signoff_core::wire::{Fact, LoopFact, QUEUE, TaskFact};
use signoff_store::{NewTask, Store, StoreError, TrackerClaims};

use crate::conformance::factory::StoreFactory;
use crate::conformance::make;

/// The fact of a task that a run adds in its own log.
pub fn added(id: TaskId, title: &str) -> Fact {
    let spec = Box::new(TaskSpec::from_text(title));
    Fact::Task(id, TaskFact::Added { spec, auto_review: true, max_review_cycles: Some(3) })
}

fn titles(store: &dyn Store) -> Vec<String> {
    let spec = |id| store.task_spec(id).expect("query").expect("a spec");
    queued(store).into_iter().map(|(id, _)| format!("{id} {}", spec(id).title)).collect()
}

/// Reads the whole queue.
pub fn queued(store: &dyn Store) -> Vec<(TaskId, Vec<TaskId>)> {
    store.queued(TaskId(0), usize::MAX).expect("the queue")
}

pub fn tasks_are_numbered_in_order(factory: &dyn StoreFactory) {
    let store = factory.open_store();
    let mut second = make::task("Write the parser");
    second.spec.depends_on = vec![TaskId(1)];
    second.auto_review = false;
    let ids = store.add_tasks(make::at(1), &[make::task("Read the header"), second.clone()]).expect("added");
    assert_eq!(ids, [TaskId(1), TaskId(2)]);
    assert_eq!(store.add_tasks(make::at(2), &[make::task("Third")]).expect("added"), [TaskId(3)]);
    assert!(store.add_tasks(make::at(2), &[]).expect("nothing").is_empty());

    assert_eq!(titles(&*store), ["1 Read the header", "2 Write the parser", "3 Third"]);
    assert_eq!(store.queued(TaskId(1), 1).expect("the queue"), [(TaskId(2), vec![TaskId(1)])]);
    assert_eq!(store.queued(TaskId(3), 1).expect("the queue"), []);
    assert_eq!(store.task_spec(TaskId(2)).expect("a spec"), Some(second.spec));
    assert_eq!(store.task_spec(TaskId(9)).expect("none"), None);
    let row = store.task(TaskId(2)).expect("a row").expect("a task");
    assert_eq!((row.status, row.depends_on, row.auto_review), (TaskStatus::Pending, vec![1], false));
    assert_eq!((row.run_id, row.added_at.as_str()), (None, "1970-01-01T00:00:01Z"));
    assert_eq!(store.task(TaskId(9)).expect("none"), None);
    let numbers: Vec<_> = store.log(QUEUE).expect("a log").iter().map(|fact| fact.seq).collect();
    assert_eq!(numbers, [1, 2, 3]);
}

pub fn reserved_numbers_are_not_reused(factory: &dyn StoreFactory) {
    let store = factory.open_store();
    assert_eq!(store.reserve_tasks(2).expect("numbers"), [TaskId(1), TaskId(2)]);
    assert_eq!(factory.open_store().add_tasks(make::at(1), &[make::task("x")]).expect("added"), [TaskId(3)]);
    let lease = store.open_run(make::at(2)).expect("a run");
    store.append(&lease, make::at(3), &[added(TaskId(7), "y")]).expect("appended");
    assert_eq!(store.reserve_tasks(1).expect("numbers"), [TaskId(8)]);
}

pub fn a_withdrawn_task_leaves_the_queue(factory: &dyn StoreFactory) {
    let store = factory.open_store();
    let tasks: [NewTask; 2] = [make::task("a"), make::task("b")];
    store.add_tasks(make::at(1), &tasks).expect("added");
    store.withdraw(make::at(5), TaskId(1), "ann").expect("withdrawn");
    store.withdraw(make::at(6), TaskId(1), "ann").expect("idempotent");
    assert_eq!(titles(&*store), ["2 b"]);
    let row = store.task(TaskId(1)).expect("a row").expect("a task");
    assert_eq!((row.status, row.outcome), (TaskStatus::Cancelled, Some(OutcomeKind::Cancelled)));
    assert_eq!(row.ended_at.as_deref(), Some("1970-01-01T00:00:05Z"));
    assert_eq!(row.max_review_cycles, Some(3));
    assert!(matches!(store.withdraw(make::at(7), TaskId(9), "ann"), Err(StoreError::NoTask(TaskId(9)))));

    let lease = store.open_run(make::at(8)).expect("a run");
    let facts = [make::opened("task"), make::taken("A", TaskId(1))];
    assert!(matches!(store.append(&lease, make::at(9), &facts), Err(StoreError::TaskTaken(TaskId(1)))));
    assert_eq!(store.check().expect("checked"), [""; 0]);
}

pub fn a_task_is_taken_once(factory: &dyn StoreFactory) {
    let (one, other) = (factory.open_store(), factory.open_store());
    one.add_tasks(make::at(1), &[make::task("a"), make::task("b")]).expect("added");
    let (first, second) = (one.open_run(make::at(2)).expect("a run"), other.open_run(make::at(2)).expect("a run"));
    one.append(&first, make::at(3), &[make::opened("task"), make::taken("A", TaskId(1))]).expect("taken");

    let both = [make::opened("task"), make::taken("A", TaskId(2)), make::taken("B", TaskId(1))];
    assert!(matches!(other.append(&second, make::at(4), &both), Err(StoreError::TaskTaken(TaskId(1)))));
    assert!(other.log(second.run()).expect("a log").is_empty());
    assert_eq!(titles(&*other), ["2 b"]);
    assert!(matches!(other.withdraw(make::at(5), TaskId(1), "ann"), Err(StoreError::TaskTaken(TaskId(1)))));
    assert_eq!(other.loop_for_task(TaskId(1)).expect("a loop"), Some((RunId(1), "A".into())));
    assert_eq!(other.loop_for_task(TaskId(2)).expect("none"), None);
    let row = other.task(TaskId(1)).expect("a row").expect("a task");
    assert_eq!((row.run_id, row.branch.as_deref()), (Some(1), Some("signoff/task-1")));
}

pub fn a_task_added_by_a_run_belongs_to_that_run(factory: &dyn StoreFactory) {
    let store = factory.open_store();
    let (mine, yours) = (store.open_run(make::at(1)).expect("a run"), store.open_run(make::at(1)).expect("a run"));
    let id = store.reserve_tasks(1).expect("a number")[0];
    store.append(&mine, make::at(2), &[added(id, "from a plan")]).expect("appended");
    assert_eq!(queued(&*store), []);
    assert!(matches!(store.append(&yours, make::at(3), &[make::taken("A", id)]), Err(StoreError::TaskTaken(_))));
    let again = [added(id, "the same number")];
    assert!(matches!(store.append(&yours, make::at(3), &again), Err(StoreError::TaskTaken(_))));
    store.append(&mine, make::at(4), &[make::opened("loops"), make::taken("A", id)]).expect("appended");
    assert_eq!(store.task(id).expect("a row").expect("a task").title, "from a plan");
    assert_eq!(store.task_spec(id).expect("a spec").expect("a spec").title, "from a plan");
}

pub fn an_unknown_task_cannot_be_taken(factory: &dyn StoreFactory) {
    let store = factory.open_store();
    let lease = store.open_run(make::at(1)).expect("a run");
    let facts = [make::opened("task"), make::taken("A", TaskId(5))];
    assert!(matches!(store.append(&lease, make::at(2), &facts), Err(StoreError::NoTask(TaskId(5)))));
}

/// A task with this id in an external tracker.
fn bead(id: &str) -> TaskSpec {
    let tracked = TrackerRef { tracker: "beads".to_owned(), id: id.to_owned(), priority: Some(1), reopened: None };
    TaskSpec { tracker: Some(tracked), ..TaskSpec::from_text(id) }
}

fn claimed(task: TaskId, id: &str) -> [Fact; 2] {
    let fact = TaskFact::Added { spec: Box::new(bead(id)), auto_review: false, max_review_cycles: None };
    [Fact::Task(task, fact), make::taken(&task.to_string(), task)]
}

pub fn a_tracker_id_is_claimed_by_one_task(factory: &dyn StoreFactory) {
    let (one, other) = (factory.open_store(), factory.open_store());
    let (mine, yours) = (one.open_run(make::at(1)).expect("a run"), other.open_run(make::at(1)).expect("a run"));
    let ids = one.reserve_tasks(4).expect("numbers");
    let facts = [&[make::opened("slots")][..], &claimed(ids[0], "b-1")].concat();
    one.append(&mine, make::at(2), &facts).expect("claimed");

    let both = [&[make::opened("slots")][..], &claimed(ids[1], "b-2"), &claimed(ids[2], "b-1")].concat();
    let refused = other.append(&yours, make::at(3), &both).expect_err("another run has the task");
    assert!(matches!(refused, StoreError::IssueClaimed { ref id, by } if id == "b-1" && by == ids[0]), "{refused}");
    assert!(other.log(yours.run()).expect("a log").is_empty(), "all of it, or nothing");
    let queued = NewTask { spec: bead("b-1"), ..make::task("b-1") };
    assert!(matches!(other.add_tasks(make::at(3), &[queued]), Err(StoreError::IssueClaimed { .. })));
    let twice = [&[make::opened("slots")][..], &claimed(ids[1], "b-2"), &claimed(ids[2], "b-2")].concat();
    assert!(other.append(&yours, make::at(3), &twice).is_err());
    other.append(&yours, make::at(3), &both[..3]).expect("another one is free");

    let known = |claims: TrackerClaims| claims.into_iter().collect::<Vec<_>>();
    let claims = [("b-1".to_owned(), ids[0]), ("b-2".to_owned(), ids[1])];
    assert_eq!(known(one.claims("beads").expect("claims")), claims);
    assert_eq!(known(one.claims("others").expect("claims")), []);
    one.rebuild().expect("rebuilt");
    assert_eq!(known(other.claims("beads").expect("claims")), claims);
    assert_eq!(one.check().expect("checked"), [""; 0]);
}

pub fn a_cancelled_task_releases_its_claim(factory: &dyn StoreFactory) {
    let store = factory.open_store();
    let lease = store.open_run(make::at(1)).expect("a run");
    let ids = store.reserve_tasks(2).expect("numbers");
    let begin = [make::opened("slots"), make::run(RunEvent::Started)];
    let facts = [&begin[..], &claimed(ids[0], "b-1")].concat();
    store.append(&lease, make::at(2), &facts).expect("claimed");
    let again = claimed(ids[1], "b-1");
    assert!(matches!(store.append(&lease, make::at(3), &again), Err(StoreError::IssueClaimed { .. })));
    let cancelled = LoopFact::Transitioned(Event::Cancelled { by: "ann".to_owned() });
    let cancelled = Fact::Loop(ids[0].to_string().as_str().into(), cancelled);
    store.append(&lease, make::at(4), &[cancelled]).expect("cancelled");
    assert_eq!(store.claims("beads").expect("claims").len(), 0);
    store.append(&lease, make::at(5), &again).expect("it is free again");
    store.rebuild().expect("rebuilt");
    assert_eq!(store.claims("beads").expect("claims").into_iter().next(), Some(("b-1".to_owned(), ids[1])));
    assert_eq!(store.check().expect("checked"), [""; 0]);
}

pub fn a_reopened_tracker_task_is_claimed_once(factory: &dyn StoreFactory) {
    let store = factory.open_store();
    let lease = store.open_run(make::at(1)).expect("a run");
    let ids = store.reserve_tasks(3).expect("numbers");
    let facts = [&[make::opened("slots")][..], &claimed(ids[0], "b-1")].concat();
    store.append(&lease, make::at(2), &facts).expect("claimed");
    let again = |task: TaskId| {
        let mut facts = claimed(task, "b-1");
        for fact in &mut facts {
            if let Fact::Task(_, TaskFact::Added { spec, .. }) = fact
                && let Some(tracked) = &mut spec.tracker
            {
                tracked.reopened = Some(ids[0]);
            }
        }
        facts
    };
    store.append(&lease, make::at(3), &again(ids[1])).expect("opened again");
    let refused = store.append(&lease, make::at(4), &again(ids[2])).expect_err("another run was faster");
    assert!(matches!(refused, StoreError::IssueClaimed { by, .. } if by == ids[1]), "{refused}");
    assert_eq!(store.claims("beads").expect("claims").into_iter().next(), Some(("b-1".to_owned(), ids[1])));
    store.rebuild().expect("rebuilt");
    assert_eq!(store.check().expect("checked"), [""; 0]);
}

pub fn of_concurrent_claims_each_succeeds_once(factory: &dyn StoreFactory) {
    let work = |_: usize| {
        let store = factory.open_store();
        let lease = store.open_run(make::at(1)).expect("a run");
        store.append(&lease, make::at(1), &[make::opened("slots")]).expect("opened");
        let mut had = Vec::new();
        for number in 0..100 {
            let (id, task) = (format!("b-{number}"), store.reserve_tasks(1).expect("a number")[0]);
            match store.append(&lease, make::at(2), &claimed(task, &id)) {
                Ok(_) => had.push((id, task)),
                Err(StoreError::IssueClaimed { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        had
    };
    let mut had: Vec<(String, TaskId)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|number| scope.spawn(move || work(number))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a thread")).collect()
    });
    had.sort();
    assert_eq!(had.len(), 100);
    assert_eq!(factory.open_store().claims("beads").expect("claims").into_iter().collect::<Vec<_>>(), had);
}
