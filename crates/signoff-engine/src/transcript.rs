//! Reads the transcript of an agent, for display.
//!
//! The supervisor saves the agent's output to a file. The parser of the agent's kind turns it into displayed
//! lines, the same way as during the run, so a transcript looks the same later.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::PathBuf;

use signoff_core::settings::AgentKind;

use crate::agent::{self, OutputParser};
use crate::process::{AttemptDir, file_len};

/// Maximum number of bytes read at once.
const MAX_READ: u64 = 1 << 20;

/// Maximum length of a line. The rest is ignored.
const MAX_LINE: usize = 1 << 20;

/// Maximum number of characters shown of a line.
const MAX_SHOWN: usize = 2000;

/// Reads one attempt's transcript incrementally.
pub struct TranscriptReader {
    path: PathBuf,
    position: u64,
    /// The current, incomplete line.
    line: Vec<u8>,
    /// Whether reading began within a line, whose rest is skipped.
    skip_line: bool,
    parser: Box<dyn OutputParser>,
}

impl TranscriptReader {
    /// Reads from the beginning. `kind` is the kind of the agent, if it is still known.
    pub fn open(dir: &AttemptDir, kind: Option<AgentKind>) -> Self {
        let parser = agent::output_parser(kind);
        Self { path: dir.stdout(), position: 0, line: Vec::new(), skip_line: false, parser }
    }

    /// Reads only the last `bytes` bytes, from the first complete line.
    pub fn tail(dir: &AttemptDir, kind: Option<AgentKind>, bytes: u64) -> Self {
        let length = file_len(&dir.stdout());
        let read = length.saturating_sub(bytes);
        Self { position: read, skip_line: read > 0, ..Self::open(dir, kind) }
    }

    /// Skips unread output except for its last `bytes` bytes, so that a display can keep up.
    pub fn skip_to_tail(&mut self, bytes: u64) {
        let from = file_len(&self.path).saturating_sub(bytes);
        if from > self.position {
            (self.position, self.skip_line) = (from, true);
            self.line.clear();
        }
    }

    /// The lines since the last call, up to a maximum. Empty at the end. Returns a line once it is complete.
    pub fn read_more(&mut self) -> io::Result<Vec<String>> {
        let mut shown = Vec::new();
        for byte in self.read_chunk()? {
            match byte {
                b'\n' => shown.append(&mut self.finish_line()),
                _ if self.line.len() < MAX_LINE => self.line.push(byte),
                _ => {}
            }
        }
        Ok(shown)
    }

    /// The last line, if it has no line ending.
    pub fn finish(&mut self) -> Vec<String> {
        if self.line.is_empty() { Vec::new() } else { self.finish_line() }
    }

    fn read_chunk(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match File::open(&self.path) {
            Ok(mut file) => {
                file.seek(SeekFrom::Start(self.position))?;
                file.take(MAX_READ).read_to_end(&mut bytes)?;
            }
            // The supervisor has not started yet.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        self.position += bytes.len() as u64;
        Ok(bytes)
    }

    fn finish_line(&mut self) -> Vec<String> {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.skip_line) {
            return Vec::new();
        }
        let output = self.parser.parse_line(line.strip_suffix(b"\r").unwrap_or(&line));
        output.iter().map(|line| line.display_line().chars().take(MAX_SHOWN).collect()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn written(text: &str) -> (tempfile::TempDir, AttemptDir) {
        let directory = tempfile::tempdir().expect("a directory");
        let dir = AttemptDir::new(directory.path());
        std::fs::write(dir.stdout(), text).expect("a file");
        (directory, dir)
    }

    #[test]
    fn a_line_is_returned_when_it_is_complete() {
        let (_place, dir) = written("one\nhal");
        let mut transcript = TranscriptReader::open(&dir, None);
        assert_eq!(transcript.read_more().expect("read"), ["one"]);
        assert_eq!(transcript.read_more().expect("read"), [""; 0]);
        let mut file = File::options().append(true).open(dir.stdout()).expect("a file");
        file.write_all(b"f\r\ntail").expect("written");
        assert_eq!(transcript.read_more().expect("read"), ["half"]);
        assert_eq!(transcript.finish(), ["tail"]);
        assert_eq!(transcript.finish(), [""; 0]);
    }

    #[test]
    fn the_tail_of_a_long_transcript_starts_with_a_complete_line() {
        let (_place, dir) = written("first\nsecond\nthird\n");
        let mut tail = TranscriptReader::tail(&dir, None, 10);
        assert!(tail.skip_line);
        assert_eq!(tail.read_more().expect("read"), ["third"]);
        let mut all = TranscriptReader::tail(&dir, None, 1000);
        assert!(!all.skip_line);
        assert_eq!(all.read_more().expect("read"), ["first", "second", "third"]);
    }

    #[test]
    fn a_slow_reader_can_skip_to_the_tail() {
        let (_place, dir) = written("first\n");
        let mut transcript = TranscriptReader::open(&dir, None);
        assert_eq!(transcript.read_more().expect("read"), ["first"]);
        std::fs::write(dir.stdout(), format!("first\n{}\nlast\n", "x".repeat(100_000))).expect("a file");
        transcript.skip_to_tail(100);
        assert_eq!(transcript.read_more().expect("read"), ["last"]);
        transcript.skip_to_tail(100);
        assert_eq!(transcript.read_more().expect("read"), [""; 0]);
    }

    #[test]
    fn agent_output_is_parsed_by_kind() {
        let spoken = r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"Reading it."}]}}"#;
        let (_place, dir) = written(&format!("{spoken}\n"));
        assert_eq!(TranscriptReader::open(&dir, Some(AgentKind::Claude)).read_more().expect("read"), ["Reading it."]);
    }

    #[test]
    fn a_missing_transcript_has_no_lines() {
        let directory = tempfile::tempdir().expect("a directory");
        let dir = AttemptDir::new(directory.path().join("gone"));
        assert_eq!(TranscriptReader::open(&dir, None).read_more().expect("read"), [""; 0]);
    }
}
