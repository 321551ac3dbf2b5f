//! One file of an attempt, shown piece by piece.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use signoff_core::ids::{AttemptId, TaskId};
use signoff_core::wire::Launch;
use signoff_term::json::{LogLine, VERSION};

use crate::console::Console;
use crate::failure::Failure;

/// No more of a transcript is held at once.
const PIECE: usize = 1 << 20;

/// Whose words they are.
pub struct Heading {
    pub task: TaskId,
    pub attempt: AttemptId,
    pub launch: Launch,
    pub stream: &'static str,
}

/// A transcript, and how much of it was shown.
pub struct Transcript {
    heading: Heading,
    path: PathBuf,
    shown: u64,
    /// Whether the last line that was shown has no end.
    open: bool,
}

impl Transcript {
    pub fn new(heading: Heading, path: PathBuf) -> Self {
        Self { heading, path, shown: 0, open: false }
    }

    pub fn is_at(&self, path: &Path) -> bool {
        self.path == path
    }

    /// Shows what was added since it was last looked at.
    pub fn show(&mut self, goes_on: bool, console: &Console) -> Result<(), Failure> {
        loop {
            let first = self.shown == 0;
            let text = self.piece(goes_on);
            if text.is_empty() {
                break;
            }
            if console.json {
                console.json_line(&self.heading.line(text))?;
                continue;
            }
            if first {
                console.text(&format!("==> {}\n", self.heading.text()))?;
            }
            self.open = !text.ends_with('\n');
            console.text(&text)?;
        }
        if self.open && !goes_on {
            self.open = false;
            console.text("\n")?;
        }
        Ok(())
    }

    /// The next piece; empty at the end. A character that is not all there yet is left for the next time.
    fn piece(&mut self, goes_on: bool) -> String {
        let mut bytes = Vec::new();
        if let Ok(mut file) = File::open(&self.path) {
            file.seek(SeekFrom::Start(self.shown)).ok();
            file.take(PIECE as u64).read_to_end(&mut bytes).ok();
        }
        if goes_on || bytes.len() == PIECE {
            bytes.truncate(bytes.len() - half_a_character(&bytes));
        }
        self.shown += bytes.len() as u64;
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// How many bytes at the end begin a character and do not end it.
fn half_a_character(bytes: &[u8]) -> usize {
    let rest = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    let unfinished = std::str::from_utf8(rest).is_err_and(|error| error.error_len().is_none());
    if unfinished { rest.len() } else { 0 }
}

impl Heading {
    fn text(&self) -> String {
        let Self { attempt, launch, stream, .. } = self;
        let who = launch.reviewer.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        format!("{attempt} {}{who} ({}), cycle {}: {stream}", launch.role, launch.agent, launch.cycle)
    }

    fn line(&self, text: String) -> LogLine {
        let launch = &self.launch;
        LogLine {
            version: VERSION,
            task_id: self.task.0,
            attempt: self.attempt.0,
            role: launch.role.to_string(),
            reviewer: launch.reviewer.as_ref().map(ToString::to_string),
            agent: launch.agent.to_string(),
            cycle: launch.cycle,
            stream: self.stream,
            text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_is_not_shown_in_halves() {
        assert_eq!(half_a_character("né".as_bytes()), 0);
        assert_eq!(half_a_character(&"né".as_bytes()[..2]), 1);
        assert_eq!(half_a_character(&"漢".as_bytes()[..2]), 2);
        // What never becomes a character is shown as such.
        assert_eq!(half_a_character(b"a\xff"), 0);
        assert_eq!(half_a_character(b""), 0);
    }
}
