//! Whatever happens, however it is cut into transactions: the tables say what the log says.

use proptest::prelude::*;
use signoff_core::ids::{RunId, TaskId};
use signoff_store::{Lease, Store};

use crate::drive::World;
use crate::house::{House, InMemory, OnDisk};
use crate::say;

const PRESETS: [&str; 5] = ["task", "slots", "plan", "loops", "phases"];

/// Everything a store can be asked about runs, tasks, questions and findings.
fn told(store: &dyn Store) -> String {
    let tasks: Vec<_> = store.tasks().expect("tasks");
    let loops: Vec<_> = tasks.iter().map(|task| store.loop_of(TaskId(task.id)).expect("a loop")).collect();
    let places: Vec<_> = (1..9).map(|number| store.question(number).expect("looked")).collect();
    format!(
        "{tasks:#?}\n{loops:#?}\n{places:#?}\n{:#?}\n{:#?}\n{:#?}\n{:#?}\n{:#?}",
        store.questions().expect("questions"),
        store.findings("").expect("findings"),
        (
            store.open_runs().expect("runs"),
            store.failed_runs().expect("runs"),
            store.last_run().expect("a run")
        ),
        store.run(RunId(1)).expect("a run"),
        crate::queue::queued(store),
    )
}

struct Written {
    store: Box<dyn Store>,
    leases: Vec<Lease>,
}

impl Written {
    fn new(house: &dyn House) -> Self {
        let store = house.program();
        let tasks = ["a", "b", "c", "d"].map(say::task);
        store.add_tasks(say::at(0), &tasks).expect("added");
        let leases = (0..2).map(|_| store.open_run(say::at(1)).expect("a run")).collect();
        Self { store, leases }
    }

    fn append(&mut self, house: &dyn House, run: usize, second: i64, facts: &[signoff_core::wire::Fact]) {
        // Now and then another program takes over, which knows nothing but what is written.
        if second % 7 == 0 {
            let id = self.leases[run].run();
            self.store = house.program();
            drop(self.leases.remove(run));
            self.leases.insert(run, self.store.acquire(id).expect("free"));
        }
        self.store.append(&self.leases[run], say::at(second), facts).expect("appended");
        assert_eq!(self.store.check().expect("checked"), [""; 0]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn tables_say_what_the_log_says(
        preset in prop::sample::select(PRESETS.to_vec()),
        steps in prop::collection::vec((0..2_usize, prop::collection::vec(any::<u32>(), 1..6)), 1..25),
    ) {
        let (disk, memory) = (OnDisk::default(), InMemory::default());
        let mut worlds = [
            World::new(preset, [TaskId(1), TaskId(2)]),
            World::new("task", [TaskId(3), TaskId(4)]),
        ];
        let (mut on_disk, mut in_memory) = (Written::new(&disk), Written::new(&memory));
        for (second, (run, choices)) in (2..).zip(&steps) {
            choices.iter().for_each(|choice| worlds[*run].happen(*choice));
            let facts = worlds[*run].facts();
            on_disk.append(&disk, *run, second, &facts);
            in_memory.append(&memory, *run, second, &facts);
        }
        let before = told(&*on_disk.store);
        prop_assert_eq!(&before, &told(&*in_memory.store));
        for store in [&on_disk.store, &in_memory.store] {
            store.rebuild().expect("rebuilt");
            prop_assert_eq!(&told(&**store), &before);
        }
    }
}
