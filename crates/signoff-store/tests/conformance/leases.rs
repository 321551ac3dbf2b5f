//! Who may write.

use std::sync::Barrier;

use signoff_core::ids::RunId;
use signoff_core::wire::QUEUE;
use signoff_store::StoreError;

use crate::house::House;
use crate::say;

pub fn one_holder_at_a_time(house: &dyn House) {
    let (one, other) = (house.program(), house.program());
    let lease = one.open_run(say::at(1)).expect("a run");
    let run = lease.run();
    assert!(other.is_held(run).expect("looked"));
    assert!(matches!(other.acquire(run), Err(StoreError::Held(held)) if held == run));
    assert!(matches!(one.acquire(run), Err(StoreError::Held(_))), "not even the same program twice");

    drop(lease);
    assert!(!one.is_held(run).expect("looked"));
    let next = other.acquire(run).expect("free");
    assert_eq!((next.run(), next.fence()), (run, 2));
    assert!(matches!(one.acquire(RunId(9)), Err(StoreError::NoRun(RunId(9)))));
    assert!(matches!(one.acquire(QUEUE), Err(StoreError::NoRun(QUEUE))));
    assert!(!one.is_held(RunId(9)).expect("looked"));
}

pub fn a_holder_that_was_taken_over_writes_nothing(house: &dyn House) {
    let (one, other) = (house.program(), house.program());
    let old = one.open_run(say::at(1)).expect("a run");
    one.append(&old, say::at(2), &[say::opened("task")]).expect("appended");
    house.lose_leases();
    let new = other.acquire(old.run()).expect("free");
    other.append(&new, say::at(3), &[say::run(signoff_core::group::RunEvent::Started)]).expect("appended");

    let late = one.append(&old, say::at(4), &[say::run(signoff_core::group::RunEvent::NothingToPick)]);
    assert!(matches!(late, Err(StoreError::Fenced(run)) if run == old.run()));
    assert_eq!(one.log(old.run()).expect("a log").len(), 2);
    drop(old);
    assert!(
        other.is_held(new.run()).expect("looked"),
        "the old holder gives back nothing that is not its own"
    );
}

pub fn many_ask_and_one_gets_it(house: &dyn House) {
    let run = house.program().open_run(say::at(1)).expect("a run").run();
    let (asked, done) = (Barrier::new(4), Barrier::new(4));
    let ask = || {
        let store = house.program();
        asked.wait();
        let lease = store.acquire(run);
        done.wait();
        lease.is_ok()
    };
    let got = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).filter(|got| *got).count()
    });
    assert_eq!(got, 1);
}

/// One who only looks whether a run is held must not be taken for its holder.
pub fn looking_disturbs_nobody(house: &dyn House) {
    let run = house.program().open_run(say::at(1)).expect("a run").run();
    let begin = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let store = house.program();
            begin.wait();
            let looks = (0..200).filter(|_| store.is_held(run).is_ok()).count();
            assert_eq!(looks, 200);
        });
        let store = house.program();
        begin.wait();
        (0..20).for_each(|_| drop(store.acquire(run).expect("nobody else takes it")));
    });
}
