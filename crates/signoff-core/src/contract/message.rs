//! Decodes a final message: size limit, UTF-8 and byte order mark. The Markdown structure is parsed on demand.

use std::cell::OnceCell;
use std::ops::Range;

use super::json_text;
use super::markdown_structure::MarkdownStructure;
use crate::review::{Review, Violation, ViolationCode};

/// Maximum size of a final message in bytes.
pub const MAX_BYTES: usize = 10 * 1024 * 1024;

/// A decoded final message.
pub(super) struct FinalMessage<'a> {
    text: &'a str,
    structure: OnceCell<MarkdownStructure>,
    json: OnceCell<Vec<Range<usize>>>,
}

impl<'a> FinalMessage<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, structure: OnceCell::new(), json: OnceCell::new() }
    }

    pub fn text(&self) -> &'a str {
        self.text
    }

    /// The Markdown structure of the text. Parsed on first use, because most other contracts rarely need it.
    pub fn structure(&self) -> &MarkdownStructure {
        self.structure.get_or_init(|| MarkdownStructure::parse(self.text))
    }

    /// Whether `offset` lies inside a JSON text, and therefore inside one of its strings.
    pub fn is_inside_json(&self, offset: usize) -> bool {
        let texts = self.json.get_or_init(|| {
            json_text::scan(self.text).filter(|json| json.value.is_ok()).map(|json| json.range).collect()
        });
        let after = texts.partition_point(|range| range.start < offset);
        after.checked_sub(1).and_then(|last| texts.get(last)).is_some_and(|range| offset < range.end)
    }

    /// The line around `offset`, without its line break.
    pub fn line_at(&self, offset: usize) -> Range<usize> {
        let start = self.text[..offset].rfind('\n').map_or(0, |at| at + 1);
        let end = self.text[offset..].find('\n').map_or(self.text.len(), |at| offset + at);
        start..end
    }
}

/// Decodes the bytes of a message and passes it to the contract. Offsets count from the first byte.
pub(super) fn read(
    bytes: &[u8],
    contract: impl Fn(&FinalMessage<'_>) -> Result<Review, Violation>,
) -> Result<Review, Violation> {
    match decode(bytes) {
        Ok(text) => read_text(text, contract),
        Err(violation) if violation.code == ViolationCode::NotUtf8 => read_invalid_utf8(bytes, contract, violation),
        Err(violation) => Err(violation),
    }
}

fn read_text(
    text: &str,
    contract: impl Fn(&FinalMessage<'_>) -> Result<Review, Violation>,
) -> Result<Review, Violation> {
    let unmarked = text.strip_prefix('\u{feff}').unwrap_or(text);
    if unmarked.trim().is_empty() {
        return Err(Violation::new(ViolationCode::Empty, 0, "the answer is empty"));
    }
    let mark = text.len() - unmarked.len();
    contract(&FinalMessage::new(unmarked))
        .map_err(|violation| Violation { offset: violation.offset + mark, ..violation })
}

pub(super) fn check_size(bytes: &[u8]) -> Result<(), Violation> {
    if bytes.len() <= MAX_BYTES {
        return Ok(());
    }
    let message = format!("the answer has {} bytes; at most {MAX_BYTES} are read", bytes.len());
    Err(Violation::new(ViolationCode::TooLarge, MAX_BYTES, message))
}

/// Parses a text with one invalid UTF-8 byte, which is replaced by U+FFFD. The verdict must be the same without
/// that byte, and the byte must not be on a line with words of a verdict.
fn read_invalid_utf8(
    bytes: &[u8],
    contract: impl Fn(&FinalMessage<'_>) -> Result<Review, Violation>,
    violation: Violation,
) -> Result<Review, Violation> {
    let at = violation.offset;
    // The message ends in the middle of a character, so it was truncated.
    let is_cut_off = str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none());
    if is_cut_off {
        return Err(violation);
    }
    let (Ok(before), Ok(after)) = (str::from_utf8(&bytes[..at]), str::from_utf8(&bytes[at + 1..])) else {
        return Err(violation);
    };
    let lines = [before.rsplit('\n').next(), after.split('\n').next()];
    let line = lines.into_iter().flatten().collect::<String>().to_ascii_lowercase();
    if ["verdict", "approved", "issues"].into_iter().any(|word| line.contains(word)) {
        return Err(violation);
    }
    let original = |offset: usize| if offset > at { offset.saturating_sub(2).max(at) } else { offset };
    let shown = read_text(&format!("{before}\u{fffd}{after}"), &contract)
        .map_err(|error| Violation { offset: original(error.offset), ..error })?;
    let bare = read_text(&format!("{before}{after}"), &contract);
    if bare.is_ok_and(|bare| bare.verdict == shown.verdict) { Ok(shown) } else { Err(violation) }
}

/// Decodes an answer within the size limit.
pub(super) fn decode(bytes: &[u8]) -> Result<&str, Violation> {
    check_size(bytes)?;
    std::str::from_utf8(bytes)
        .map_err(|error| Violation::new(ViolationCode::NotUtf8, error.valid_up_to(), "the answer is not UTF-8 text"))
}

/// Trims white space from a range of `text`.
pub(super) fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let slice = &text[range.clone()];
    let start = range.start + (slice.len() - slice.trim_start().len());
    start..start + slice.trim().len()
}

/// Whether a range has only white space beside it on its lines. Scans no further than that white space.
pub(super) fn is_alone(text: &str, range: &Range<usize>) -> bool {
    let blank = |c: char| c.is_whitespace() && c != '\n';
    let before = text[..range.start].trim_end_matches(blank);
    let after = text[range.end..].trim_start_matches(blank);
    (before.is_empty() || before.ends_with('\n')) && (after.is_empty() || after.starts_with('\n'))
}
