//! The terminal screen: one thread draws it and reads the keys, other threads send it messages.
//!
//! It draws at most thirty frames per second, and only if something changed. So work never waits for the terminal, and
//! sixty loops cost hardly more than one.

mod background;
mod drawing;
mod keys;
mod terminal;
mod watchers;
mod work_handler;

pub use background::BackgroundWorker;
pub use terminal::{StallDetector, TerminationSignals};
pub use watchers::{InboxWatcher, is_queued, watch_queue};
pub use work_handler::{DispatcherHandle, WorkHandler};

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::Timestamp;
use signoff_core::view::inbox::InboxHints;
use signoff_core::view::{TaskRow, Transition};
use signoff_engine::executor::AttemptKey;
use signoff_engine::notify::TerminalWriter;
use signoff_term::tui::{Theme, Tui, TuiData, TuiMode, TuiRequest};

use self::drawing::DrawingThread;
use self::terminal::TerminalSignal;
use crate::{Console, host};

/// Maximum number of events per message. A frame may be drawn between two messages.
pub const MAX_TRANSITIONS: usize = 1000;

/// Maximum number of messages that the screen has not returned: it applies one while the next is prepared. Transitions
/// need more memory than the log.
const MAX_IN_FLIGHT: usize = 2;

/// Interval for checking whether the screen has applied a message.
const LOAD_INTERVAL: Duration = Duration::from_millis(1);

/// Maximum length of an agent's line in characters; no screen shows more.
const MAX_LINE: usize = 2000;

/// Interval for checking whether the terminal still accepts output.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A message to the drawing thread.
///
/// The thread drops the token of a message when it has consumed it. The sender of a long transcript waits for that.
pub enum ScreenMessage {
    /// New events, in order.
    Transitions {
        transitions: Vec<Transition>,
        /// Where the screen sends the transitions back once it has applied them.
        applied: Option<Sender<Vec<Transition>>>,
    },
    AgentLine {
        attempt: AttemptKey,
        line: String,
        pending: Arc<()>,
    },
    /// The queued tasks.
    Queue(Vec<TaskRow>),
    /// The state of all tasks by the rules of a bare `signoff`.
    Inbox(InboxHints),
    /// The store was replaced: clear the screen.
    Reset,
    /// The current time of a replay.
    Time(Timestamp),
    /// The answer to a request of the screen, or a part of it.
    Data(Box<TuiData>, Arc<()>),
    /// A note for the user.
    Note(String),
    /// No more questions will be asked.
    ShuttingDown,
    /// Bytes to write to the terminal that draw nothing.
    WriteRaw(Vec<u8>),
    /// Wakes the thread to read the signal channel, which has priority over other messages.
    Signal,
    /// The last message.
    Close,
}

/// Why the screen was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// The user closed it.
    Quit,
    /// The user or a signal asked the program to end.
    Interrupted,
    /// The terminal is gone.
    Gone,
}

/// Handles the requests of the screen. The screen is blocked during a call, so it must return at once.
pub trait RequestHandler: Send {
    fn handle(&mut self, request: TuiRequest);

    /// Called when the screen becomes visible or hidden. It is hidden while the process is in the background.
    fn set_visible(&mut self, visible: bool);

    /// Called once when the screen is closed.
    fn closed(&mut self, reason: CloseReason);
}

/// Sends the events of a long log to the screen.
///
/// The screen returns the transitions, and the thread that made them drops them: freeing memory of another thread costs
/// more than the replay itself.
pub struct TransitionSender {
    sender: ScreenSender,
    applied: (Sender<Vec<Transition>>, Receiver<Vec<Transition>>),
    in_flight: usize,
}

impl TransitionSender {
    pub fn new(sender: ScreenSender) -> Self {
        Self { sender, applied: mpsc::channel(), in_flight: 0 }
    }

    /// Whether the screen takes another message.
    pub fn has_room(&mut self) -> bool {
        self.in_flight -= self.applied.1.try_iter().count();
        self.in_flight < MAX_IN_FLIGHT
    }

    /// How long to wait before the next message.
    pub fn load_interval(&mut self) -> Duration {
        if self.has_room() { Duration::ZERO } else { LOAD_INTERVAL }
    }

    pub fn send(&mut self, transitions: Vec<Transition>) {
        self.in_flight += 1;
        self.sender.send(ScreenMessage::Transitions { transitions, applied: Some(self.applied.0.clone()) });
    }
}

/// Sends messages to the screen. Messages to a closed screen are dropped.
#[derive(Clone)]
pub struct ScreenSender(Sender<ScreenMessage>);

impl ScreenSender {
    /// A line of an agent's output. The screen drops its clone of `pending` when it has consumed the line.
    pub fn agent_line(&self, attempt: AttemptKey, line: &str, pending: &Arc<()>) {
        let line = line.chars().take(MAX_LINE).collect();
        self.send(ScreenMessage::AgentLine { attempt, line, pending: pending.clone() });
    }

    /// The answer to a request of the screen, or a part of it. The screen drops its clone of `pending` when it has
    /// consumed it.
    pub fn send_data(&self, data: TuiData, pending: &Arc<()>) {
        self.send(ScreenMessage::Data(Box::new(data), pending.clone()));
    }

    /// Writes bytes to the terminal that draw nothing: a bell or a notification. Without a drawing thread they are
    /// written directly.
    fn write_raw(&self, bytes: Vec<u8>) {
        if let Err(mpsc::SendError(ScreenMessage::WriteRaw(bytes))) = self.0.send(ScreenMessage::WriteRaw(bytes)) {
            terminal::write_raw(&bytes);
        }
    }

    pub fn send(&self, message: ScreenMessage) {
        self.0.send(message).ok();
    }
}

/// A handle to the screen. Dropping it closes the screen and prints the output that was held back.
pub struct Screen {
    sender: ScreenSender,
    drawing: Option<JoinHandle<()>>,
    /// Disconnected when the drawing thread ends.
    done: Receiver<()>,
    /// Set when a termination signal arrives.
    end_requested: Arc<AtomicBool>,
}

impl Screen {
    /// Opens the screen for the repository at `root`. Returns `None` if the terminal cannot be drawn on or another
    /// process group owns it.
    pub fn open(
        console: &Console,
        mode: TuiMode,
        termination_signals: TerminationSignals,
        root: &Path,
        handler: impl FnOnce(ScreenSender) -> Box<dyn RequestHandler>,
    ) -> Option<Self> {
        if !console.can_draw() || !terminal::is_foreground() {
            return None;
        }
        let ((message_sender, messages), (signals, signalled)) = (mpsc::channel(), mpsc::channel());
        let (sender, wake) = (ScreenSender(message_sender.clone()), message_sender);
        let theme = if host::variable("NO_COLOR").is_some() { Theme::Plain } else { Theme::Color };
        let mut tui = Tui::new(mode, theme);
        tui.set_project(&root.file_name().unwrap_or_default().to_string_lossy());
        let mut drawing = DrawingThread::new(tui, handler(sender.clone()), *console, termination_signals, signalled);
        drawing.begin().ok()?;
        let end_requested = Arc::new(AtomicBool::new(false));
        let requested = end_requested.clone();
        let on_signal = move |signal| {
            requested.fetch_or(signal == TerminalSignal::End, Ordering::AcqRel);
            signals.send(signal).is_ok() && wake.send(ScreenMessage::Signal).is_ok()
        };
        terminal::listen(termination_signals, on_signal).ok()?;
        let (done_sender, done) = mpsc::channel();
        let drawing = std::thread::spawn(move || {
            let _done_sender = done_sender;
            drawing.run(&messages);
        });
        Some(Self { sender, drawing: Some(drawing), done, end_requested })
    }

    pub fn sender(&self) -> &ScreenSender {
        &self.sender
    }

    /// Whether a termination signal arrived while the drawing thread is blocked on the terminal. Poll this regularly.
    pub fn is_unresponsive(&self, stall: &mut StallDetector) -> bool {
        stall.is_stalled() && self.end_requested.load(Ordering::Acquire)
    }

    /// The terminal for notifications. The drawing thread writes them, so that they never mix with a frame.
    pub fn terminal(&self) -> TerminalWriter {
        let sender = self.sender.clone();
        Arc::new(move |bytes: &[u8]| sender.write_raw(bytes.to_vec()))
    }
}

/// Closes the screen, also after a panic, because the terminal must be restored.
impl Drop for Screen {
    fn drop(&mut self) {
        self.sender.send(ScreenMessage::Close);
        let Some(drawing) = self.drawing.take() else { return };
        let mut stall = StallDetector::default();
        while self.done.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            if stall.is_stalled() {
                return terminal::restore_settings();
            }
        }
        drawing.join().ok();
    }
}

#[cfg(test)]
mod tests {
    use signoff_core::ids::{AttemptId, LoopId, RunId};

    use super::*;

    /// A stopped terminal accepts nothing. The sender of agent lines sees that in the count and sends no more.
    #[test]
    fn a_line_is_pending_until_the_screen_takes_it() {
        let (sender, messages) = mpsc::channel();
        let sender = ScreenSender(sender);
        let (attempt, pending) = (AttemptKey::new(RunId(1), &LoopId::new("1"), AttemptId(1)), Arc::new(()));
        for line in ["Reading", "Writing"] {
            sender.agent_line(attempt.clone(), line, &pending);
        }
        assert_eq!(Arc::strong_count(&pending), 3);
        messages.try_iter().for_each(drop);
        assert_eq!(Arc::strong_count(&pending), 1);
    }
}
