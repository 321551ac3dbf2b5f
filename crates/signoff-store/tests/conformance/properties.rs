//! Property: the tables match the log after any history, however it is split into transactions.

use proptest::prelude::*;
use signoff_core::ids::{RunId, TaskId};
use signoff_store::{Lease, Store};

use crate::conformance::factory::{MemoryFactory, SqliteFactory, StoreFactory};
use crate::conformance::make;
use crate::conformance::random_run::RandomRun;

const PRESETS: [&str; 5] = ["task", "slots", "plan", "loops", "phases"];

/// Dumps the results of all queries about runs, tasks, questions and findings.
fn dump(store: &dyn Store) -> String {
    let tasks: Vec<_> = store.tasks().expect("tasks");
    let loops: Vec<_> = tasks.iter().map(|task| store.loop_for_task(TaskId(task.id)).expect("a loop")).collect();
    let questions: Vec<_> = (1..9).map(|number| store.question(number).expect("query")).collect();
    format!(
        "{tasks:#?}\n{loops:#?}\n{questions:#?}\n{:#?}\n{:#?}\n{:#?}\n{:#?}\n{:#?}",
        store.questions().expect("questions"),
        store.findings("").expect("findings"),
        (store.open_runs().expect("runs"), store.failed_runs().expect("runs"), store.last_run().expect("a run")),
        store.run(RunId(1)).expect("a run"),
        crate::conformance::queue::queued(store),
    )
}

struct StoreWithRuns {
    store: Box<dyn Store>,
    leases: Vec<Lease>,
}

impl StoreWithRuns {
    fn new(factory: &dyn StoreFactory) -> Self {
        let store = factory.open_store();
        let tasks = ["a", "b", "c", "d"].map(make::task);
        store.add_tasks(make::at(0), &tasks).expect("added");
        let leases = (0..2).map(|_| store.open_run(make::at(1)).expect("a run")).collect();
        Self { store, leases }
    }

    fn append(&mut self, factory: &dyn StoreFactory, run: usize, second: i64, facts: &[signoff_core::wire::Fact]) {
        // At intervals another process takes over. It has only the stored data.
        if second % 7 == 0 {
            let id = self.leases[run].run();
            self.store = factory.open_store();
            drop(self.leases.remove(run));
            self.leases.insert(run, self.store.acquire(id).expect("free"));
        }
        self.store.append(&self.leases[run], make::at(second), facts).expect("appended");
        assert_eq!(self.store.check().expect("checked"), [""; 0]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn the_tables_match_the_log(
        preset in prop::sample::select(PRESETS.to_vec()),
        steps in prop::collection::vec((0..2_usize, prop::collection::vec(any::<u32>(), 1..6)), 1..25),
    ) {
        let (disk, memory) = (SqliteFactory::default(), MemoryFactory::default());
        let mut random_runs = [
            RandomRun::new(preset, [TaskId(1), TaskId(2)]),
            RandomRun::new("task", [TaskId(3), TaskId(4)]),
        ];
        let (mut on_disk, mut in_memory) = (StoreWithRuns::new(&disk), StoreWithRuns::new(&memory));
        for (second, (run, choices)) in (2..).zip(&steps) {
            choices.iter().for_each(|choice| random_runs[*run].step(*choice));
            let facts = random_runs[*run].facts();
            on_disk.append(&disk, *run, second, &facts);
            in_memory.append(&memory, *run, second, &facts);
        }
        let before = dump(&*on_disk.store);
        prop_assert_eq!(&before, &dump(&*in_memory.store));
        for store in [&on_disk.store, &in_memory.store] {
            store.rebuild().expect("rebuilt");
            prop_assert_eq!(&dump(&**store), &before);
        }
    }
}
