//! A terminal that is drawn on as a whole, and is given back whatever happens.
//!
//! What is drawn goes to the second screen that terminals have, so what was there before is there again afterwards. The
//! lock of stdout says whose turn it is: a panic anywhere waits for the frame at hand, and then no other one is drawn.

use std::io::{self, BufWriter, Stdout, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError};

use jiff::{SignedDuration, Timestamp};
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen};
use ratatui::{Frame, Terminal};
use rustix::process::{getpgrp, getsid};
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetpgrp, tcsetattr,
};

use crate::{console, door};

/// How the terminal was set before it was taken; none while it is not.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// A whole frame is written at once.
const FRAME_BYTES: usize = 1 << 16;

/// Grows with every beginning and every end of something that is written to the terminal: odd in between.
static WRITES: AtomicU64 = AtomicU64::new(0);

/// A terminal that has taken nothing for so long is not waited for.
const PATIENCE: SignedDuration = SignedDuration::from_secs(1);

/// The terminal while it is ours. It is given back when this is dropped, at the latest.
pub struct Taken(Option<Terminal<CrosstermBackend<BufWriter<Stdout>>>>);

impl Taken {
    /// Takes the terminal. What others say waits until it is given back.
    pub fn take() -> io::Result<Self> {
        give_back_on_panic();
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        // What was typed before there was anything to see means nothing.
        tcsetattr(io::stdin(), OptionalActions::Flush, &raw)?;
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        console::keep();
        let begun = Self::begin();
        if begun.is_err() {
            give_back();
        }
        begun
    }

    fn begin() -> io::Result<Self> {
        execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste, Hide, Clear(ClearType::All))?;
        let out = BufWriter::with_capacity(FRAME_BYTES, io::stdout());
        Ok(Self(Some(Terminal::new(CrosstermBackend::new(out))?)))
    }

    /// Whether it is still set as it was taken. Whoever was stopped finds it as a shell wants it.
    pub fn is_as_taken(&self) -> bool {
        tcgetattr(io::stdin()).is_ok_and(|now| !now.local_modes.contains(LocalModes::ICANON))
    }

    /// The next frame is drawn whole: what is on the screen may be another's.
    pub fn forget(&mut self) -> io::Result<()> {
        let Some(terminal) = &mut self.0 else { return Ok(()) };
        let size = terminal.size()?;
        terminal.resize(size.into())
    }

    /// Draws a frame. Whoever gave the terminal back meanwhile has the last word.
    pub fn draw(&mut self, frame: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        let _turn = io::stdout().lock();
        match &mut self.0 {
            Some(terminal) if is_taken() => writing(|| terminal.draw(frame).map(drop)),
            Some(_) | None => Ok(()),
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        give_back();
        if let Some(mut terminal) = self.0.take()
            && writing(|| terminal.show_cursor()).is_err()
        {
            // It would say on stderr that it cannot: stderr is the terminal that is gone.
            std::mem::forget(terminal);
        }
    }
}

/// Writes to the terminal, so that others see when that takes for ever.
fn writing<T>(write: impl FnOnce() -> T) -> T {
    WRITES.fetch_add(1, Ordering::AcqRel);
    let written = write();
    WRITES.fetch_add(1, Ordering::AcqRel);
    written
}

/// Notices a terminal that takes nothing any more.
#[derive(Debug, Default)]
pub struct Patience(Option<(u64, Timestamp)>);

impl Patience {
    /// Whether one and the same thing has been written for too long. To be asked again and again.
    pub fn is_over(&mut self) -> bool {
        let (write, now) = (WRITES.load(Ordering::Acquire), door::now());
        match self.0 {
            Some((known, since)) if known == write => now.duration_since(since) > PATIENCE,
            Some(_) | None => {
                self.0 = Some((write, now)).filter(|_| write % 2 == 1);
                false
            }
        }
    }
}

/// Leaves a terminal that takes nothing as it was set before. What was to be said is never said.
pub fn abandon() {
    if let Some(before) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() {
        set_back(&before);
    }
}

/// Whoever has it now has set it as they need it, and would not let us. Nothing is waited for: what was written before may
/// never be taken.
fn set_back(before: &Termios) {
    if is_ours() {
        tcsetattr(io::stdin(), OptionalActions::Now, before).ok();
        tcflush(io::stdin(), QueueSelector::IFlush).ok();
    }
}

fn is_taken() -> bool {
    BEFORE.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// Gives the terminal back, if it is taken, and says what has waited. Nobody there to give it to is no reason to fail.
pub fn give_back() {
    let mut out = io::stdout().lock();
    let Some(before) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
    set_back(&before);
    writing(|| {
        execute!(out, DisableBracketedPaste, LeaveAlternateScreen, Show).ok();
        drop(out);
        console::release();
    });
}

/// Sends the terminal something that draws nothing.
pub fn ring(bytes: &[u8]) {
    let mut out = io::stdout().lock();
    writing(|| out.write_all(bytes).and_then(|()| out.flush())).ok();
}

/// Who may read from the terminal and change it: others are stopped when they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    Ours,
    /// We are in the background.
    Anothers,
    /// There is no terminal any more.
    Nobodys,
}

pub fn whose() -> Whose {
    match tcgetpgrp(io::stdin()) {
        Ok(group) if group == getpgrp() => Whose::Ours,
        Ok(_) => Whose::Anothers,
        Err(_) => Whose::Nobodys,
    }
}

pub fn is_ours() -> bool {
    whose() == Whose::Ours
}

/// Whether a shell is there that would let us go on after we were stopped.
pub fn is_a_job() -> bool {
    getsid(None).is_ok_and(|session| session != getpgrp())
}

/// A message is only readable on a terminal that was given back.
fn give_back_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let tell = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            tell(panic);
        }));
    });
}
