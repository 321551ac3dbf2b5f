//! Delivery records: due and delivered messages of each notification channel.

use jiff::Timestamp;
use signoff_core::ids::{LoopId, RunId};
use signoff_core::notify::{NotificationKey, NotificationKind};
use signoff_store::DeliveryRecord;

use crate::conformance::factory::StoreFactory;
use crate::conformance::make;

const WEEK: i64 = 7 * 24 * 60 * 60;

fn delivery(message: &NotificationKey, at: Timestamp, delivered: bool) -> DeliveryRecord {
    DeliveryRecord { message: message.clone(), channel: "slack".to_owned(), at, delivered }
}

fn message(run: RunId, seq: u64) -> NotificationKey {
    NotificationKey { run, seq, event: NotificationKind::Question, about: Some(LoopId::from("A")) }
}

pub fn a_delivered_message_stays_delivered(factory: &dyn StoreFactory) {
    let (one, other) = (factory.open_store(), factory.open_store());
    let done = NotificationKey { event: NotificationKind::Done, about: None, ..message(RunId(1), 8) };
    let (asked, answered) = (message(RunId(1), 7), delivery(&done, make::at(3), true));
    for (at, delivered) in [(1, false), (2, true), (3, false)] {
        one.record_delivery(&delivery(&asked, make::at(at), delivered)).expect("recorded");
    }
    let mail = DeliveryRecord { channel: "mail".to_owned(), ..delivery(&asked, make::at(3), false) };
    one.record_delivery(&mail).expect("recorded");
    one.record_delivery(&answered).expect("recorded");
    let records = [mail, delivery(&asked, make::at(2), true), answered];
    assert_eq!(other.deliveries(make::at(4)).expect("deliveries"), records);
    other.rebuild().expect("rebuilt");
    assert_eq!(other.deliveries(make::at(4)).expect("deliveries"), records, "the table is not built from the log");
}

pub fn delivery_records_are_kept_for_a_week(factory: &dyn StoreFactory) {
    let store = factory.open_store();
    let lease = store.open_run(make::at(1)).expect("a run");
    store.append(&lease, make::at(1), &[make::opened("task")]).expect("appended");
    let (open, over) = (lease.run(), RunId(9));
    for delivered in [false, true] {
        for run in [open, over] {
            let key = message(run, u64::from(delivered));
            store.record_delivery(&delivery(&key, make::at(1), delivered)).expect("recorded");
        }
    }
    let listed = |at: i64| -> Vec<_> {
        let deliveries = store.deliveries(make::at(at)).expect("deliveries");
        deliveries.into_iter().map(|delivery| (delivery.message.run, delivery.delivered)).collect()
    };
    let all = [(open, false), (open, true), (over, false), (over, true)];
    assert_eq!(listed(WEEK), all);
    assert_eq!(listed(WEEK + 9), [(open, true), (over, true)], "an undelivered message expires");
    store.record_delivery(&delivery(&message(over, 5), make::at(WEEK + 9), false)).expect("recorded");
    assert_eq!(listed(WEEK + 9), [(open, true), (over, false)], "an open run may be resumed");
}

/// Each new record removes the expired ones, so the table has at most a week of undelivered messages.
pub fn expired_deliveries_are_removed(factory: &dyn StoreFactory) {
    let store = factory.open_store();
    let days = 60_i64;
    for day in 0..days {
        for delivered in [false, true] {
            let key = message(RunId(9), 2 * day.unsigned_abs() + u64::from(delivered));
            store.record_delivery(&delivery(&key, make::at(day * WEEK / 7), delivered)).expect("recorded");
        }
    }
    // A reader whose clock is behind gets everything that is stored.
    let stored = store.deliveries(make::at(0)).expect("deliveries");
    let oldest = make::at((days - 1) * WEEK / 7 - WEEK);
    assert!(stored.iter().all(|record| record.at >= oldest), "{stored:?}");
    assert_eq!(stored.len(), 16, "two on each of eight days");
}
