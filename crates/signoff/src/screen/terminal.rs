//! A terminal that is drawn on as a whole, and is given back whatever happens.
//!
//! What is drawn goes to the second screen that terminals have, so what was there before is there again afterwards. The
//! lock of stdout says whose turn it is: a panic anywhere waits for the frame at hand, and then no other one is drawn.

use std::io::{self, BufWriter, Stdout, Write};
use std::sync::{Mutex, Once, PoisonError};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen};
use ratatui::{Frame, Terminal};
use rustix::process::{getpgrp, getsid};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};

use crate::console;

/// How the terminal was set before it was taken; none while it is not.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// A whole frame is written at once.
const FRAME_BYTES: usize = 1 << 16;

/// The terminal while it is ours. It is given back when this is dropped, at the latest.
pub struct Taken(Terminal<CrosstermBackend<BufWriter<Stdout>>>);

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
        execute!(io::stdout(), EnterAlternateScreen, Hide, Clear(ClearType::All))?;
        let out = BufWriter::with_capacity(FRAME_BYTES, io::stdout());
        Ok(Self(Terminal::new(CrosstermBackend::new(out))?))
    }

    /// Whether it is still set as it was taken. Whoever was stopped finds it as a shell wants it.
    pub fn is_as_taken(&self) -> bool {
        tcgetattr(io::stdin()).is_ok_and(|now| !now.local_modes.contains(LocalModes::ICANON))
    }

    /// The next frame is drawn whole: what is on the screen may be another's.
    pub fn forget(&mut self) -> io::Result<()> {
        let size = self.0.size()?;
        self.0.resize(size.into())
    }

    /// Draws a frame. Whoever gave the terminal back meanwhile has the last word.
    pub fn draw(&mut self, frame: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        let _turn = io::stdout().lock();
        if is_taken() { self.0.draw(frame).map(drop) } else { Ok(()) }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        give_back();
    }
}

fn is_taken() -> bool {
    BEFORE.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// Gives the terminal back, if it is taken, and says what has waited. Nobody there to give it to is no reason to fail.
pub fn give_back() {
    let mut out = io::stdout().lock();
    let Some(before) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
    execute!(out, LeaveAlternateScreen, Show).ok();
    // Whoever has it now has set it as they need it, and would not let us.
    if is_ours() {
        tcsetattr(io::stdin(), OptionalActions::Flush, &before).ok();
    }
    drop(out);
    console::release();
}

/// Sends the terminal something that draws nothing.
pub fn ring(bytes: &[u8]) {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).ok();
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
