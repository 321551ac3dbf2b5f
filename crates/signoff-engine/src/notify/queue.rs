//! The bounded queue of a channel. When it is full, the oldest message is dropped.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum number of queued messages.
const MAX_QUEUED: usize = 100;

pub struct MessageQueue<T> {
    state: Mutex<QueueState<T>>,
    changed: Condvar,
}

struct QueueState<T> {
    waiting: VecDeque<T>,
    /// Whether a message is being sent.
    busy: bool,
    /// Whether messages were dropped.
    dropped: bool,
    /// No more messages will be queued.
    closed: bool,
}

impl<T> Default for MessageQueue<T> {
    fn default() -> Self {
        let state = QueueState { waiting: VecDeque::new(), busy: false, dropped: false, closed: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }
}

impl<T> QueueState<T> {
    fn unsent(&self) -> usize {
        self.waiting.len() + usize::from(self.busy)
    }
}

impl<T> MessageQueue<T> {
    /// Queues a message. Returns true if another one was dropped for the first time.
    pub fn push(&self, message: T) -> bool {
        let mut state = self.lock();
        let full = state.waiting.len() >= MAX_QUEUED;
        if full {
            state.waiting.pop_front();
        }
        state.waiting.push_back(message);
        self.changed.notify_all();
        full && !std::mem::replace(&mut state.dropped, true)
    }

    /// Waits for the next message, which counts as busy until `MessageQueue::done` is called. `None` once the queue is
    /// closed and empty.
    pub fn next(&self) -> Option<T> {
        let idle = |state: &mut QueueState<T>| state.waiting.is_empty() && !state.closed;
        let mut state = self.changed.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
        let next = state.waiting.pop_front();
        state.busy = next.is_some();
        next
    }

    pub fn done(&self) {
        self.lock().busy = false;
        self.changed.notify_all();
    }

    /// Closes the queue, and waits until all messages are sent or the time is up. Returns the number of unsent
    /// messages.
    pub fn close(&self, wait: Duration) -> usize {
        let mut state = self.lock();
        state.closed = true;
        self.changed.notify_all();
        let waited = self.changed.wait_timeout_while(state, wait, |state| state.unsent() > 0);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let left = state.unsent();
        state.waiting.clear();
        left
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use signoff_core::notify::{NotificationKind, NotificationMessage};

    use super::*;

    fn message(run_id: u64) -> Arc<NotificationMessage> {
        Arc::new(NotificationMessage {
            version: 1,
            event: NotificationKind::Done,
            project: String::new(),
            run_id,
            task_id: None,
            title: String::new(),
            text: String::new(),
            question: None,
            outcome: None,
            final_verdict: None,
            reason: None,
            cost_usd: 0.0,
            branch: None,
            next: None,
            at: String::new(),
        })
    }

    #[test]
    fn the_oldest_messages_are_dropped_and_reported_once() {
        let queue = MessageQueue::default();
        let dropped: Vec<u64> = (0..200).filter(|number| queue.push(message(*number))).collect();
        assert_eq!(dropped, [100]);
        assert_eq!(queue.next().map(|message| message.run_id), Some(100));
        assert_eq!(queue.close(Duration::ZERO), 100, "99 queued messages, and the one being sent");
        assert!(queue.next().is_none());
    }
}
