//! Lenient parsing of JSON lines, in an agent's output and in its session files.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use signoff_core::agent_output::{AgentError, AgentSummary, OutputLine};
use signoff_core::contract::AnswerBlocks;
use signoff_core::text::shortened;

use super::bounded::KeptOutput;
use super::{AgentExit, AgentResult, OutputParser};

/// Replaces invalid UTF-8 and unpaired surrogate escapes (`\ud83d` alone) with the replacement character.
/// Either would make the whole line unparsable.
pub fn sanitize(line: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(line);
    // Almost no line contains any, and this check is fast.
    if !text.contains("\\ud") && !text.contains("\\uD") {
        return text;
    }
    let (mut repaired, mut from) = (text.into_owned(), 0);
    while let Some(at) = unpaired_surrogate(repaired.as_bytes(), from) {
        from = at + ESCAPE_LEN;
        repaired.replace_range(at..from, "\\ufffd");
    }
    Cow::Owned(repaired)
}

/// Records an unparsed line that may be part of the answer: broken JSON, or a line that contains the agent's
/// message type. Other output and other objects are ignored.
pub fn record_unparsed(line: &str, message_type: &str, answer: &mut AnswerBlocks) {
    let is_json = || serde_json::from_str::<IgnoredAny>(line).is_ok();
    let is_broken = line.trim_start().starts_with("{\"") && !is_json();
    if is_broken || line.contains(&format!("\"{message_type}\"")) {
        answer.add_unreadable(shortened(line.trim(), 160));
    }
}

/// Length of an escape such as `\ud83d`.
const ESCAPE_LEN: usize = 6;

/// Position of the next unpaired surrogate escape.
fn unpaired_surrogate(line: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += line.get(at..)?.iter().position(|byte| *byte == b'\\')?;
        match unicode_escape(line, at) {
            Some(0xd800..=0xdbff) if matches!(unicode_escape(line, at + ESCAPE_LEN), Some(0xdc00..=0xdfff)) => {
                at += 2 * ESCAPE_LEN;
            }
            Some(0xd800..=0xdfff) => return Some(at),
            Some(_) => at += ESCAPE_LEN,
            // The next byte is escaped, possibly another backslash.
            None => at += 2,
        }
    }
}

/// The number of a `\u` escape at this position.
fn unicode_escape(line: &[u8], at: usize) -> Option<u16> {
    let digits = line.get(at..at + ESCAPE_LEN)?.strip_prefix(b"\\u")?;
    let digit = |sum: u16, byte: &u8| Some(sum << 4 | char::from(*byte).to_digit(16)? as u16);
    digits.iter().try_fold(0, digit)
}

/// A field that has its default if the value is missing or has an unexpected form.
#[derive(Debug, Default)]
pub struct DefaultOnError<T>(pub T);

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for DefaultOnError<T> {
    fn deserialize<D: Deserializer<'de>>(part: D) -> Result<Self, D::Error> {
        // Without a value if the field is missing.
        let raw = Option::<&'de RawValue>::deserialize(part)?;
        Ok(Self(raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()))
    }
}

/// Parses the JSON lines that one kind of agent prints.
pub trait JsonStream: Default + Send {
    /// Type of the agent's messages.
    const MESSAGE_TYPE: &'static str;

    /// Parses a line. Returns what to show of it, or `None` if it may be a message and cannot be parsed.
    fn parse(&mut self, line: &str, kept: &mut KeptOutput) -> Option<Vec<OutputLine>>;

    /// Completes the output. Returns the error that the agent ended with.
    fn finish(&mut self, exit: &AgentExit<'_>, kept: &mut KeptOutput) -> Option<AgentError>;
}

/// The parser of an agent that prints JSON lines.
#[derive(Default)]
pub struct JsonParser<S> {
    stream: S,
    kept: KeptOutput,
}

impl<S: JsonStream> OutputParser for JsonParser<S> {
    fn parse_line(&mut self, line: &[u8]) -> Vec<OutputLine> {
        let line = sanitize(line);
        self.stream.parse(&line, &mut self.kept).unwrap_or_else(|| {
            record_unparsed(&line, S::MESSAGE_TYPE, &mut self.kept.message);
            Vec::new()
        })
    }

    fn finish(&mut self, exit: &AgentExit<'_>) -> AgentResult {
        let error = self.stream.finish(exit, &mut self.kept);
        let KeptOutput { summary, message, .. } = std::mem::take(&mut self.kept);
        AgentResult::new(message, AgentSummary { error, ..summary })
    }
}

/// Maximum length of a line. Longer lines are skipped.
const MAX_LINE: u64 = 4 * 1024 * 1024;

/// Maximum number of bytes read from a file.
const MAX_READ: u64 = 512 * 1024 * 1024;

/// Whether a path is a plain file. Reading anything else might never end.
pub fn is_plain_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|file| file.is_file())
}

/// Maximum number of files. Every sub-agent has one.
const MAX_FILES: usize = 256;

/// The `.jsonl` files below a directory, at most `levels` levels deep, sorted by name.
pub fn jsonl_files(directory: &Path, levels: usize) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut level = vec![directory.to_owned()];
    for _ in 0..levels {
        let entries = level.iter().filter_map(|path| fs::read_dir(path).ok()).flatten().flatten();
        let (inner, rest): (Vec<PathBuf>, Vec<PathBuf>) =
            entries.take(4 * MAX_FILES).map(|entry| entry.path()).partition(|path| is_directory(path));
        files.extend(
            rest.into_iter().filter(|path| path.extension().is_some_and(|end| end == "jsonl") && is_plain_file(path)),
        );
        level = inner;
    }
    files.sort();
    files.truncate(MAX_FILES);
    files
}

fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|entry| entry.is_dir())
}

/// Calls `on_line` for each complete line, up to the first read error.
pub fn for_each_line(path: &Path, mut on_line: impl FnMut(&str)) {
    let Ok(file) = File::open(path) else { return };
    let mut reader = BufReader::new(file.take(MAX_READ));
    let mut line = Vec::new();
    while let Ok(1..) = reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line) {
        if line.ends_with(b"\n") {
            on_line(&sanitize(&line));
        } else if reader.skip_until(b'\n').is_err() {
            return;
        }
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_lone_surrogate_becomes_a_replacement_character() {
        for (line, read) in [
            (r#""Done \ud83d half""#, "Done \u{fffd} half"),
            (r#""\ud83d\ude00""#, "\u{1f600}"),
            (r#""\ud83d\ud83d\ude00""#, "\u{fffd}\u{1f600}"),
            (r#""\ude00\ud83d""#, "\u{fffd}\u{fffd}"),
            (r#""\\ud83d \n\ud83d\n""#, "\\ud83d \n\u{fffd}\n"),
            (r#""\\\ud83d""#, "\\\u{fffd}"),
        ] {
            let text: String = serde_json::from_str(&sanitize(line.as_bytes())).unwrap();
            assert_eq!(text, read, "{line}");
        }
    }

    #[test]
    fn a_malformed_field_keeps_the_others() {
        #[derive(Deserialize)]
        struct LenientLine {
            cost: DefaultOnError<f64>,
            kept: String,
        }
        for cost in ["null", "\"a\"", "{}", "[1]"] {
            let line: LenientLine = serde_json::from_str(&format!(r#"{{"cost":{cost},"kept":"x"}}"#)).unwrap();
            assert_eq!((line.cost.0, line.kept.as_str()), (0.0, "x"), "{cost}");
        }
    }

    #[test]
    fn an_invalid_byte_becomes_a_replacement_character() {
        let text: String = serde_json::from_str(&sanitize(b"\"caf\xe9 \\ud83d\"")).unwrap();
        assert_eq!(text, "caf\u{fffd} \u{fffd}");
    }

    #[test]
    fn only_lines_that_may_be_messages_are_marked_unreadable() {
        for (line, unread) in [
            ("", false),
            ("Warning: \u{1b}[1mold version", false),
            ("{", false),
            ("  { cause: 1 }", false),
            ("[1, 2", false),
            (r#"{"type":"progress","done":1}"#, false),
            (r#"{"type":"progress","do"#, true),
            (r#"{"type":"assistant","message":5}"#, true),
            (r#"Warning: old{"type":"assistant","message":{}}"#, true),
        ] {
            let mut answer = AnswerBlocks::default();
            record_unparsed(line, "assistant", &mut answer);
            assert_eq!(answer.join().unreadable.is_some(), unread, "{line}");
        }
    }

    proptest! {
        /// Valid lines stay unchanged, and every repaired text can be parsed.
        #[test]
        fn valid_lines_are_unchanged(text: String, bytes: Vec<u8>) {
            sanitize(&bytes);
            let line = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(&*sanitize(line.as_bytes()), &*line);
        }

        #[test]
        fn any_surrogates_can_be_parsed(halves in prop::collection::vec(any::<u16>(), 0..20)) {
            let line: String = halves.iter().map(|half| format!("\\u{half:04x}")).collect();
            let text: String = serde_json::from_str(&sanitize(format!("\"{line}\"").as_bytes())).unwrap();
            prop_assert_eq!(text, String::from_utf16_lossy(&halves));
        }
    }
}
