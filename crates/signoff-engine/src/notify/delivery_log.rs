//! Records which channels received which messages, so that undelivered ones are retried after a restart.

use std::collections::BTreeSet;
use std::sync::Arc;

use signoff_core::ids::RunId;
use signoff_core::notify::NotificationKey;
use signoff_store::{DeliveryRecord, Store};

use crate::clock;

/// The delivery log in the store.
#[derive(Clone)]
pub(super) struct DeliveryLog(pub Arc<dyn Store>);

impl DeliveryLog {
    /// Records that a message is due to a channel, or delivered. If the store cannot keep it, a due message is not
    /// retried after a restart, and a delivered one is repeated.
    pub fn record(&self, key: &NotificationKey, channel: &str, delivered: bool) {
        let (message, channel) = (key.clone(), channel.to_owned());
        self.0.record_delivery(&DeliveryRecord { message, channel, at: clock::now(), delivered }).ok();
    }

    /// The records of a message; none if the store cannot be read.
    pub fn records_of(&self, key: &NotificationKey) -> Vec<DeliveryRecord> {
        deliveries(&*self.0).into_iter().filter(|record| record.message == *key).collect()
    }
}

fn deliveries(store: &dyn Store) -> Vec<DeliveryRecord> {
    store.deliveries(clock::now()).unwrap_or_default()
}

/// The runs with undelivered messages.
pub fn runs_with_undelivered(store: &dyn Store) -> BTreeSet<RunId> {
    deliveries(store).into_iter().filter(|record| !record.delivered).map(|record| record.message.run).collect()
}
