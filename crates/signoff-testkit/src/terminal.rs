//! A person at a terminal: what is on the screen, and the keys they press.
//!
//! The program runs on a real pseudo-terminal that is its controlling one. A thread reads what it draws; whoever
//! waits for something on the screen is woken by it, so nothing sleeps.

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

/// How long something on the screen is waited for before the test has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many lines that scrolled away are remembered.
const REMEMBERED: usize = 1000;

/// A program on a terminal of its own.
pub struct Terminal {
    pty: Arc<Pty>,
    child: Child,
    seen: Arc<Seen>,
}

/// What was drawn so far.
struct Seen {
    drawn: Mutex<Drawn>,
    news: Condvar,
}

struct Drawn {
    parser: vt100::Parser,
    /// Nobody holds the terminal any more.
    is_over: bool,
    /// Nobody looks at it any more: it is to be let go.
    is_left: bool,
    /// How often it rang.
    rings: Rings,
}

/// Counts the bells among bytes. The byte that rings also ends sequences of the operating system.
#[derive(Default)]
struct Rings {
    count: usize,
    /// Within such a sequence.
    inside: bool,
    /// The last byte was an escape.
    escaped: bool,
}

impl Rings {
    fn hear(&mut self, byte: u8) {
        let after_escape = std::mem::replace(&mut self.escaped, byte == 0x1b);
        match (byte, self.inside) {
            (b']', false) if after_escape => self.inside = true,
            (b'\\', true) if after_escape => self.inside = false,
            (0x07, true) => self.inside = false,
            (0x07, false) => self.count += 1,
            _ => {}
        }
    }
}

/// What a person sees, without the spaces at the ends of its lines and without the empty lines below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Screen(String);

impl Screen {
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

impl fmt::Display for Screen {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl TestEnv {
    /// Starts the program on a terminal of 80 columns and 24 lines.
    pub fn terminal(&self, arguments: &[&str]) -> Terminal {
        self.terminal_of((80, 24), arguments, &[])
    }

    /// The same on a terminal of so many columns and lines, with these variables.
    pub fn terminal_of(&self, size: (u16, u16), arguments: &[&str], variables: &[(&str, &str)]) -> Terminal {
        let mut command = self.command(self.program(), arguments);
        command.env("TERM", "xterm-256color").envs(variables.iter().copied());
        Terminal::start(command.into(), size)
    }

    /// Starts a shell script on a terminal. It knows the program as `signoff`.
    pub fn shell_on_terminal(&self, script: &str) -> Terminal {
        let mut command = self.command("sh", &["-c", script]);
        command.env("TERM", "xterm-256color");
        Terminal::start(command.into(), (80, 24))
    }
}

impl Terminal {
    fn start(command: blocking::Command, (columns, lines): (u16, u16)) -> Self {
        let (pty, pts) = blocking::open().expect("a pseudo-terminal");
        pty.resize(Size::new(lines, columns)).expect("a terminal that can be resized");
        let child = command.spawn(pts).expect("a started program");
        let parser = vt100::Parser::new(at_least_one(lines), at_least_one(columns), REMEMBERED);
        let seen = Arc::new(Seen {
            drawn: Mutex::new(Drawn { parser, is_over: false, is_left: false, rings: Rings::default() }),
            news: Condvar::new(),
        });
        let pty = Arc::new(pty);
        let (from, to) = (pty.clone(), seen.clone());
        std::thread::spawn(move || {
            to.read(&from);
            drop(from);
            to.let_go();
        });
        Self { pty, child, seen }
    }

    /// Presses keys.
    ///
    /// # Panics
    /// If the terminal is gone.
    pub fn send(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).expect("a terminal that takes keys");
    }

    /// Makes the terminal larger or smaller. Whoever runs on it is told by a signal.
    ///
    /// # Panics
    /// If the terminal is gone.
    pub fn resize(&self, (columns, lines): (u16, u16)) {
        let mut drawn = self.seen.drawn();
        drawn.parser.screen_mut().set_size(at_least_one(lines), at_least_one(columns));
        self.pty.resize(Size::new(lines, columns)).expect("a terminal that can be resized");
    }

    /// What is on the screen now.
    pub fn screen(&self) -> Screen {
        self.seen.drawn().screen()
    }

    /// Waits until the screen is so, and gives it.
    ///
    /// # Panics
    /// If it is not so when the program has ended, or after a minute.
    pub fn wait_until(&self, what: &str, mut is_so: impl FnMut(&Screen) -> bool) -> Screen {
        let go_on = |drawn: &mut Drawn| !drawn.is_over && !is_so(&drawn.screen());
        let waited = self.seen.news.wait_timeout_while(self.seen.drawn(), PATIENCE, go_on);
        let (drawn, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let (screen, is_over) = (drawn.screen(), drawn.is_over);
        drop(drawn);
        let why = if is_over { "the program ended before" } else { "waited in vain" };
        assert!(is_so(&screen), "{what}: {why}\n{screen}");
        screen
    }

    /// Waits until this text is on the screen.
    pub fn wait_for(&self, text: &str) -> Screen {
        self.wait_until(text, |screen| screen.contains(text))
    }

    /// Whether the terminal is as a shell expects it: it shows what is typed, a line at a time, with a cursor.
    ///
    /// # Panics
    /// If the terminal is gone.
    pub fn is_sane(&self) -> bool {
        let modes = tcgetattr(&*self.pty).expect("a terminal").local_modes;
        let cooked = modes.contains(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        cooked && !self.seen.drawn().parser.screen().hide_cursor()
    }

    /// How often it rang.
    pub fn rings(&self) -> usize {
        self.seen.drawn().rings.count
    }

    /// Waits until it rings.
    ///
    /// # Panics
    /// If it has not rung when the program has ended, or after a minute.
    pub fn wait_until_it_rings(&self) {
        let silent = |drawn: &mut Drawn| !drawn.is_over && drawn.rings.count == 0;
        let waited = self.seen.news.wait_timeout_while(self.seen.drawn(), PATIENCE, silent);
        let (drawn, _) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(drawn.rings.count > 0, "it did not ring\n{}", drawn.screen());
    }

    /// Waits for the end of the program: how often it rang.
    ///
    /// # Panics
    /// If it cannot be waited for.
    pub fn finish_and_rings(mut self) -> usize {
        self.child.wait().expect("an ended program");
        self.seen.all();
        self.rings()
    }

    /// Whether anything on the screen has a colour.
    pub fn is_coloured(&self) -> bool {
        let drawn = self.seen.drawn();
        let screen = drawn.parser.screen();
        let (lines, columns) = (screen.size().0.get(), screen.size().1.get());
        let cells =
            (0..lines).flat_map(|line| (0..columns).filter_map(move |column| screen.cell(line, column)));
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

    /// From now on the terminal takes nothing: whoever writes to it waits.
    ///
    /// # Panics
    /// If the program has ended.
    pub fn stall(&self) {
        let terminal = format!("/proc/{}/fd/0", self.child.id());
        let flags = OFlags::RDWR | OFlags::NOCTTY;
        let terminal = rustix::fs::open(terminal, flags, Mode::empty()).expect("the program's terminal");
        tcflow(terminal, Action::OOff).expect("a terminal that can be stopped");
    }

    /// Waits for the end of a program whose terminal takes nothing: its exit code, and whether the terminal shows what is
    /// typed, a line at a time.
    ///
    /// # Panics
    /// If it cannot be waited for.
    pub fn finish_stalled(mut self) -> (Option<i32>, bool) {
        let code = self.child.wait().expect("an ended program").code();
        let modes = tcgetattr(&*self.pty).expect("a terminal").local_modes;
        (code, modes.contains(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG))
    }

    /// The window is closed: the terminal is gone. Waits for the end of the program: its exit code.
    ///
    /// # Panics
    /// If it cannot be waited for.
    pub fn hang_up(mut self) -> Option<i32> {
        self.seen.drawn().is_left = true;
        self.seen.all();
        let (another, _) = blocking::open().expect("a pseudo-terminal");
        // The last hold of it, since nobody reads any more.
        self.pty = Arc::new(another);
        self.child.wait().expect("an ended program").code()
    }

    /// Waits for the end of the program: its exit code, or none if a signal ended it, and the last screen.
    ///
    /// # Panics
    /// If it cannot be waited for.
    pub fn finish(mut self) -> End {
        let status = self.child.wait().expect("an ended program");
        let screen = self.seen.all();
        End { code: status.code(), signal: status.signal(), screen, sane: self.is_sane() }
    }

    /// How the program ended, if it has.
    ///
    /// # Panics
    /// If it cannot be asked for.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child")
    }
}

/// How a program on a terminal ended.
#[derive(Debug)]
pub struct End {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub screen: Screen,
    /// Whether the terminal was left as a shell expects it.
    pub sane: bool,
}

impl fmt::Display for End {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => writeln!(out, "exit {code}")?,
            (None, Some(signal)) => writeln!(out, "signal {signal}")?,
            (None, None) => {}
        }
        write!(out, "{}", self.screen)
    }
}

/// A test that fails leaves no program behind.
impl Drop for Terminal {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Seen {
    fn drawn(&self) -> MutexGuard<'_, Drawn> {
        // A test whose question about the screen panics does so with it in its hands; the reader goes on.
        self.drawn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads until nobody holds the terminal any more.
    fn read(&self, mut pty: &Pty) {
        let mut buffer = [0; 4096];
        loop {
            // Linux says EIO when the last one has let go.
            let length = if self.waits(pty) { pty.read(&mut buffer).unwrap_or(0) } else { 0 };
            let mut drawn = self.drawn();
            match buffer.get(..length) {
                Some([]) | None => return,
                Some(bytes) => {
                    drawn.parser.process(bytes);
                    bytes.iter().for_each(|byte| drawn.rings.hear(*byte));
                }
            }
            drop(drawn);
            self.news.notify_all();
        }
    }

    /// Nothing more is read.
    fn let_go(&self) {
        self.drawn().is_over = true;
        self.news.notify_all();
    }

    /// Waits for something to read. False if nobody wants to any more.
    fn waits(&self, pty: &Pty) -> bool {
        let a_while = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        let is_there =
            || poll(&mut [PollFd::new(pty, PollFlags::IN)], Some(&a_while)).is_ok_and(|ready| ready > 0);
        while !self.drawn().is_left {
            if is_there() {
                return true;
            }
        }
        false
    }

    /// The screen when everything has been drawn.
    fn all(&self) -> Screen {
        let drawn = self.news.wait_while(self.drawn(), |drawn| !drawn.is_over);
        drawn.unwrap_or_else(PoisonError::into_inner).screen()
    }
}

impl Drawn {
    fn screen(&self) -> Screen {
        let screen = self.parser.screen();
        // Line by line: a line that fills the screen is not taken for the beginning of the next one.
        let lines: Vec<_> =
            screen.rows(0, screen.size().1.get()).map(|line| line.trim_end().to_owned()).collect();
        Screen(lines.join("\n").trim_end().to_owned())
    }
}

fn at_least_one(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap_or(NonZeroU16::MIN)
}
