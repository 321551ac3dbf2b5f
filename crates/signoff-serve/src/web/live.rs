//! Telling browsers what changed, as it changes.
//!
//! One thread looks. What it finds is numbered and kept for a while; everybody who listens asks for what came after the
//! number they know. So a slow listener costs nothing, and one that was away too long hears that everything changed.

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

use super::desk::{Change, Watcher};

/// So many may listen at once.
pub const LISTENERS: usize = 64;

/// How often is looked while somebody listens, and while nobody does.
const QUICK: Duration = Duration::from_millis(25);
const SLOW: Duration = Duration::from_secs(1);

/// Nobody is told something more often.
const PACE: Duration = Duration::from_millis(100);

/// How often those who have nothing to hear are told that somebody is there.
pub const HEARTBEAT: Duration = Duration::from_secs(15);

/// So many changes are remembered.
const REMEMBERED: usize = 256;

/// The last changes, each with its number.
#[derive(Debug, Default)]
struct Recent {
    last: u64,
    changes: VecDeque<Change>,
}

impl Recent {
    fn note(&mut self, change: Change) -> u64 {
        self.last += 1;
        self.changes.push_back(change);
        if self.changes.len() > REMEMBERED {
            self.changes.pop_front();
        }
        self.last
    }

    /// All that came after a number, as one change, and the number to go on from.
    fn after(&self, seen: u64) -> (u64, Change) {
        let missed = self.last.checked_sub(seen).and_then(|missed| usize::try_from(missed).ok());
        let Some(known) = missed.and_then(|missed| self.changes.len().checked_sub(missed)) else {
            return (self.last, Change::everything());
        };
        let mut all = Change::default();
        self.changes.iter().skip(known).for_each(|change| all.add(change));
        (self.last, all)
    }
}

/// How far things are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Beat {
    last: u64,
    ended: bool,
}

/// What all listeners share.
#[derive(Debug)]
pub struct Live {
    recent: Mutex<Recent>,
    beat: watch::Sender<Beat>,
    places: Arc<Semaphore>,
    looking: Mutex<Option<Thread>>,
    heartbeat: Duration,
}

impl Live {
    /// Begins to look, in a thread of its own, which ends with [`Live::end`].
    pub fn start(watcher: Box<dyn Watcher>, heartbeat: Duration) -> std::io::Result<Arc<Self>> {
        let this = Arc::new(Self {
            recent: Mutex::default(),
            beat: watch::Sender::default(),
            places: Arc::new(Semaphore::new(LISTENERS)),
            looking: Mutex::default(),
            heartbeat,
        });
        let live = this.clone();
        let looking = thread::Builder::new().name("watcher".to_owned()).spawn(move || live.look(watcher))?;
        *this.looking.lock().unwrap_or_else(PoisonError::into_inner) = Some(looking.thread().clone());
        Ok(this)
    }

    /// Nobody is told anything any more: whoever listens is sent away.
    pub fn end(&self) {
        self.beat.send_modify(|beat| beat.ended = true);
        self.wake();
    }

    /// Returns when it has ended.
    pub fn ended(&self) -> impl Future<Output = ()> + use<> {
        let mut beat = self.beat.subscribe();
        async move {
            beat.wait_for(|beat| beat.ended).await.ok();
        }
    }

    fn look(&self, mut watcher: Box<dyn Watcher>) {
        while !self.beat.borrow().ended {
            let change = watcher.look();
            if !change.is_nothing() {
                let last = self.recent().note(change);
                self.beat.send_modify(|beat| beat.last = last);
            }
            let alone = self.places.available_permits() == LISTENERS;
            thread::park_timeout(if alone { SLOW } else { QUICK });
        }
    }

    fn wake(&self) {
        if let Some(looking) = &*self.looking.lock().unwrap_or_else(PoisonError::into_inner) {
            looking.unpark();
        }
    }

    fn recent(&self) -> std::sync::MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A sign of life that scripts can hear, and how often it comes: whoever misses it knows that something is wrong.
    fn beats(&self) -> KeepAlive {
        let every = u64::try_from(self.heartbeat.as_millis()).unwrap_or(u64::MAX);
        let beat = Event::default().event("beat").data(json!({ "every": every }).to_string());
        KeepAlive::new().interval(self.heartbeat).event(beat)
    }

    /// Lets somebody listen, who knows all until a number; one who knows nothing is told so at once, for a page may be
    /// older than its listening. None if too many do.
    pub fn listen(self: &Arc<Self>, seen: Option<u64>) -> Option<Response> {
        let place = self.places.clone().try_acquire_owned().ok()?;
        self.wake();
        let mut pace = interval(PACE);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let listener =
            Listener { live: self.clone(), beat: self.beat.subscribe(), seen, pace, _place: place };
        let told = stream::unfold(listener, |mut listener| async move {
            let event = listener.next().await?;
            Some((Ok::<_, Infallible>(event), listener))
        });
        Some(Sse::new(told).keep_alive(self.beats()).into_response())
    }
}

/// One who listens.
struct Listener {
    live: Arc<Live>,
    beat: watch::Receiver<Beat>,
    seen: Option<u64>,
    pace: Interval,
    _place: OwnedSemaphorePermit,
}

impl Listener {
    /// The next to be told; none when it is over.
    async fn next(&mut self) -> Option<Event> {
        if let Some(seen) = self.seen {
            let beat = self.beat.wait_for(|beat| beat.ended || beat.last != seen).await.ok()?;
            if beat.ended {
                return None;
            }
        }
        // What comes meanwhile is told with it.
        self.pace.tick().await;
        let recent = self.live.recent();
        let (last, change) = match self.seen {
            Some(seen) => recent.after(seen),
            None => (recent.last, Change::everything()),
        };
        drop(recent);
        self.seen = Some(last);
        Some(event(last, &change))
    }
}

fn event(last: u64, change: &Change) -> Event {
    let Change { everything, runs, tasks, said } = change;
    // What names nothing may be anything.
    let told = match everything {
        true => json!({ "seq": last }),
        false => json!({ "seq": last, "runs": runs, "tasks": tasks, "said": said }),
    };
    Event::default().event("changed").id(last.to_string()).data(told.to_string())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn of_task(task: u64) -> Change {
        Change { tasks: BTreeSet::from([task]), ..Change::default() }
    }

    proptest! {
        /// Whoever asks hears of every change since, or that everything changed.
        #[test]
        fn nobody_misses_anything(tasks in prop::collection::vec(0u64..9, 0..600), seen in 0u64..700) {
            let mut recent = Recent::default();
            tasks.iter().for_each(|task| { recent.note(of_task(*task)); });
            let (last, change) = recent.after(seen);
            prop_assert_eq!(last, tasks.len() as u64);
            let missed = tasks.iter().skip(usize::try_from(seen).unwrap_or(usize::MAX)).copied().collect();
            if seen > last || last - seen > REMEMBERED as u64 {
                prop_assert!(change.everything);
            } else {
                prop_assert_eq!(change, Change { tasks: missed, ..Change::default() });
            }
            prop_assert!(recent.changes.len() <= REMEMBERED);
        }
    }
}
