//! Prints one output file of an attempt incrementally.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use signoff_core::ids::{AttemptId, TaskId};
use signoff_core::wire::Launch;
use signoff_term::json::{LogLine, VERSION};

use crate::{CliError, Console};

/// Maximum number of bytes read at once.
const MAX_READ: usize = 1 << 20;

/// The attempt and stream that a file belongs to.
pub struct LogHeading {
    pub task: TaskId,
    pub attempt: AttemptId,
    pub launch: Launch,
    pub stream: &'static str,
}

/// An output file and how much of it was printed.
pub struct LogFile {
    heading: LogHeading,
    path: PathBuf,
    shown: u64,
    /// Whether the printed text does not end with a line break.
    mid_line: bool,
}

impl LogFile {
    pub fn new(heading: LogHeading, path: PathBuf) -> Self {
        Self { heading, path, shown: 0, mid_line: false }
    }

    pub fn is_at(&self, path: &Path) -> bool {
        self.path == path
    }

    /// Prints what was added since the last call.
    pub fn show(&mut self, goes_on: bool, console: &Console) -> Result<(), CliError> {
        loop {
            let first = self.shown == 0;
            let text = self.read_part(goes_on);
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
            self.mid_line = !text.ends_with('\n');
            console.text(&text)?;
        }
        if self.mid_line && !goes_on {
            self.mid_line = false;
            console.text("\n")?;
        }
        Ok(())
    }

    /// Reads the next part; empty at the end. An incomplete character is left for the next call.
    fn read_part(&mut self, goes_on: bool) -> String {
        let mut bytes = Vec::new();
        if let Ok(mut file) = File::open(&self.path) {
            file.seek(SeekFrom::Start(self.shown)).ok();
            file.take(MAX_READ as u64).read_to_end(&mut bytes).ok();
        }
        if goes_on || bytes.len() == MAX_READ {
            bytes.truncate(bytes.len() - incomplete_char_len(&bytes));
        }
        self.shown += bytes.len() as u64;
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// The length of an incomplete UTF-8 character at the end.
fn incomplete_char_len(bytes: &[u8]) -> usize {
    let rest = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    let unfinished = std::str::from_utf8(rest).is_err_and(|error| error.error_len().is_none());
    if unfinished { rest.len() } else { 0 }
}

impl LogHeading {
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
    fn a_character_is_not_printed_in_parts() {
        assert_eq!(incomplete_char_len("né".as_bytes()), 0);
        assert_eq!(incomplete_char_len(&"né".as_bytes()[..2]), 1);
        assert_eq!(incomplete_char_len(&"漢".as_bytes()[..2]), 2);
        // Bytes that are never valid are printed as replacement characters.
        assert_eq!(incomplete_char_len(b"a\xff"), 0);
        assert_eq!(incomplete_char_len(b""), 0);
    }
}
