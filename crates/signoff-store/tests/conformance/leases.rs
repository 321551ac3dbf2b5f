//! Leases: only the holder of a run may write to it.

use std::sync::Barrier;

use signoff_core::ids::RunId;
use signoff_core::wire::QUEUE;
use signoff_store::StoreError;

use crate::conformance::factory::StoreFactory;
use crate::conformance::make;

pub fn one_holder_at_a_time(factory: &dyn StoreFactory) {
    let (one, other) = (factory.open_store(), factory.open_store());
    let lease = one.open_run(make::at(1)).expect("a run");
    let run = lease.run();
    assert!(other.is_held(run).expect("is_held"));
    assert!(matches!(other.acquire(run), Err(StoreError::LeaseHeld(held)) if held == run));
    assert!(matches!(one.acquire(run), Err(StoreError::LeaseHeld(_))), "the holder cannot acquire its lease again");

    drop(lease);
    assert!(!one.is_held(run).expect("is_held"));
    let next = other.acquire(run).expect("free");
    assert_eq!((next.run(), next.fence()), (run, 2));
    assert!(matches!(one.acquire(RunId(9)), Err(StoreError::NoRun(RunId(9)))));
    assert!(matches!(one.acquire(QUEUE), Err(StoreError::NoRun(QUEUE))));
    assert!(!one.is_held(RunId(9)).expect("is_held"));
}

pub fn a_fenced_holder_cannot_write(factory: &dyn StoreFactory) {
    let (one, other) = (factory.open_store(), factory.open_store());
    let old = one.open_run(make::at(1)).expect("a run");
    one.append(&old, make::at(2), &[make::opened("task")]).expect("appended");
    factory.lose_leases();
    let new = other.acquire(old.run()).expect("free");
    other.append(&new, make::at(3), &[make::run(signoff_core::group::RunEvent::Started)]).expect("appended");

    let late = one.append(&old, make::at(4), &[make::run(signoff_core::group::RunEvent::NothingToPick)]);
    assert!(matches!(late, Err(StoreError::Fenced(run)) if run == old.run()));
    assert_eq!(one.log(old.run()).expect("a log").len(), 2);
    drop(old);
    assert!(other.is_held(new.run()).expect("is_held"), "dropping an old lease does not release the new one");
}

pub fn of_concurrent_acquires_one_succeeds(factory: &dyn StoreFactory) {
    let run = factory.open_store().open_run(make::at(1)).expect("a run").run();
    let (asked, done) = (Barrier::new(4), Barrier::new(4));
    let ask = || {
        let store = factory.open_store();
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

/// A check whether a run is held must not look like a holder to others.
pub fn checking_a_lease_does_not_block_acquire(factory: &dyn StoreFactory) {
    let run = factory.open_store().open_run(make::at(1)).expect("a run").run();
    let begin = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let store = factory.open_store();
            begin.wait();
            let looks = (0..200).filter(|_| store.is_held(run).is_ok()).count();
            assert_eq!(looks, 200);
        });
        let store = factory.open_store();
        begin.wait();
        (0..20).for_each(|_| drop(store.acquire(run).expect("a free lease")));
    });
}
