//! The keyboard of a terminal, a key at a time, for as long as somebody is asked.
//!
//! Only what must change is changed: signals stay signals, and what others print stays as it is. Whoever listens waits
//! for a key or for being told off, whichever comes first, so no key is taken that was meant for whoever comes next.

use std::io::{self, PipeReader, PipeWriter, Stdin};
use std::os::fd::AsFd;
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::getpgrp;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
};
use signoff_term::dialogue::{Key, keys};

/// How long the rest of a key may be on its way: an escape alone is a key of its own.
const REST: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// What a listener hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    Key(Key),
    /// Nobody can press any more.
    Gone,
}

/// A terminal that gives its keys to us. It is as it was when this is dropped.
pub struct Keys {
    before: Termios,
    /// Closed to end the listener.
    told_off: Option<PipeWriter>,
    listener: Option<JoinHandle<()>>,
}

impl Keys {
    /// Listens to the terminal. None while it belongs to somebody else, or if it is none.
    pub fn listen(tell: impl FnMut(Heard) + Send + 'static) -> Option<Self> {
        if !is_ours() {
            return None;
        }
        let before = tcgetattr(io::stdin()).ok()?;
        let (ends, told_off) = io::pipe().ok()?;
        // What was typed before anybody was asked answers nothing.
        tcsetattr(io::stdin(), OptionalActions::Flush, &key_by_key(&before)).ok()?;
        let listener = std::thread::spawn(move || attend(&ends, tell));
        Some(Self { before, told_off: Some(told_off), listener: Some(listener) })
    }

    /// Sees to it that the keys come to us: a shell that stopped us may have changed that. False if they cannot,
    /// because the terminal belongs to somebody else.
    pub fn hold(&self) -> bool {
        let ours = is_ours() && self.listener.as_ref().is_some_and(|listener| !listener.is_finished());
        if let (true, Ok(now)) = (ours, tcgetattr(io::stdin()))
            && now.local_modes.intersects(LocalModes::ICANON | LocalModes::ECHO)
        {
            tcsetattr(io::stdin(), OptionalActions::Drain, &key_by_key(&now)).ok();
        }
        ours
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        drop(self.told_off.take());
        self.listener.take().map(JoinHandle::join);
        // Whoever has it now has set it as they need it, and would not let us.
        if is_ours() {
            tcsetattr(io::stdin(), OptionalActions::Drain, &self.before).ok();
        }
    }
}

/// Whether we are in the foreground: others are stopped when they read from the terminal or change it.
fn is_ours() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
}

/// Keys come one by one and are not shown.
fn key_by_key(before: &Termios) -> Termios {
    let mut modes = before.clone();
    modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    modes.special_codes[SpecialCodeIndex::VMIN] = 1;
    modes.special_codes[SpecialCodeIndex::VTIME] = 0;
    modes
}

/// Hears keys until told off.
fn attend(ends: &PipeReader, mut tell: impl FnMut(Heard)) {
    let stdin = io::stdin();
    loop {
        match wait(&stdin, ends) {
            Next::ToldOff => return,
            // It was taken from us: what is typed there is not for us.
            Next::Typed if !is_ours() => return,
            Next::Typed => match read(&stdin) {
                Some(bytes) => keys(&bytes).into_iter().for_each(|key| tell(Heard::Key(key))),
                None => return tell(Heard::Gone),
            },
        }
    }
}

enum Next {
    Typed,
    ToldOff,
}

fn wait(stdin: &Stdin, ends: &PipeReader) -> Next {
    loop {
        let mut waits = [PollFd::new(stdin, PollFlags::IN), PollFd::new(ends, PollFlags::IN)];
        match poll(&mut waits, None) {
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Next::ToldOff,
            Ok(_) if !waits[1].revents().is_empty() => return Next::ToldOff,
            Ok(_) => return Next::Typed,
        }
    }
}

/// What was typed. None if nobody can type any more.
fn read(stdin: &Stdin) -> Option<Vec<u8>> {
    let mut bytes = some(stdin)?;
    if bytes.last() == Some(&0x1b) && is_more(stdin) {
        bytes.extend(some(stdin).unwrap_or_default());
    }
    Some(bytes)
}

fn some(stdin: &Stdin) -> Option<Vec<u8>> {
    let mut buffer = [0; 64];
    let length = rustix::io::read(stdin.as_fd(), &mut buffer).ok().filter(|length| *length > 0)?;
    buffer.get(..length).map(<[u8]>::to_vec)
}

fn is_more(stdin: &Stdin) -> bool {
    let mut waits = [PollFd::new(stdin, PollFlags::IN)];
    poll(&mut waits, Some(&REST)).is_ok_and(|ready| ready > 0)
}
