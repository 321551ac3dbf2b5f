//! Access to stdin, stdout and stderr: data goes to stdout, messages go to stderr.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Read, Write};
use std::sync::{Mutex, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use signoff_core::merge::render::plain_text::{escaped_json, is_misleading};

use crate::{CliError, CommandExit, Result, host};

/// Output that is held back while the screen owns the terminal, in order; `None` while there is no screen.
static HELD_BACK: Mutex<Option<HeldBackOutput>> = Mutex::new(None);

/// Held-back output and the stream it belongs to.
type HeldBackOutput = Vec<(OutputStream, Vec<u8>)>;

/// Maximum number of excess bytes on stdin that are read and dropped. A normal writer then gets no broken pipe, and
/// an endless one does not block the program forever.
const MAX_DRAINED: u64 = 1 << 30;

/// Maximum width of a title in a list.
pub const TITLE_WIDTH: usize = 60;

/// How many messages the program prints besides its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbosity {
    Quiet,
    Normal,
    Verbose,
}

/// The output settings of a command.
#[derive(Debug, Clone, Copy)]
pub struct Console {
    pub verbosity: Verbosity,
    /// Whether `--json` was given.
    pub json: bool,
    /// Whether every recorded fact is printed as JSON (`--json-events`).
    pub json_events: bool,
    /// Whether only plain lines are printed (`--plain`).
    pub plain: bool,
    /// Whether a question stops its task instead of waiting for an answer (`--no-ask`).
    pub no_ask: bool,
    /// Where progress goes.
    pub progress: ProgressStream,
}

/// The stream for progress lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressStream {
    /// Progress is the output of the command.
    Stdout,
    /// The command has other output.
    Stderr,
}

impl Console {
    /// Writes text for the user, without terminal control characters.
    pub fn text(&self, text: &str) -> Result<()> {
        write_stdout(plain_text(text).as_bytes()).map(drop)
    }

    /// Writes one line of an endless output. Returns false if the reader is gone.
    pub fn line(&self, line: &str) -> Result<bool> {
        write_stdout(plain_text(&format!("{line}\n")).as_bytes())
    }

    /// Whether stdout still has a reader. A pipe reports that its other end is closed.
    pub fn has_reader(&self) -> bool {
        let stdout = io::stdout();
        let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        // If polling fails, a later write reports a closed pipe.
        poll(&mut fds, Some(&at_once)).is_err() || !fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
    }

    /// Writes text for programs: unchanged, unless stdout is a terminal.
    pub fn data(&self, data: &str) -> Result<()> {
        if io::stdout().is_terminal() { self.text(data) } else { write_stdout(data.as_bytes()).map(drop) }
    }

    /// Writes one JSON document.
    pub fn json(&self, value: &impl Serialize) -> Result<()> {
        self.json_text(serde_json::to_string_pretty(value))
    }

    /// Writes the result of a successful command: as JSON with `--json`, otherwise as text.
    pub fn print(&self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<CommandExit> {
        if self.json {
            self.json(value)?
        } else {
            self.text(&text())?
        }
        Ok(CommandExit::Done)
    }

    /// Writes one JSON document on a line of its own.
    pub fn json_line(&self, value: &impl Serialize) -> Result<()> {
        self.json_text(serde_json::to_string(value))
    }

    fn json_text(&self, text: serde_json::Result<String>) -> Result<()> {
        let text = text.map_err(|error| CliError::failed(format!("cannot write JSON: {error}")))?;
        self.data(&(escaped_json(&text) + "\n"))
    }

    /// Prints progress. With `--json` it goes to stderr, where `--quiet` suppresses it.
    pub fn progress(&self, text: &str) {
        let events = self.json_events && self.progress == ProgressStream::Stdout;
        match (events, self.json || self.progress == ProgressStream::Stderr) {
            (true, _) => self.data(text).ok(),
            (false, false) => self.text(text).ok(),
            (false, true) => {
                self.note(text.trim_end_matches('\n'));
                None
            }
        };
    }

    /// Returns a console for a command whose stdout is not progress.
    #[must_use]
    pub fn for_data(&self) -> Self {
        Self { progress: ProgressStream::Stderr, json: false, ..*self }
    }

    /// Whether a screen can be drawn: all streams are terminals and no other output was requested.
    pub fn can_draw(&self) -> bool {
        let drawn = !self.plain && !self.json && !self.json_events && self.verbosity != Verbosity::Quiet;
        let kind = host::variable("TERM").filter(|kind| kind != "dumb");
        let terminals = io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal();
        drawn && kind.is_some() && terminals
    }

    /// Prints a message to stderr, except with `--quiet`.
    pub fn note(&self, note: &str) {
        if self.verbosity != Verbosity::Quiet {
            write_stderr(&format!("{note}\n"));
        }
    }

    /// Prints a message to stderr with `--verbose`.
    pub fn detail(&self, detail: &str) {
        if self.verbosity == Verbosity::Verbose {
            write_stderr(&format!("{detail}\n"));
        }
    }

    /// Reads stdin and keeps at most `limit` + 1 bytes. The extra byte shows that the limit was exceeded.
    pub fn stdin(&self, limit: usize) -> Result<Vec<u8>> {
        let mut stdin = io::stdin().lock();
        if stdin.is_terminal() {
            self.note("reading from the terminal; end with Ctrl-D");
        }
        let read = read_at_most(&mut stdin, limit).and_then(|kept| {
            io::copy(&mut stdin.take(MAX_DRAINED), &mut io::sink())?;
            Ok(kept)
        });
        read.map_err(|error| CliError::failed(format!("cannot read stdin: {error}")))
    }
}

/// Reads at most `limit` + 1 bytes.
pub fn read_at_most(input: &mut impl Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    input.take(limit as u64 + 1).read_to_end(&mut kept)?;
    Ok(kept)
}

/// Writes text to stderr. A failed write is ignored.
pub fn write_stderr(text: &str) {
    let text = plain_text(text);
    if !push_held_back(OutputStream::Stderr, text.as_bytes()) {
        io::stderr().lock().write_all(text.as_bytes()).ok();
    }
}

/// An output stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputStream {
    Stdout,
    Stderr,
}

/// Starts to hold back all output, because the screen owns the terminal.
pub fn hold_back() {
    HELD_BACK.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default();
}

/// Stops holding back output and writes what was held back.
pub fn write_held_back() {
    let kept = HELD_BACK.lock().unwrap_or_else(PoisonError::into_inner).take();
    for (stream, bytes) in kept.into_iter().flatten() {
        match stream {
            OutputStream::Stdout => io::stdout().lock().write_all(&bytes).ok(),
            OutputStream::Stderr => io::stderr().lock().write_all(&bytes).ok(),
        };
    }
    io::stdout().lock().flush().ok();
}

fn push_held_back(stream: OutputStream, bytes: &[u8]) -> bool {
    let mut kept = HELD_BACK.lock().unwrap_or_else(PoisonError::into_inner);
    kept.as_mut().map(|kept| kept.push((stream, bytes.to_owned()))).is_some()
}

/// Removes control characters and misleading Unicode characters.
pub fn plain_text(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_unsafe_char) {
        Cow::Owned(text.chars().filter(|&char| !is_unsafe_char(char)).collect())
    } else {
        Cow::Borrowed(text)
    }
}

fn is_unsafe_char(char: char) -> bool {
    is_misleading(char) || (char.is_control() && char != '\n' && char != '\t')
}

/// Writes to stdout. A closed pipe (`signoff … | head`) is not an error: it returns false.
fn write_stdout(bytes: &[u8]) -> Result<bool> {
    if push_held_back(OutputStream::Stdout, bytes) {
        return Ok(true);
    }
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(CliError::failed(format!("cannot write to stdout: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_terminal_control_characters_are_removed_from_agent_text() {
        assert_eq!(plain_text("tab\tline\nü 漢 ✓"), "tab\tline\nü 漢 ✓");
        assert_eq!(plain_text("\u{1b}]0;owned\u{7}a\rb\u{9b}2Jc\u{202e}d"), "]0;ownedab2Jcd");
    }

    #[test]
    fn one_byte_over_the_limit_is_read() {
        assert_eq!(read_at_most(&mut &b"12345"[..], 5).unwrap(), b"12345");
        assert_eq!(read_at_most(&mut &b"1234567"[..], 5).unwrap(), b"123456");
    }
}
