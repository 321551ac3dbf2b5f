//! The keyboard of a terminal, a key at a time.
//!
//! Read by ourselves: the library that draws would read a terminal that hung up for ever, and could not be told off.

use std::io::{self, Stdin};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signoff_term::tui::Press;

use super::press::Typing;

/// How long the rest of a key may be on its way: an escape alone is a key of its own.
const REST: Duration = Duration::from_millis(50);

/// What comes from a keyboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// None, if nobody pressed any.
    Keys(Vec<Press>),
    /// Nobody can press any more.
    Gone,
}

/// So often nothing may come before the end of a paste is not waited for any longer.
const SILENT: u32 = 60;

/// A keyboard.
#[derive(Debug, Default)]
pub struct Keys {
    typing: Typing,
    /// How often nothing came in the middle of a paste.
    silent: u32,
}

impl Keys {
    /// Waits so long for a key. The terminal must be ours: others are stopped when they read from it.
    pub fn wait(&mut self, longest: Duration) -> Heard {
        let stdin = io::stdin();
        let begun = self.typing.has_begun();
        let over = !is_more(&stdin, if begun { REST } else { longest });
        self.silent = if over && self.typing.is_pasting() { self.silent + 1 } else { 0 };
        if self.silent > SILENT {
            self.typing.give_up_paste();
        }
        if over {
            let rest = if begun { self.typing.presses(&[], true) } else { Vec::new() };
            return Heard::Keys(rest);
        }
        let Some(typed) = some(&stdin) else { return Heard::Gone };
        Heard::Keys(self.typing.presses(&typed, false))
    }
}

/// What was typed. None if nobody can type any more.
fn some(stdin: &Stdin) -> Option<Vec<u8>> {
    let mut buffer = [0; 1024];
    let length = rustix::io::read(stdin.as_fd(), &mut buffer).ok().filter(|length| *length > 0)?;
    buffer.get(..length).map(<[u8]>::to_vec)
}

fn is_more(stdin: &Stdin, longest: Duration) -> bool {
    let longest = Timespec { tv_sec: 0, tv_nsec: longest.subsec_nanos().into() };
    let mut waits = [PollFd::new(stdin, PollFlags::IN)];
    poll(&mut waits, Some(&longest)).is_ok_and(|ready| ready > 0)
}
