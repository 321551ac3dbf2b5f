//! Runs a program on a pseudo-terminal: sends keys and reads the screen.
//!
//! The pseudo-terminal is the program's controlling terminal. A thread reads the output and wakes the waiting test, so
//! nothing sleeps.

use std::fmt;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pty_process::Size;
use pty_process::blocking::{self, Pty};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{Action, LocalModes, tcflow, tcgetattr};

use crate::TestEnv;

/// Keys as a terminal sends them.
pub mod key {
    pub const UP: &str = "\x1b[A";
    pub const DOWN: &str = "\x1b[B";
    pub const RIGHT: &str = "\x1b[C";
    pub const LEFT: &str = "\x1b[D";
    pub const ENTER: &str = "\r";
    pub const ESC: &str = "\x1b";
    pub const TAB: &str = "\t";
    pub const BACKSPACE: &str = "\x7f";
    pub const CTRL_C: &str = "\x03";
    pub const CTRL_D: &str = "\x04";
    pub const CTRL_Z: &str = "\x1a";
}

/// Timeout for waits on the screen.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Number of scrollback lines.
const SCROLLBACK_LINES: usize = 1000;

/// The size of a terminal.
#[derive(Debug, Clone, Copy)]
pub struct TerminalSize {
    pub columns: u16,
    pub lines: u16,
}

impl TerminalSize {
    pub const DEFAULT: Self = Self::new(80, 24);

    pub const fn new(columns: u16, lines: u16) -> Self {
        Self { columns, lines }
    }
}

/// A program on its own terminal.
pub struct TestTerminal {
    pty: Arc<Pty>,
    child: Child,
    output: Arc<TerminalOutput>,
}

/// The output so far, shared with the reader thread.
struct TerminalOutput {
    state: Mutex<TerminalState>,
    changed: Condvar,
}

struct TerminalState {
    parser: vt100::Parser,
    /// The program closed the terminal.
    is_closed: bool,
    /// The test hung up; the reader thread must stop.
    is_hung_up: bool,
    /// Counts the bells.
    bells: BellCounter,
}

/// Counts bells in the output. The BEL byte also ends operating system commands (OSC), which are no bells.
#[derive(Default)]
struct BellCounter {
    count: usize,
    /// Within an operating system command.
    in_osc: bool,
    /// The last byte was an escape.
    escaped: bool,
}

impl BellCounter {
    fn feed(&mut self, byte: u8) {
        let after_escape = std::mem::replace(&mut self.escaped, byte == 0x1b);
        match (byte, self.in_osc) {
            (b']', false) if after_escape => self.in_osc = true,
            (b'\\', true) if after_escape => self.in_osc = false,
            (0x07, true) => self.in_osc = false,
            (0x07, false) => self.count += 1,
            _ => {}
        }
    }
}

/// The text of the screen, without trailing spaces and trailing empty lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalScreen(String);

impl TerminalScreen {
    pub fn contains(&self, text: &str) -> bool {
        self.0.contains(text)
    }

    pub fn text(&self) -> &str {
        &self.0
    }

    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.0.lines()
    }
}

impl fmt::Display for TerminalScreen {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl TestEnv {
    /// Starts the program on a terminal of 80 columns and 24 lines.
    pub fn terminal(&self, arguments: &[&str]) -> TestTerminal {
        self.terminal_with(TerminalSize::DEFAULT, arguments, &[])
    }

    /// Starts the program on a terminal of this size, with these environment variables.
    pub fn terminal_with(&self, size: TerminalSize, arguments: &[&str], variables: &[(&str, &str)]) -> TestTerminal {
        let mut command = self.command(self.program(), arguments);
        command.env("TERM", "xterm-256color").envs(variables.iter().copied());
        TestTerminal::start(command.into(), size)
    }

    /// Starts a shell script on a terminal, with the program in `PATH` as `signoff`.
    pub fn shell_on_terminal(&self, script: &str) -> TestTerminal {
        let mut command = self.command("sh", &["-c", script]);
        command.env("TERM", "xterm-256color");
        TestTerminal::start(command.into(), TerminalSize::DEFAULT)
    }
}

impl TestTerminal {
    fn start(command: blocking::Command, TerminalSize { columns, lines }: TerminalSize) -> Self {
        let (pty, pts) = blocking::open().expect("a pseudo-terminal");
        pty.resize(Size::new(lines, columns)).expect("a terminal that can be resized");
        let child = command.spawn(pts).expect("a started program");
        let parser = vt100::Parser::new(at_least_one(lines), at_least_one(columns), SCROLLBACK_LINES);
        let output = Arc::new(TerminalOutput {
            state: Mutex::new(TerminalState {
                parser,
                is_closed: false,
                is_hung_up: false,
                bells: BellCounter::default(),
            }),
            changed: Condvar::new(),
        });
        let pty = Arc::new(pty);
        let (from, to) = (pty.clone(), output.clone());
        std::thread::spawn(move || {
            to.read(&from);
            drop(from);
            to.close();
        });
        Self { pty, child, output }
    }

    /// Sends keys.
    ///
    /// # Panics
    /// If the terminal is gone.
    pub fn send(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).expect("a terminal that takes keys");
    }

    /// Resizes the terminal. The program gets a SIGWINCH.
    ///
    /// # Panics
    /// If the terminal is gone.
    pub fn resize(&self, TerminalSize { columns, lines }: TerminalSize) {
        let mut drawn = self.output.lock_state();
        drawn.parser.screen_mut().set_size(at_least_one(lines), at_least_one(columns));
        self.pty.resize(Size::new(lines, columns)).expect("a terminal that can be resized");
    }

    /// The current screen.
    pub fn screen(&self) -> TerminalScreen {
        self.output.lock_state().screen()
    }

    /// Waits until a condition on the screen holds, and returns the screen.
    ///
    /// # Panics
    /// If it does not hold when the program has ended, or after a minute.
    pub fn wait_until(&self, what: &str, mut condition: impl FnMut(&TerminalScreen) -> bool) -> TerminalScreen {
        let go_on = |drawn: &mut TerminalState| !drawn.is_closed && !condition(&drawn.screen());
        let waited = self.output.changed.wait_timeout_while(self.output.lock_state(), WAIT_TIMEOUT, go_on);
        let (drawn, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let (screen, is_over) = (drawn.screen(), drawn.is_closed);
        drop(drawn);
        let reason = if is_over { "the program ended before" } else { "timed out" };
        assert!(condition(&screen), "{what}: {reason}\n{screen}");
        screen
    }

    /// Waits until this text is on the screen.
    pub fn wait_for(&self, text: &str) -> TerminalScreen {
        self.wait_until(text, |screen| screen.contains(text))
    }

    /// Whether the terminal is in the state a shell expects: echo, canonical mode, visible cursor.
    ///
    /// # Panics
    /// If the terminal is gone.
    pub fn is_sane(&self) -> bool {
        let modes = tcgetattr(&*self.pty).expect("a terminal").local_modes;
        let cooked = modes.contains(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        cooked && !self.output.lock_state().parser.screen().hide_cursor()
    }

    /// The number of bells so far.
    pub fn bell_count(&self) -> usize {
        self.output.lock_state().bells.count
    }

    /// Waits for a bell.
    ///
    /// # Panics
    /// If there was none when the program has ended, or after a minute.
    pub fn wait_for_bell(&self) {
        let silent = |drawn: &mut TerminalState| !drawn.is_closed && drawn.bells.count == 0;
        let waited = self.output.changed.wait_timeout_while(self.output.lock_state(), WAIT_TIMEOUT, silent);
        let (drawn, _) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(drawn.bells.count > 0, "no bell\n{}", drawn.screen());
    }

    /// Waits for the program to end. Returns the number of bells.
    ///
    /// # Panics
    /// If it cannot be waited for.
    pub fn finish_and_count_bells(mut self) -> usize {
        self.child.wait().expect("an ended program");
        self.output.wait_until_closed();
        self.bell_count()
    }

    /// Whether anything on the screen has a colour.
    pub fn has_colour(&self) -> bool {
        let drawn = self.output.lock_state();
        let screen = drawn.parser.screen();
        let (lines, columns) = (screen.size().0.get(), screen.size().1.get());
        let cells = (0..lines).flat_map(|line| (0..columns).filter_map(move |column| screen.cell(line, column)));
        let plain = |cell: &vt100::Cell| [cell.fgcolor(), cell.bgcolor()] == [vt100::Color::Default; 2];
        !cells.into_iter().all(plain)
    }

    /// Sends the program a signal.
    ///
    /// # Panics
    /// If there is no such signal or the program has ended.
    pub fn signal(&self, signal: i32) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process");
        kill_process(pid, Signal::from_named_raw(signal).expect("a signal")).expect("a living process");
    }

    /// Stops the terminal's output, so that writes to it block.
    ///
    /// # Panics
    /// If the program has ended.
    pub fn stall(&self) {
        let terminal = format!("/proc/{}/fd/0", self.child.id());
        let flags = OFlags::RDWR | OFlags::NOCTTY;
        let terminal = rustix::fs::open(terminal, flags, Mode::empty()).expect("the program's terminal");
        tcflow(terminal, Action::OOff).expect("a terminal that can be stopped");
    }

    /// Waits for the end of a program on a stalled terminal. Returns its exit code, and whether the terminal is in
    /// canonical mode with echo.
    ///
    /// # Panics
    /// If it cannot be waited for.
    pub fn finish_stalled(mut self) -> (Option<i32>, bool) {
        let code = self.child.wait().expect("an ended program").code();
        let modes = tcgetattr(&*self.pty).expect("a terminal").local_modes;
        (code, modes.contains(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG))
    }

    /// Closes the terminal, as closing its window does, and waits for the program to end. Returns its exit code.
    ///
    /// # Panics
    /// If it cannot be waited for.
    pub fn hang_up(mut self) -> Option<i32> {
        self.output.lock_state().is_hung_up = true;
        self.output.wait_until_closed();
        let (another, _) = blocking::open().expect("a pseudo-terminal");
        // The reader thread is gone, so this drops the last handle.
        self.pty = Arc::new(another);
        self.child.wait().expect("an ended program").code()
    }

    /// Waits for the program to end. Returns its exit status and the last screen.
    ///
    /// # Panics
    /// If it cannot be waited for.
    pub fn finish(mut self) -> TerminalExit {
        let status = self.child.wait().expect("an ended program");
        let screen = self.output.wait_until_closed();
        TerminalExit { code: status.code(), signal: status.signal(), screen, sane: self.is_sane() }
    }

    /// The exit status, if the program has ended.
    ///
    /// # Panics
    /// If it cannot be asked for.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child")
    }
}

/// The exit status and last screen of a program.
#[derive(Debug)]
pub struct TerminalExit {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub screen: TerminalScreen,
    /// Whether the terminal was left in the state a shell expects.
    pub sane: bool,
}

impl fmt::Display for TerminalExit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => writeln!(out, "exit {code}")?,
            (None, Some(signal)) => writeln!(out, "signal {signal}")?,
            (None, None) => {}
        }
        write!(out, "{}", self.screen)
    }
}

/// Kills the program, also when a test panics.
impl Drop for TestTerminal {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl TerminalOutput {
    fn lock_state(&self) -> MutexGuard<'_, TerminalState> {
        // A condition that panics poisons the lock; the reader thread must go on.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads until the program closes the terminal.
    fn read(&self, mut pty: &Pty) {
        let mut buffer = [0; 4096];
        loop {
            // On Linux, reads fail with EIO when the last handle is closed.
            let length = if self.wait_readable(pty) { pty.read(&mut buffer).unwrap_or(0) } else { 0 };
            let mut drawn = self.lock_state();
            match buffer.get(..length) {
                Some([]) | None => return,
                Some(bytes) => {
                    drawn.parser.process(bytes);
                    bytes.iter().for_each(|byte| drawn.bells.feed(*byte));
                }
            }
            drop(drawn);
            self.changed.notify_all();
        }
    }

    /// Marks the output as complete.
    fn close(&self) {
        self.lock_state().is_closed = true;
        self.changed.notify_all();
    }

    /// Waits until there is data to read. Returns false if the test hung up.
    fn wait_readable(&self, pty: &Pty) -> bool {
        let a_while = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        let is_there = || poll(&mut [PollFd::new(pty, PollFlags::IN)], Some(&a_while)).is_ok_and(|ready| ready > 0);
        while !self.lock_state().is_hung_up {
            if is_there() {
                return true;
            }
        }
        false
    }

    /// Waits for the end of the output and returns the screen.
    fn wait_until_closed(&self) -> TerminalScreen {
        let drawn = self.changed.wait_while(self.lock_state(), |drawn| !drawn.is_closed);
        drawn.unwrap_or_else(PoisonError::into_inner).screen()
    }
}

impl TerminalState {
    fn screen(&self) -> TerminalScreen {
        let screen = self.parser.screen();
        // Row by row: `contents()` would join a full-width line with the next one.
        let lines: Vec<_> = screen.rows(0, screen.size().1.get()).map(|line| line.trim_end().to_owned()).collect();
        TerminalScreen(lines.join("\n").trim_end().to_owned())
    }
}

fn at_least_one(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap_or(NonZeroU16::MIN)
}
