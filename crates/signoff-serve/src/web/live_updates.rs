//! Sends change events to browsers over server-sent events.
//!
//! One thread polls for changes, numbers them and keeps the most recent ones. Each listener asks for the changes after
//! the number it has seen. So a slow listener costs nothing, and one that missed too much reloads everything.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::backend::{ChangeSet, Watcher};

/// Maximum number of listeners.
pub const MAX_LISTENERS: usize = 64;

/// Polling intervals with listeners and without.
const POLL_INTERVAL: Duration = Duration::from_millis(25);
const IDLE_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Minimum interval between two events to a listener.
const MIN_EVENT_INTERVAL: Duration = Duration::from_millis(100);

/// Default interval of heartbeats on an idle stream.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);

/// Number of recent changes that are kept.
const MAX_RECENT_CHANGES: usize = 256;

/// The most recent changes, numbered consecutively.
#[derive(Debug, Default)]
struct RecentChanges {
    last: u64,
    changes: VecDeque<ChangeSet>,
}

impl RecentChanges {
    fn push(&mut self, change: ChangeSet) -> u64 {
        self.last += 1;
        self.changes.push_back(change);
        if self.changes.len() > MAX_RECENT_CHANGES {
            self.changes.pop_front();
        }
        self.last
    }

    /// Merges all changes after a number. Returns the latest number with them.
    fn since(&self, seen: u64) -> (u64, ChangeSet) {
        let missed = self.last.checked_sub(seen).and_then(|missed| usize::try_from(missed).ok());
        let Some(seen) = missed.and_then(|missed| self.changes.len().checked_sub(missed)) else {
            return (self.last, ChangeSet::everything());
        };
        let mut all = ChangeSet::default();
        self.changes.iter().skip(seen).for_each(|change| all.merge(change));
        (self.last, all)
    }
}

/// The latest change number, and whether updates have stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct LiveState {
    last: u64,
    stopped: bool,
}

/// State that all listeners share.
#[derive(Debug)]
pub struct LiveUpdates {
    recent: Mutex<RecentChanges>,
    state: watch::Sender<LiveState>,
    slots: Arc<Semaphore>,
    poll_thread: Mutex<Option<Thread>>,
    heartbeat: Duration,
}

impl LiveUpdates {
    /// Starts the polling thread. `LiveUpdates::stop` ends it.
    pub fn start(watcher: Box<dyn Watcher>, heartbeat: Duration) -> std::io::Result<Arc<Self>> {
        let live_updates = Arc::new(Self {
            recent: Mutex::default(),
            state: watch::Sender::default(),
            slots: Arc::new(Semaphore::new(MAX_LISTENERS)),
            poll_thread: Mutex::default(),
            heartbeat,
        });
        let live = live_updates.clone();
        let thread = thread::Builder::new().name("watcher".to_owned()).spawn(move || live.poll_changes(watcher))?;
        *live_updates.poll_thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread.thread().clone());
        Ok(live_updates)
    }

    /// Stops polling and closes all streams.
    pub fn stop(&self) {
        self.state.send_modify(|state| state.stopped = true);
        self.wake();
    }

    /// Completes when updates have stopped.
    pub fn stopped(&self) -> impl Future<Output = ()> + use<> {
        let mut state = self.state.subscribe();
        async move {
            state.wait_for(|state| state.stopped).await.ok();
        }
    }

    fn poll_changes(&self, mut watcher: Box<dyn Watcher>) {
        while !self.state.borrow().stopped {
            let change = watcher.poll();
            if !change.is_empty() {
                let last = self.recent().push(change);
                self.state.send_modify(|state| state.last = last);
            }
            let is_idle = self.slots.available_permits() == MAX_LISTENERS;
            thread::park_timeout(if is_idle { IDLE_POLL_INTERVAL } else { POLL_INTERVAL });
        }
    }

    fn wake(&self) {
        if let Some(thread) = &*self.poll_thread.lock().unwrap_or_else(PoisonError::into_inner) {
            thread.unpark();
        }
    }

    fn recent(&self) -> std::sync::MutexGuard<'_, RecentChanges> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Heartbeats that scripts can observe. The event names its interval, so a page can detect a lost connection.
    fn keep_alive(&self) -> KeepAlive {
        let every = u64::try_from(self.heartbeat.as_millis()).unwrap_or(u64::MAX);
        let beat = Event::default().event("beat").data(json!({ "every": every }).to_string());
        KeepAlive::new().interval(self.heartbeat).event(beat)
    }

    /// Opens an event stream that starts after the change `seen`. Without `seen`, the first event says that everything
    /// changed, because the page may be older than the stream. Returns `None` if there are too many listeners.
    pub fn listen(self: &Arc<Self>, seen: Option<u64>) -> Option<Response> {
        let slot = self.slots.clone().try_acquire_owned().ok()?;
        self.wake();
        let mut event_interval = interval(MIN_EVENT_INTERVAL);
        event_interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let listener =
            LiveListener { live: self.clone(), state: self.state.subscribe(), seen, event_interval, _slot: slot };
        let events = stream::unfold(listener, |mut listener| async move {
            let event = listener.next().await?;
            Some((Ok::<_, Infallible>(event), listener))
        });
        Some(Sse::new(events).keep_alive(self.keep_alive()).into_response())
    }
}

/// One open event stream.
struct LiveListener {
    live: Arc<LiveUpdates>,
    state: watch::Receiver<LiveState>,
    seen: Option<u64>,
    event_interval: Interval,
    _slot: OwnedSemaphorePermit,
}

impl LiveListener {
    /// The next event; `None` when updates have stopped.
    async fn next(&mut self) -> Option<Event> {
        if let Some(seen) = self.seen {
            let state = self.state.wait_for(|state| state.stopped || state.last != seen).await.ok()?;
            if state.stopped {
                return None;
            }
        }
        // Changes that arrive during the wait are sent in the same event.
        self.event_interval.tick().await;
        let recent = self.live.recent();
        let (last, change) = match self.seen {
            Some(seen) => recent.since(seen),
            None => (recent.last, ChangeSet::everything()),
        };
        drop(recent);
        self.seen = Some(last);
        Some(event(last, &change))
    }
}

fn event(last: u64, change: &ChangeSet) -> Event {
    let ChangeSet { everything, runs, tasks, transcripts } = change;
    // An event without ids means that anything may have changed.
    let data = match everything {
        true => json!({ "seq": last }),
        false => json!({ "seq": last, "runs": runs, "tasks": tasks, "said": transcripts }),
    };
    Event::default().event("changed").id(last.to_string()).data(data.to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn task_changed(task: u64) -> ChangeSet {
        ChangeSet { tasks: BTreeSet::from([task]), ..ChangeSet::default() }
    }

    proptest! {
        /// A listener gets every change since its number, or that everything changed.
        #[test]
        fn listeners_miss_no_changes(tasks in prop::collection::vec(0u64..9, 0..600), seen in 0u64..700) {
            let mut recent = RecentChanges::default();
            tasks.iter().for_each(|task| { recent.push(task_changed(*task)); });
            let (last, change) = recent.since(seen);
            prop_assert_eq!(last, tasks.len() as u64);
            let missed = tasks.iter().skip(usize::try_from(seen).unwrap_or(usize::MAX)).copied().collect();
            if seen > last || last - seen > MAX_RECENT_CHANGES as u64 {
                prop_assert!(change.everything);
            } else {
                prop_assert_eq!(change, ChangeSet { tasks: missed, ..ChangeSet::default() });
            }
            prop_assert!(recent.changes.len() <= MAX_RECENT_CHANGES);
        }
    }
}
