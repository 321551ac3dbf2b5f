//! The drawing thread: reads keys, applies messages and draws frames.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use jiff::{SignedDuration, Timestamp};
use rustix::process::{Signal, getpgrp, getpid, kill_process, kill_process_group};
use signoff_engine::executor::AttemptKey;
use signoff_term::tui::{Tui, TuiRequest};

use super::keys::{KeyReader, TerminalInput};
use super::terminal::{self, RawTerminal, TerminalOwner, TerminalSignal, TerminationSignals};
use super::{CloseReason, RequestHandler, ScreenMessage};
use crate::{Console, host};

/// Minimum time between two frames.
const FRAME: Duration = Duration::from_nanos(33_333_333);

/// Maximum time to wait for keys while a log is being read. Its sender waits until the screen has applied the events.
const LOADING_WAIT: Duration = Duration::from_millis(4);

/// Maximum number of messages applied before a frame is drawn, so that a flood of messages blocks neither frames nor
/// keys.
const MAX_MESSAGES: usize = 20_000;

/// Maximum time for applying messages before a frame is drawn.
const MAX_APPLY: SignedDuration = SignedDuration::from_millis(20);

/// The same while events are applied: a long log loads faster with fewer frames in between.
const MAX_APPLY_LOG: SignedDuration = SignedDuration::from_millis(100);

/// The state of the drawing thread.
pub struct DrawingThread {
    tui: Tui,
    handler: Box<dyn RequestHandler>,
    console: Console,
    keys: KeyReader,
    /// Whether this thread handles termination signals, and the received signals.
    termination_signals: TerminationSignals,
    signals: Receiver<TerminalSignal>,
    /// `None` while another process owns the terminal, or after the screen was closed.
    terminal: Option<RawTerminal>,
    /// The screen was closed and is not opened again.
    closed: bool,
    /// The process is being stopped: do not take the terminal before it continues.
    stopped: bool,
    /// Draw the next frame even if nothing changed.
    redraw: bool,
    /// When events were last applied.
    applied_at: Option<Timestamp>,
    drawn_at: Option<Timestamp>,
    begun_at: Timestamp,
    /// The current time of a replay.
    time: Option<Timestamp>,
    frames: u64,
}

impl DrawingThread {
    pub fn new(
        tui: Tui,
        handler: Box<dyn RequestHandler>,
        console: Console,
        termination_signals: TerminationSignals,
        signals: Receiver<TerminalSignal>,
    ) -> Self {
        Self {
            tui,
            handler,
            console,
            keys: KeyReader::default(),
            termination_signals,
            signals,
            terminal: None,
            closed: false,
            stopped: false,
            redraw: true,
            applied_at: None,
            drawn_at: None,
            begun_at: host::now(),
            time: None,
            frames: 0,
        }
    }

    /// Takes the terminal.
    pub fn begin(&mut self) -> io::Result<()> {
        self.terminal = Some(RawTerminal::acquire()?);
        self.redraw = true;
        Ok(())
    }

    /// Runs until the last message and then restores the terminal.
    pub fn run(mut self, messages: &Receiver<ScreenMessage>) {
        loop {
            self.read_keys();
            if !self.apply_messages(messages) {
                break;
            }
            self.update_terminal_ownership();
            self.draw();
            if self.frames > 0 {
                host::panic_for_test("drawing");
            }
        }
        drop(self.terminal.take());
        let seconds = host::now().duration_since(self.begun_at).as_secs_f64();
        self.console.detail(&format!("{} frames in {seconds:.1} s", self.frames));
    }

    /// Waits for keys, at most until the next frame is due.
    fn read_keys(&mut self) {
        if self.terminal.is_none() {
            return;
        }
        let is_recent = |at: Timestamp| host::now().duration_since(at).abs() < MAX_APPLY_LOG;
        let longest = if self.applied_at.is_some_and(is_recent) { LOADING_WAIT } else { FRAME };
        match self.keys.wait(self.until_due().min(longest)) {
            Some(keys) => keys.into_iter().for_each(|input| self.input(input)),
            None => self.close(CloseReason::Gone),
        }
    }

    /// The time until the next frame may be drawn; a full interval if no frame is needed.
    fn until_due(&self) -> Duration {
        let now = host::now();
        let waits = self.redraw || self.tui.needs_frame(self.time.unwrap_or(now));
        let passed = self.drawn_at.map_or(FRAME, |at| now.duration_since(at).unsigned_abs());
        if waits { FRAME.saturating_sub(passed) } else { FRAME }
    }

    fn input(&mut self, input: TerminalInput) {
        match input {
            TerminalInput::Key(key) => self.handle_key(key),
            TerminalInput::Pasted(c) => self.tui.paste(c.encode_utf8(&mut [0; 4]), host::now()),
        }
    }

    fn handle_key(&mut self, key: KeyEvent) {
        if key == KeyEvent::new(KeyCode::Char('z'), KeyModifiers::CONTROL) {
            // In raw mode the terminal does not stop the process group, so do it here.
            kill_process_group(getpgrp(), Signal::TSTP).ok();
            return;
        }
        let requests = self.tui.handle_key(key, host::now());
        self.handle(requests);
    }

    fn handle(&mut self, requests: Vec<TuiRequest>) {
        for request in requests {
            match request {
                TuiRequest::Quit => self.close(CloseReason::Quit),
                TuiRequest::Interrupt if self.termination_signals == TerminationSignals::HandledByScreen => {
                    self.close(CloseReason::Interrupted)
                }
                // Not sent as a signal, because two pending signals merge into one.
                TuiRequest::Interrupt
                | TuiRequest::QuestionDecided(_)
                | TuiRequest::Decide(..)
                | TuiRequest::Load(_)
                | TuiRequest::Replay(_) => self.handler.handle(request),
            }
        }
    }

    /// Closes the screen for good.
    fn close(&mut self, reason: CloseReason) {
        drop(self.terminal.take());
        if !std::mem::replace(&mut self.closed, true) {
            self.handler.closed(reason);
        }
    }

    /// Applies pending messages. Without the terminal it waits for the first one. Returns false after the last message.
    fn apply_messages(&mut self, messages: &Receiver<ScreenMessage>) -> bool {
        if self.terminal.is_none() {
            match messages.recv_timeout(if self.closed { Duration::from_secs(60) } else { FRAME }) {
                Ok(first) => {
                    if !self.apply(first) {
                        return false;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
        let (begun, mut longest) = (host::now(), MAX_APPLY);
        for _ in 0..MAX_MESSAGES {
            self.handle_signals();
            if host::now().duration_since(begun).abs() > longest {
                return true;
            }
            match messages.try_recv() {
                Ok(next) => {
                    longest = if matches!(next, ScreenMessage::Transitions { .. }) { MAX_APPLY_LOG } else { longest };
                    if !self.apply(next) {
                        return false;
                    }
                }
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
        true
    }

    fn handle_signals(&mut self) {
        while let Ok(signal) = self.signals.try_recv() {
            match signal {
                // A hangup of the terminal does not count as an interrupt.
                TerminalSignal::End if terminal::terminal_owner() == TerminalOwner::Gone => {
                    self.close(CloseReason::Gone)
                }
                TerminalSignal::End => self.close(CloseReason::Interrupted),
                TerminalSignal::Stop => self.stop(),
                TerminalSignal::Continue => self.resume(),
                TerminalSignal::Resized => self.redraw = true,
            }
        }
    }

    /// Applies one message. Returns false for the last one.
    fn apply(&mut self, message: ScreenMessage) -> bool {
        // A closed screen shows nothing more.
        if self.closed && !matches!(message, ScreenMessage::WriteRaw(_) | ScreenMessage::Signal | ScreenMessage::Close)
        {
            return true;
        }
        match message {
            ScreenMessage::Transitions { transitions, applied } => {
                transitions.iter().for_each(|transition| self.tui.apply(transition));
                self.applied_at = Some(host::now());
                applied.and_then(|applied| applied.send(transitions).ok());
            }
            ScreenMessage::AgentLine { attempt: AttemptKey { run, loop_id, attempt }, line, pending: _pending } => {
                self.tui.add_live_line(run, &loop_id, attempt, &line);
            }
            ScreenMessage::Queue(tasks) => self.tui.set_queue(tasks),
            ScreenMessage::Inbox(hints) => self.tui.set_inbox_hints(hints),
            ScreenMessage::Reset => self.tui.reset(),
            ScreenMessage::Time(time) => self.time = Some(time),
            ScreenMessage::Data(data, _pending) => self.tui.receive(*data),
            ScreenMessage::Note(note) => self.tui.show_note(&note),
            ScreenMessage::ShuttingDown => self.tui.set_shutting_down(),
            ScreenMessage::WriteRaw(bytes) => terminal::write_raw(&bytes),
            ScreenMessage::Signal => self.handle_signals(),
            ScreenMessage::Close => return false,
        }
        true
    }

    /// Restores the terminal and stops the process until it receives SIGCONT.
    fn stop(&mut self) {
        // Without a job-control shell nothing would continue it. The kernel does not stop such a process either.
        if !terminal::has_job_control() {
            return;
        }
        drop(self.terminal.take());
        // The process may not be stopped yet when this returns: the signal may reach another thread first.
        self.stopped = kill_process(getpid(), Signal::STOP).is_ok();
    }

    /// Continues after a stop. The shell may have changed the terminal in the meantime.
    fn resume(&mut self) {
        self.stopped = false;
        if self.terminal.as_ref().is_some_and(|terminal| !terminal.is_raw()) {
            // The terminal is acquired again at once if this process is in the foreground.
            drop(self.terminal.take());
        }
        if let Some(terminal) = &mut self.terminal {
            terminal.redraw().ok();
        }
        self.redraw = true;
    }

    /// Releases the terminal when the process is in the background and takes it again in the foreground.
    fn update_terminal_ownership(&mut self) {
        if self.closed || self.stopped {
            return;
        }
        match (terminal::terminal_owner(), self.terminal.is_some()) {
            (TerminalOwner::Foreground, true) | (TerminalOwner::Background, false) => {}
            (TerminalOwner::Foreground, false) => {
                if self.begin().is_ok() {
                    self.handler.set_visible(true);
                }
            }
            (TerminalOwner::Background, true) => {
                drop(self.terminal.take());
                self.handler.set_visible(false);
            }
            (TerminalOwner::Gone, _) => self.close(CloseReason::Gone),
        }
    }

    fn draw(&mut self) {
        let requests = self.tui.requests();
        self.handle(requests);
        if !self.until_due().is_zero() {
            return;
        }
        let Some(terminal) = &mut self.terminal else { return };
        let now = host::now();
        let shown = self.time.unwrap_or(now);
        let result = terminal.draw(|frame| self.tui.draw(frame, shown));
        (self.drawn_at, self.redraw) = (Some(now), false);
        self.frames += 1;
        if result.is_err() {
            self.close(CloseReason::Gone);
        }
    }
}
