//! Takes the terminal for drawing and restores it in every case; passes on the signals that concern it.
//!
//! Frames go to the alternate screen, so the previous contents reappear afterwards. The lock of stdout serializes
//! drawing and restoring: a panic in any thread waits for the current frame, and no frame is drawn after it.

use std::io::{self, BufWriter, Stdout, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::task::Poll;

use jiff::{SignedDuration, Timestamp};
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen};
use ratatui::{Frame, Terminal};
use rustix::process::{Signal, getpgrp, getsid};
use rustix::termios::{LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetpgrp, tcsetattr};
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};

use crate::{console, host};

/// The terminal settings before it was taken; `None` while it is not taken.
static SAVED_SETTINGS: Mutex<Option<Termios>> = Mutex::new(None);

/// Buffer size, so that a frame is written at once.
const FRAME_BYTES: usize = 1 << 16;

/// Incremented before and after every write to the terminal: odd during a write.
static WRITES: AtomicU64 = AtomicU64::new(0);

/// A write that takes longer than this counts as stalled.
const STALL_LIMIT: SignedDuration = SignedDuration::from_secs(1);

/// The terminal in raw mode. Dropping it restores the terminal.
pub struct RawTerminal(Option<Terminal<CrosstermBackend<BufWriter<Stdout>>>>);

impl RawTerminal {
    /// Takes the terminal. Other output is held back until it is restored.
    pub fn acquire() -> io::Result<Self> {
        restore_on_panic();
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        // Discard keys typed before the screen was visible.
        tcsetattr(io::stdin(), OptionalActions::Flush, &raw)?;
        *SAVED_SETTINGS.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        console::hold_back();
        let begun = Self::begin();
        if begun.is_err() {
            restore();
        }
        begun
    }

    fn begin() -> io::Result<Self> {
        execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste, Hide, Clear(ClearType::All))?;
        let out = BufWriter::with_capacity(FRAME_BYTES, io::stdout());
        Ok(Self(Some(Terminal::new(CrosstermBackend::new(out))?)))
    }

    /// Whether the terminal is still in raw mode. A shell resets it while the process is stopped.
    pub fn is_raw(&self) -> bool {
        tcgetattr(io::stdin()).is_ok_and(|now| !now.local_modes.contains(LocalModes::ICANON))
    }

    /// Makes the next frame redraw everything, because another process may have drawn on the screen.
    pub fn redraw(&mut self) -> io::Result<()> {
        let Some(terminal) = &mut self.0 else { return Ok(()) };
        let size = terminal.size()?;
        terminal.resize(size.into())
    }

    /// Draws a frame, unless the terminal has been restored in the meantime.
    pub fn draw(&mut self, frame: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        let _stdout_lock = io::stdout().lock();
        match &mut self.0 {
            Some(terminal) if is_taken() => counted_write(|| terminal.draw(frame).map(drop)),
            Some(_) | None => Ok(()),
        }
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        restore();
        if let Some(mut terminal) = self.0.take()
            && counted_write(|| terminal.show_cursor()).is_err()
        {
            // Its drop would print an error to stderr, which is the terminal that is gone.
            std::mem::forget(terminal);
        }
    }
}

/// Runs a write to the terminal and counts it, so that a stalled write can be detected.
fn counted_write<T>(write: impl FnOnce() -> T) -> T {
    WRITES.fetch_add(1, Ordering::AcqRel);
    let written = write();
    WRITES.fetch_add(1, Ordering::AcqRel);
    written
}

/// Detects a terminal that no longer accepts output.
#[derive(Debug, Default)]
pub struct StallDetector(Option<(u64, Timestamp)>);

impl StallDetector {
    /// Whether the current write is stalled. Poll this regularly.
    pub fn is_stalled(&mut self) -> bool {
        let (write, now) = (WRITES.load(Ordering::Acquire), host::now());
        match self.0 {
            Some((previous, since)) if previous == write => now.duration_since(since) > STALL_LIMIT,
            Some(_) | None => {
                self.0 = Some((write, now)).filter(|_| write % 2 == 1);
                false
            }
        }
    }
}

/// Restores the settings of a stalled terminal. Output that was held back is lost.
pub fn restore_settings() {
    if let Some(before) = SAVED_SETTINGS.lock().unwrap_or_else(PoisonError::into_inner).take() {
        apply_settings(&before);
    }
}

/// Restores the settings if this process is in the foreground; otherwise another process has set the terminal up for
/// itself. Does not wait for pending output, which may never drain.
fn apply_settings(before: &Termios) {
    if is_foreground() {
        tcsetattr(io::stdin(), OptionalActions::Now, before).ok();
        tcflush(io::stdin(), QueueSelector::IFlush).ok();
    }
}

fn is_taken() -> bool {
    SAVED_SETTINGS.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// Restores the terminal if it is taken, and prints the output that was held back. Errors are ignored.
pub fn restore() {
    let mut out = io::stdout().lock();
    let Some(before) = SAVED_SETTINGS.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
    apply_settings(&before);
    counted_write(|| {
        execute!(out, DisableBracketedPaste, LeaveAlternateScreen, Show).ok();
        drop(out);
        console::write_held_back();
    });
}

/// Writes bytes to the terminal that draw nothing.
pub fn write_raw(bytes: &[u8]) {
    let mut out = io::stdout().lock();
    counted_write(|| out.write_all(bytes).and_then(|()| out.flush())).ok();
}

/// Which process group owns the terminal. A process in another group is stopped when it reads from the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalOwner {
    Foreground,
    /// This process is in the background.
    Background,
    /// The terminal is gone.
    Gone,
}

pub fn terminal_owner() -> TerminalOwner {
    match tcgetpgrp(io::stdin()) {
        Ok(group) if group == getpgrp() => TerminalOwner::Foreground,
        Ok(_) => TerminalOwner::Background,
        Err(_) => TerminalOwner::Gone,
    }
}

pub fn is_foreground() -> bool {
    terminal_owner() == TerminalOwner::Foreground
}

/// Whether a job-control shell can continue this process after a stop.
pub fn has_job_control() -> bool {
    getsid(None).is_ok_and(|session| session != getpgrp())
}

/// Restores the terminal before a panic message is printed.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous_hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            previous_hook(panic);
        }));
    });
}

/// What a signal means for the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalSignal {
    /// Close the screen.
    End,
    /// Restore the terminal and stop the process.
    Stop,
    /// Continue after a stop. The terminal may have changed.
    Continue,
    /// The terminal was resized.
    Resized,
}

/// Where termination signals are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminationSignals {
    /// By the screen.
    HandledByScreen,
    /// By the dispatcher, which then ends the screen.
    HandledElsewhere,
}

/// Starts a thread that passes signals to `on_signal` until it returns false.
pub fn listen(
    termination_signals: TerminationSignals,
    on_signal: impl Fn(TerminalSignal) -> bool + Send + 'static,
) -> io::Result<()> {
    let mut meanings = vec![
        (Signal::TSTP, TerminalSignal::Stop),
        (Signal::CONT, TerminalSignal::Continue),
        (Signal::WINCH, TerminalSignal::Resized),
    ];
    if termination_signals == TerminationSignals::HandledByScreen {
        meanings.extend([Signal::INT, Signal::TERM, Signal::HUP].map(|kind| (kind, TerminalSignal::End)));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let inside = runtime.enter();
    let stream = |(kind, meaning): (Signal, _)| Ok((signal(SignalKind::from_raw(kind.as_raw()))?, meaning));
    let mut streams = meanings.into_iter().map(stream).collect::<io::Result<Vec<_>>>()?;
    drop(inside);
    std::thread::spawn(move || while on_signal(runtime.block_on(next_signal(&mut streams))) {});
    Ok(())
}

async fn next_signal(streams: &mut [(SignalStream, TerminalSignal)]) -> TerminalSignal {
    std::future::poll_fn(|context| {
        let received = |(stream, meaning): &mut (SignalStream, TerminalSignal)| {
            stream.poll_recv(context).is_ready().then_some(*meaning)
        };
        streams.iter_mut().find_map(received).map_or(Poll::Pending, Poll::Ready)
    })
    .await
}
