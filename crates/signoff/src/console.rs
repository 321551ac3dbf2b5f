//! The one door to stdin, stdout and stderr: data goes to stdout, talk to stderr.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Read, Write};
use std::sync::{Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use signoff_core::merge::render::plain_text::{escaped_json, misleads};

use crate::door;
use crate::failure::Failure;

/// What was said while something is drawn on the whole screen, in order; none while nothing is. Two hands on one
/// terminal would write over each other.
static KEPT: Mutex<Option<Said>> = Mutex::new(None);

/// What was said, and where.
type Said = Vec<(Stream, Vec<u8>)>;

/// How much of what is left on stdin is read and thrown away, so that an honest writer is not killed by a
/// closed pipe and an endless one does not hold us forever.
const DRAINED: u64 = 1 << 30;

/// Titles are cut where lists would no longer fit a wide terminal.
const TITLE_WIDTH: usize = 60;

/// How much the program says besides its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Talk {
    Quiet,
    Normal,
    Verbose,
}

/// What commands speak through.
#[derive(Debug, Clone, Copy)]
pub struct Console {
    pub talk: Talk,
    /// Whether `--json` was given.
    pub json: bool,
    /// Whether every recorded fact is printed as JSON.
    pub json_events: bool,
    /// Whether nothing is to be drawn over.
    pub plain: bool,
    /// Whether questions stop the work, because nobody is there to answer.
    pub no_ask: bool,
    /// Where progress goes.
    pub progress: Progress,
}

/// Where the lines go that tell how far the work is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// They are the output.
    Stdout,
    /// Something else is.
    Stderr,
}

impl Console {
    /// Writes text for people. What agents wrote cannot steer the terminal.
    pub fn text(&self, text: &str) -> Result<(), Failure> {
        put(plain_text(text).as_bytes()).map(drop)
    }

    /// The same for what has no end by itself. False if nobody reads it any more.
    pub fn line(&self, line: &str) -> Result<bool, Failure> {
        put(plain_text(&format!("{line}\n")).as_bytes())
    }

    /// Whether somebody may still read what is written: a pipe tells when its other end is closed.
    pub fn is_read(&self) -> bool {
        let stdout = io::stdout();
        let mut asked = [PollFd::new(&stdout, PollFlags::empty())];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        // What cannot be asked tells when it is written to.
        poll(&mut asked, Some(&at_once)).is_err()
            || !asked[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
    }

    /// Writes text for programs, byte for byte unless a person is looking at it.
    pub fn data(&self, data: &str) -> Result<(), Failure> {
        if io::stdout().is_terminal() { self.text(data) } else { put(data.as_bytes()).map(drop) }
    }

    /// Writes one JSON document.
    pub fn json(&self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value)
            .map_err(|error| Failure::failed(format!("cannot write JSON: {error}")))?;
        self.data(&(escaped_json(&text) + "\n"))
    }

    /// Writes one JSON document on a line of its own.
    pub fn json_line(&self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(value)
            .map_err(|error| Failure::failed(format!("cannot write JSON: {error}")))?;
        self.data(&(escaped_json(&text) + "\n"))
    }

    /// Tells how far the work is. With `--json` the result is the output, and with `--quiet` nothing else is said.
    pub fn progress(&self, text: &str) {
        let events = self.json_events && self.progress == Progress::Stdout;
        match (events, self.json || self.progress == Progress::Stderr) {
            (true, _) => self.data(text).ok(),
            (false, false) => self.text(text).ok(),
            (false, true) => {
                self.note(text.trim_end_matches('\n'));
                None
            }
        };
    }

    /// The same console for a command whose data is something else than progress.
    #[must_use]
    pub fn for_data(&self) -> Self {
        Self { progress: Progress::Stderr, json: false, ..*self }
    }

    /// Whether a person sits at a terminal on which can be drawn, and nothing else was asked for.
    pub fn is_live(&self) -> bool {
        let drawn = !self.plain && !self.json && !self.json_events && self.talk != Talk::Quiet;
        let kind = door::variable("TERM").filter(|kind| kind != "dumb");
        let terminals = io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal();
        drawn && kind.is_some() && terminals
    }

    /// How wide a title may be in a list.
    pub fn title_width(&self) -> usize {
        TITLE_WIDTH
    }

    /// Says something that is not data, unless told to be quiet.
    pub fn note(&self, note: &str) {
        match self.talk {
            Talk::Quiet => {}
            Talk::Normal | Talk::Verbose => say(&format!("{note}\n")),
        }
    }

    /// Says something only the curious want to know.
    pub fn detail(&self, detail: &str) {
        match self.talk {
            Talk::Quiet | Talk::Normal => {}
            Talk::Verbose => say(&format!("{detail}\n")),
        }
    }

    /// Reads stdin, keeping at most `limit` bytes and one more, which tells that there were more.
    pub fn stdin(&self, limit: usize) -> Result<Vec<u8>, Failure> {
        let mut stdin = io::stdin().lock();
        if stdin.is_terminal() {
            self.note("reading from the terminal; end with Ctrl-D");
        }
        let read = read_at_most(&mut stdin, limit).and_then(|kept| {
            io::copy(&mut stdin.take(DRAINED), &mut io::sink())?;
            Ok(kept)
        });
        read.map_err(|error| Failure::failed(format!("cannot read stdin: {error}")))
    }
}

/// Keeps at most `limit` bytes and one more.
pub fn read_at_most(input: &mut impl Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    input.take(limit as u64 + 1).read_to_end(&mut kept)?;
    Ok(kept)
}

/// Talks to stderr. Nobody there to listen is no reason to fail.
pub fn say(text: &str) {
    let text = plain_text(text);
    if !is_kept(Stream::Stderr, text.as_bytes()) {
        io::stderr().lock().write_all(text.as_bytes()).ok();
    }
}

/// Where something was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    Stdout,
    Stderr,
}

/// From now on what is said waits until the screen is free.
pub fn keep() {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default();
}

/// The screen is free: says what has waited.
pub fn release() {
    let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner).take();
    for (stream, bytes) in kept.into_iter().flatten() {
        match stream {
            Stream::Stdout => io::stdout().lock().write_all(&bytes).ok(),
            Stream::Stderr => io::stderr().lock().write_all(&bytes).ok(),
        };
    }
    io::stdout().lock().flush().ok();
}

fn is_kept(stream: Stream, bytes: &[u8]) -> bool {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    kept.as_mut().map(|kept| kept.push((stream, bytes.to_owned()))).is_some()
}

/// Without the characters that steer a terminal or mislead whoever reads it.
pub fn plain_text(text: &str) -> Cow<'_, str> {
    if text.chars().any(steers) {
        Cow::Owned(text.chars().filter(|&char| !steers(char)).collect())
    } else {
        Cow::Borrowed(text)
    }
}

fn steers(char: char) -> bool {
    misleads(char) || (char.is_control() && char != '\n' && char != '\t')
}

/// A reader that has seen enough (`signoff … | head`) is no failure. False if there is none any more.
fn put(bytes: &[u8]) -> Result<bool, Failure> {
    if is_kept(Stream::Stdout, bytes) {
        return Ok(true);
    }
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::failed(format!("cannot write to stdout: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_agents_loses_what_steers_a_terminal_and_nothing_else() {
        assert_eq!(plain_text("tab\tline\nü 漢 ✓"), "tab\tline\nü 漢 ✓");
        assert_eq!(plain_text("\u{1b}]0;owned\u{7}a\rb\u{9b}2Jc\u{202e}d"), "]0;ownedab2Jcd");
    }

    #[test]
    fn one_byte_over_the_limit_is_kept_as_a_witness() {
        assert_eq!(read_at_most(&mut &b"12345"[..], 5).unwrap(), b"12345");
        assert_eq!(read_at_most(&mut &b"1234567"[..], 5).unwrap(), b"123456");
    }
}
