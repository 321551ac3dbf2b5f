//! What a channel has still to tell: bounded, the oldest goes first when there is too much.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Nobody reads more than this at once.
const MOST: usize = 100;

pub struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    waiting: VecDeque<T>,
    /// Whether one is being told.
    busy: bool,
    /// Whether some were dropped.
    dropped: bool,
    /// Nothing more will come.
    over: bool,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        let state = State { waiting: VecDeque::new(), busy: false, dropped: false, over: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }
}

impl<T> State<T> {
    fn left(&self) -> usize {
        self.waiting.len() + usize::from(self.busy)
    }
}

impl<T> Queue<T> {
    /// Whether something had to be dropped for it, for the first time.
    pub fn push(&self, message: T) -> bool {
        let mut state = self.lock();
        let full = state.waiting.len() >= MOST;
        if full {
            state.waiting.pop_front();
        }
        state.waiting.push_back(message);
        self.changed.notify_all();
        full && !std::mem::replace(&mut state.dropped, true)
    }

    /// The next one, which is being told until [`Queue::done`] is called. None when all is over.
    pub fn next(&self) -> Option<T> {
        let idle = |state: &mut State<T>| state.waiting.is_empty() && !state.over;
        let mut state = self.changed.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
        let next = state.waiting.pop_front();
        state.busy = next.is_some();
        next
    }

    pub fn done(&self) {
        self.lock().busy = false;
        self.changed.notify_all();
    }

    /// Takes no more, and waits until all is told or the time is up. How many are left.
    pub fn close(&self, wait: Duration) -> usize {
        let mut state = self.lock();
        state.over = true;
        self.changed.notify_all();
        let waited = self.changed.wait_timeout_while(state, wait, |state| state.left() > 0);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let left = state.left();
        state.waiting.clear();
        left
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use signoff_core::notify::{Message, Occasion};

    use super::*;

    fn message(run_id: u64) -> Arc<Message> {
        Arc::new(Message {
            version: 1,
            event: Occasion::Done,
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
    fn of_too_many_the_oldest_are_dropped_which_is_said_once() {
        let queue = Queue::default();
        let dropped: Vec<u64> = (0..200).filter(|number| queue.push(message(*number))).collect();
        assert_eq!(dropped, [100]);
        assert_eq!(queue.next().map(|message| message.run_id), Some(100));
        assert_eq!(queue.close(Duration::ZERO), 100, "99 that wait, and the one that is being told");
        assert!(queue.next().is_none());
    }
}
