//! Sends notifications through the channels that the user configured.
//!
//! Each channel has its own thread and queue, so a channel that hangs blocks neither the work nor the other channels.
//! Sending never blocks, and errors only become notes.

mod channel;
mod delivery_log;
mod webhook;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use signoff_core::notify::{NotificationKey, NotificationKind, NotificationMessage};
use signoff_core::settings::{Channel, ChannelTarget, Settings};
use signoff_store::Store;

use crate::process::system;

pub use channel::{DeliveryError, NotifyChannel};
use delivery_log::DeliveryLog;
pub use delivery_log::runs_with_undelivered;

/// Writes raw bytes to the user's terminal: a bell, or an escape sequence that draws nothing.
pub type TerminalWriter = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// Whether and where the user can notice a sound or a popup.
#[derive(Clone)]
pub enum TerminalPresence {
    /// At this terminal.
    AtTerminal(TerminalWriter),
    /// At none of our terminals; maybe at the desktop.
    Elsewhere,
    /// Sounds and popups are disabled.
    Undisturbed,
}

/// The environment of channels.
#[derive(Clone)]
pub struct ChannelContext {
    /// Working directory of commands: the root of the repository.
    pub directory: PathBuf,
    pub variables: BTreeMap<String, String>,
    pub presence: TerminalPresence,
    /// The signoff executable. Run as a reaper, it stops commands that would outlive this process.
    pub program: PathBuf,
    pub timeouts: NotifyTimeouts,
}

impl fmt::Debug for ChannelContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChannelContext({}, {:?})", self.directory.display(), self.timeouts)
    }
}

impl TerminalPresence {
    /// Whether a channel can reach the user.
    fn can_receive(&self, channel: &Channel) -> bool {
        match (&channel.target, self) {
            (ChannelTarget::Bell, Self::Elsewhere)
            | (ChannelTarget::Bell | ChannelTarget::Desktop, Self::Undisturbed) => false,
            (ChannelTarget::Bell, Self::AtTerminal(_))
            | (ChannelTarget::Desktop, Self::AtTerminal(_) | Self::Elsewhere)
            | (ChannelTarget::Webhook(_) | ChannelTarget::Command(_), _) => true,
        }
    }
}

/// Timeouts of notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotifyTimeouts {
    /// For connecting to a server.
    pub connect: Duration,
    /// For the answer of a server, or for a program to end.
    pub answer: Duration,
    /// Delay before the second try; doubled before the third.
    pub backoff: Duration,
    /// Maximum delay that a server may ask for.
    pub longest: Duration,
    /// For all pending messages when signoff exits.
    pub end: Duration,
}

impl Default for NotifyTimeouts {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        let (connect, answer, longest, end) = (seconds(5), seconds(10), seconds(30), seconds(5));
        Self { connect, answer, backoff: Duration::from_millis(500), longest, end }
    }
}

/// The running channels.
pub struct Notifier {
    workers: Vec<ChannelWorker>,
    shared: NotifierShared,
    end: Duration,
}

/// State that all channels share.
#[derive(Clone)]
struct NotifierShared {
    notes: ChannelNotes,
    log: DeliveryLog,
    /// Set when the time is up: running programs are stopped.
    cancelled: Arc<AtomicBool>,
}

/// A message, and the occurrence that it is about.
#[derive(Clone)]
struct QueuedMessage {
    message: Arc<NotificationMessage>,
    key: Arc<NotificationKey>,
}

/// How long to wait for stopped programs.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// Notes about channels for the user, until they are fetched.
type ChannelNotes = Arc<Mutex<Vec<String>>>;

struct ChannelWorker {
    name: String,
    runs_a_program: bool,
    occasions: Vec<NotificationKind>,
    queue: Arc<MessageQueue>,
}

impl Notifier {
    /// Starts every channel that is subscribed to an event and can reach the user; `None` if there is none.
    pub fn start(settings: &Settings, context: &ChannelContext, store: Arc<dyn Store>) -> Option<Self> {
        let shared =
            NotifierShared { notes: ChannelNotes::default(), log: DeliveryLog(store), cancelled: Arc::default() };
        let channels = settings.channels().into_iter().filter(|channel| context.presence.can_receive(channel));
        let workers: Vec<_> = channels
            .map(|channel| {
                let subscribed = |occasion: &NotificationKind| settings.channels_for(*occasion).contains(&channel.name);
                let occasions = NotificationKind::ALL.iter().copied().filter(subscribed).collect();
                ChannelWorker::open(NotifyChannel::new(channel, context.clone()), occasions, shared.clone())
            })
            .collect();
        let end = context.timeouts.end;
        (!workers.is_empty()).then_some(Self { workers, shared, end })
    }

    /// Queues a message for all subscribed channels that have not received it. Waits for no channel.
    pub fn send(&self, message: NotificationMessage, key: NotificationKey) {
        let records = self.shared.log.records_of(&key);
        self.enqueue(message, &key, |channel| {
            let is_new = !records.iter().any(|record| record.delivered && record.channel == channel);
            // The end of a run is not retried, so it is not recorded.
            if is_new && key.event != NotificationKind::Done {
                self.shared.log.record(&key, channel, false);
            }
            is_new
        });
    }

    /// Queues a message again for the channels that it was not delivered to. Waits for no channel.
    pub fn resend(&self, message: NotificationMessage, key: &NotificationKey) {
        let records = self.shared.log.records_of(key);
        self.enqueue(message, key, |channel| {
            records.iter().any(|record| !record.delivered && record.channel == channel)
        });
    }

    fn enqueue(&self, message: NotificationMessage, key: &NotificationKey, is_due: impl Fn(&str) -> bool) {
        let queued = QueuedMessage { message: Arc::new(message), key: Arc::new(key.clone()) };
        let wants = |worker: &&ChannelWorker| worker.occasions.contains(&queued.message.event) && is_due(&worker.name);
        for worker in self.workers.iter().filter(wants) {
            if worker.queue.push(queued.clone()) {
                let note = format!("notify: {} is too slow; older messages are dropped", worker.name);
                note_down(&self.shared.notes, note);
            }
        }
    }

    /// Returns and clears the notes about channels.
    pub fn notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.shared.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits a little for pending messages, stops slower channels, and returns notes about undelivered messages.
    pub fn finish(self) -> Vec<String> {
        let deadline = system::deadline(system::now(), self.end);
        for worker in &self.workers {
            let left = worker.queue.close(deadline.saturating_duration_since(system::now()));
            if left > 0 {
                let what = if left == 1 { "one message".to_owned() } else { format!("{left} messages") };
                note_down(&self.shared.notes, format!("notify: {} did not deliver {what} in time", worker.name));
            }
        }
        // No program of a channel may outlive this process.
        self.shared.cancelled.store(true, Ordering::Relaxed);
        let deadline = system::deadline(system::now(), STOP_TIMEOUT);
        for worker in self.workers.iter().filter(|worker| worker.runs_a_program) {
            worker.queue.close(deadline.saturating_duration_since(system::now()));
        }
        self.notes()
    }
}

fn note_down(notes: &ChannelNotes, note: String) {
    notes.lock().unwrap_or_else(PoisonError::into_inner).push(note);
}

impl ChannelWorker {
    fn open(channel: NotifyChannel, occasions: Vec<NotificationKind>, shared: NotifierShared) -> Self {
        let (name, queue) = (channel.name().to_owned(), Arc::new(MessageQueue::default()));
        let runs_a_program = channel.runs_a_program();
        let work = queue.clone();
        std::thread::spawn(move || {
            let mut reported = false;
            while let Some(QueuedMessage { message, key }) = work.next() {
                let end = channel.send_cancellable(&message, &shared.cancelled);
                if end.is_ok() {
                    shared.log.record(&key, channel.name(), true);
                }
                // Report the first error of a channel only, and none after it was stopped.
                if let (Err(error), false) = (&end, reported || shared.cancelled.load(Ordering::Relaxed)) {
                    note_down(&shared.notes, format!("notify: {}: {error}", channel.name()));
                    reported = true;
                }
                work.done();
            }
        });
        Self { name, runs_a_program, occasions, queue }
    }
}

/// Maximum number of queued messages.
const MAX_QUEUED: usize = 100;

/// A bounded queue of messages for one thread.
#[derive(Default)]
struct MessageQueue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    waiting: VecDeque<QueuedMessage>,
    /// Whether a message is being sent.
    busy: bool,
    /// Whether messages were dropped.
    dropped: bool,
    /// No more messages will be queued.
    closed: bool,
}

impl QueueState {
    fn unsent(&self) -> usize {
        self.waiting.len() + usize::from(self.busy)
    }
}

impl MessageQueue {
    /// Queues a message. Returns true if another one was dropped for the first time.
    fn push(&self, message: QueuedMessage) -> bool {
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
    fn next(&self) -> Option<QueuedMessage> {
        let idle = |state: &mut QueueState| state.waiting.is_empty() && !state.closed;
        let mut state = self.changed.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
        let next = state.waiting.pop_front();
        state.busy = next.is_some();
        next
    }

    fn done(&self) {
        self.lock().busy = false;
        self.changed.notify_all();
    }

    /// Closes the queue, and waits until all messages are sent or the time is up. Returns the number of unsent
    /// messages.
    fn close(&self, wait: Duration) -> usize {
        let mut state = self.lock();
        state.closed = true;
        self.changed.notify_all();
        let waited = self.changed.wait_timeout_while(state, wait, |state| state.unsent() > 0);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let left = state.unsent();
        state.waiting.clear();
        left
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use signoff_core::ids::RunId;

    use super::*;

    fn message(run_id: u64) -> QueuedMessage {
        let key = NotificationKey { run: RunId(run_id), seq: 1, event: NotificationKind::Done, about: None };
        let message = NotificationMessage {
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
        };
        QueuedMessage { message: Arc::new(message), key: Arc::new(key) }
    }

    #[test]
    fn the_oldest_messages_are_dropped_and_reported_once() {
        let queue = MessageQueue::default();
        let dropped: Vec<u64> = (0..200).filter(|number| queue.push(message(*number))).collect();
        assert_eq!(dropped, [100]);
        assert_eq!(queue.next().map(|queued| queued.key.run), Some(RunId(100)));
        assert_eq!(queue.close(Duration::ZERO), 100, "99 queued messages, and the one being sent");
        assert!(queue.next().is_none());
    }
}
