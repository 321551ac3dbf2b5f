//! What an agent has said so far, as people are shown it: for those who do not drive it.
//!
//! Its keeper writes down whatever it prints. A translator of its kind makes words of that, as it does for those who drive
//! it; so a transcript reads the same while it is made and a year later.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use signoff_core::config::AgentKind;

use crate::agent::{self, Listener};
use crate::process::AttemptDir;

/// No more of a transcript is read at once.
const PIECE: u64 = 1 << 20;

/// The end of a longer line is not heard.
const LINE: usize = 1 << 20;

/// The end of a longer line is not shown.
const SHOWN: usize = 2000;

/// One attempt's transcript, and how much of it was read.
pub struct Transcript {
    path: PathBuf,
    read: u64,
    /// The line that has no end yet.
    line: Vec<u8>,
    /// What was read began within a line, whose end nobody would understand.
    within: bool,
    listener: Box<dyn Listener>,
}

impl Transcript {
    /// From its beginning. `kind` is what the agent is, where that is still known.
    pub fn of(dir: &AttemptDir, kind: Option<AgentKind>) -> Self {
        Self::at(dir.stdout(), kind)
    }

    fn at(path: PathBuf, kind: Option<AgentKind>) -> Self {
        let listener = kind.and_then(agent::of).map_or_else(agent::verbatim, |agent| agent.listener());
        Self { path, read: 0, line: Vec::new(), within: false, listener }
    }

    /// Only its last so many bytes, from the first line that begins among them.
    pub fn tail(dir: &AttemptDir, kind: Option<AgentKind>, bytes: u64) -> Self {
        let length = length(&dir.stdout());
        let read = length.saturating_sub(bytes);
        Self { read, within: read > 0, ..Self::of(dir, kind) }
    }

    /// Passes over what nobody has read yet, except for its last so many bytes: whoever shows it must keep up.
    pub fn keep_up(&mut self, bytes: u64) {
        let from = length(&self.path).saturating_sub(bytes);
        if from > self.read {
            (self.read, self.within) = (from, true);
            self.line.clear();
        }
    }

    /// Whether something stands before what is read.
    pub fn is_cut(&self) -> bool {
        self.within
    }

    /// What was said since it was last asked: at most a piece of it. Empty at the end; a line counts when it is whole.
    pub fn more(&mut self) -> io::Result<Vec<String>> {
        let mut shown = Vec::new();
        for byte in self.piece()? {
            match byte {
                b'\n' => shown.append(&mut self.line_ended()),
                _ if self.line.len() < LINE => self.line.push(byte),
                _ => {}
            }
        }
        Ok(shown)
    }

    /// The last line, which nothing ended.
    pub fn rest(&mut self) -> Vec<String> {
        if self.line.is_empty() { Vec::new() } else { self.line_ended() }
    }

    fn piece(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match File::open(&self.path) {
            Ok(mut file) => {
                file.seek(SeekFrom::Start(self.read))?;
                file.take(PIECE).read_to_end(&mut bytes)?;
            }
            // Its keeper has not begun.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        self.read += bytes.len() as u64;
        Ok(bytes)
    }

    fn line_ended(&mut self) -> Vec<String> {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.within) {
            return Vec::new();
        }
        let said = self.listener.line(line.strip_suffix(b"\r").unwrap_or(&line));
        said.iter().map(|said| said.shown().chars().take(SHOWN).collect()).collect()
    }
}

fn length(path: &Path) -> u64 {
    path.metadata().map_or(0, |file| file.len())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn written(text: &str) -> (tempfile::TempDir, AttemptDir) {
        let place = tempfile::tempdir().expect("a directory");
        let dir = AttemptDir::new(place.path());
        std::fs::write(dir.stdout(), text).expect("a file");
        (place, dir)
    }

    #[test]
    fn a_line_is_heard_when_it_is_whole() {
        let (_place, dir) = written("one\nhal");
        let mut transcript = Transcript::of(&dir, None);
        assert_eq!(transcript.more().expect("read"), ["one"]);
        assert_eq!(transcript.more().expect("read"), [""; 0]);
        let mut file = File::options().append(true).open(dir.stdout()).expect("a file");
        file.write_all(b"f\r\ntail").expect("written");
        assert_eq!(transcript.more().expect("read"), ["half"]);
        assert_eq!(transcript.rest(), ["tail"]);
        assert_eq!(transcript.rest(), [""; 0]);
    }

    #[test]
    fn the_end_of_a_long_one_begins_with_a_whole_line() {
        let (_place, dir) = written("first\nsecond\nthird\n");
        let mut tail = Transcript::tail(&dir, None, 10);
        assert!(tail.is_cut());
        assert_eq!(tail.more().expect("read"), ["third"]);
        let mut all = Transcript::tail(&dir, None, 1000);
        assert!(!all.is_cut());
        assert_eq!(all.more().expect("read"), ["first", "second", "third"]);
    }

    #[test]
    fn whoever_falls_behind_goes_on_near_the_end() {
        let (_place, dir) = written("first\n");
        let mut transcript = Transcript::of(&dir, None);
        assert_eq!(transcript.more().expect("read"), ["first"]);
        std::fs::write(dir.stdout(), format!("first\n{}\nlast\n", "x".repeat(100_000))).expect("a file");
        transcript.keep_up(100);
        assert_eq!(transcript.more().expect("read"), ["last"]);
        transcript.keep_up(100);
        assert_eq!(transcript.more().expect("read"), [""; 0]);
    }

    #[test]
    fn the_words_of_a_kind_are_translated() {
        let spoken =
            r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"Reading it."}]}}"#;
        let (_place, dir) = written(&format!("{spoken}\n"));
        assert_eq!(Transcript::of(&dir, Some(AgentKind::Claude)).more().expect("read"), ["Reading it."]);
    }

    #[test]
    fn nothing_written_yet_is_nothing_said() {
        let place = tempfile::tempdir().expect("a directory");
        let dir = AttemptDir::new(place.path().join("gone"));
        assert_eq!(Transcript::of(&dir, None).more().expect("read"), [""; 0]);
    }
}
