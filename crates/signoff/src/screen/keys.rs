//! Reads keys from the terminal.
//!
//! Crossterm's reader is not used: it spins on a hung-up terminal and cannot be cancelled.

use std::io::{self, Stdin};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::key_parser::{KeyParser, TerminalInput};

/// How long to wait for the rest of an escape sequence. An escape alone is a key.
const ESCAPE_TIMEOUT: Duration = Duration::from_millis(50);

/// Input from the keyboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyInput {
    /// The pressed keys and pasted characters; may be empty.
    Keys(Vec<TerminalInput>),
    /// The terminal is gone.
    Gone,
}

/// Number of empty reads after which the end of a paste is no longer awaited.
const MAX_EMPTY_READS: u32 = 60;

/// Reads keys from stdin.
#[derive(Debug, Default)]
pub struct KeyReader {
    parser: KeyParser,
    /// Number of consecutive empty reads during a paste.
    empty_reads: u32,
}

impl KeyReader {
    /// Waits at most `longest` for a key. The process must be in the foreground: reading in the background stops it.
    pub fn wait(&mut self, longest: Duration) -> KeyInput {
        let stdin = io::stdin();
        let begun = self.parser.is_incomplete();
        let over = !has_input(&stdin, if begun { ESCAPE_TIMEOUT } else { longest });
        self.empty_reads = if over && self.parser.is_pasting() { self.empty_reads + 1 } else { 0 };
        if self.empty_reads > MAX_EMPTY_READS {
            self.parser.give_up_paste();
        }
        if over {
            let rest = if begun { self.parser.parse(&[], true) } else { Vec::new() };
            return KeyInput::Keys(rest);
        }
        let Some(typed) = read_available(&stdin) else { return KeyInput::Gone };
        KeyInput::Keys(self.parser.parse(&typed, false))
    }
}

/// Reads the available bytes. Returns `None` if the terminal is gone.
fn read_available(stdin: &Stdin) -> Option<Vec<u8>> {
    let mut buffer = [0; 1024];
    let length = rustix::io::read(stdin.as_fd(), &mut buffer).ok().filter(|length| *length > 0)?;
    buffer.get(..length).map(<[u8]>::to_vec)
}

fn has_input(stdin: &Stdin, longest: Duration) -> bool {
    let longest = Timespec { tv_sec: 0, tv_nsec: longest.subsec_nanos().into() };
    let mut waits = [PollFd::new(stdin, PollFlags::IN)];
    poll(&mut waits, Some(&longest)).is_ok_and(|ready| ready > 0)
}
