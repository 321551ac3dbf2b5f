//! What a line of JSON says, however odd it is.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use signoff_core::contract::Blocks;

use super::clip;

/// A line in which each byte that is no UTF-8, and half of a pair (`\ud83d` alone), is read as the sign for what cannot
/// be read: either would make all of the line unreadable.
pub fn whole(line: &[u8]) -> Cow<'_, [u8]> {
    let line = match String::from_utf8_lossy(line) {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    };
    // Nearly no line has any, and this is found out fast.
    let any = |text: &str| text.contains("\\ud") || text.contains("\\uD");
    match std::str::from_utf8(&line).is_ok_and(any).then(|| half(&line, 0)).flatten() {
        None => line,
        Some(mut at) => {
            let mut mended = line.into_owned();
            loop {
                mended[at..at + HALF].copy_from_slice(b"\\ufffd");
                match half(&mended, at + HALF) {
                    Some(next) => at = next,
                    None => return Cow::Owned(mended),
                }
            }
        }
    }
}

/// Notes a line that was not understood, if it may be a part of the answer: JSON that is broken, or any line with the
/// word of the agent's messages. What a program prints besides JSON, and objects of other kinds, are none.
pub fn note_unread(line: &[u8], word: &str, answer: &mut Blocks) {
    let text = String::from_utf8_lossy(line);
    let is_json = || serde_json::from_slice::<IgnoredAny>(line).is_ok();
    let is_broken = text.trim_start().starts_with("{\"") && !is_json();
    if is_broken || text.contains(&format!("\"{word}\"")) {
        answer.add_unreadable(clip(text.trim(), 160));
    }
}

/// The length of `\ud83d`.
const HALF: usize = 6;

/// Where the next half of a pair stands alone.
fn half(line: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += line.get(at..)?.iter().position(|byte| *byte == b'\\')?;
        match escaped(line, at) {
            Some(0xd800..=0xdbff) if matches!(escaped(line, at + HALF), Some(0xdc00..=0xdfff)) => {
                at += 2 * HALF;
            }
            Some(0xd800..=0xdfff) => return Some(at),
            Some(_) => at += HALF,
            // The next byte is escaped, be it another backslash.
            None => at += 2,
        }
    }
}

/// The number behind `\u`, if that stands here.
fn escaped(line: &[u8], at: usize) -> Option<u16> {
    let digits = line.get(at..at + HALF)?.strip_prefix(b"\\u")?;
    let digit = |sum: u16, byte: &u8| Some(sum << 4 | char::from(*byte).to_digit(16)? as u16);
    digits.iter().try_fold(0, digit)
}

/// A part of a line: what is odd in it counts as not said, and leaves the rest as it is.
pub fn loose<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(part: D) -> Result<T, D::Error> {
    let raw = <&'de RawValue>::deserialize(part)?;
    Ok(serde_json::from_str(raw.get()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn half_a_pair_is_read_as_what_cannot_be_read() {
        for (line, read) in [
            (r#""Done \ud83d half""#, "Done \u{fffd} half"),
            (r#""\ud83d\ude00""#, "\u{1f600}"),
            (r#""\ud83d\ud83d\ude00""#, "\u{fffd}\u{1f600}"),
            (r#""\ude00\ud83d""#, "\u{fffd}\u{fffd}"),
            (r#""\\ud83d \n\ud83d\n""#, "\\ud83d \n\u{fffd}\n"),
            (r#""\\\ud83d""#, "\\\u{fffd}"),
        ] {
            let said: String = serde_json::from_slice(&whole(line.as_bytes())).unwrap();
            assert_eq!(said, read, "{line}");
        }
    }

    #[test]
    fn an_odd_part_leaves_the_rest() {
        #[derive(Deserialize)]
        struct Line {
            #[serde(default, deserialize_with = "loose")]
            cost: f64,
            kept: String,
        }
        for cost in ["null", "\"a\"", "{}", "[1]"] {
            let line: Line = serde_json::from_str(&format!(r#"{{"cost":{cost},"kept":"x"}}"#)).unwrap();
            assert_eq!((line.cost, line.kept.as_str()), (0.0, "x"), "{cost}");
        }
    }

    #[test]
    fn a_byte_that_is_no_text_is_read_as_what_cannot_be_read() {
        let said: String = serde_json::from_slice(&whole(b"\"caf\xe9 \\ud83d\"")).unwrap();
        assert_eq!(said, "caf\u{fffd} \u{fffd}");
    }

    #[test]
    fn only_what_may_be_a_message_is_noted_as_unread() {
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
            let mut answer = Blocks::default();
            note_unread(line.as_bytes(), "assistant", &mut answer);
            assert_eq!(answer.join().unreadable.is_some(), unread, "{line}");
        }
    }

    proptest! {
        /// What could be read stays as it is, and any text can be read whose halves are mended.
        #[test]
        fn what_is_whole_stays(text: String, bytes: Vec<u8>) {
            whole(&bytes);
            let line = serde_json::to_vec(&text).unwrap();
            prop_assert_eq!(&*whole(&line), &*line);
        }

        #[test]
        fn any_halves_can_be_read(halves in prop::collection::vec(any::<u16>(), 0..20)) {
            let line: String = halves.iter().map(|half| format!("\\u{half:04x}")).collect();
            let said: String = serde_json::from_slice(&whole(format!("\"{line}\"").as_bytes())).unwrap();
            prop_assert_eq!(said, String::from_utf16_lossy(&halves));
        }
    }
}
