//! Ticks a checkbox: changes one byte of the file, if the line is unchanged since it was read.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::hex::hex;

/// An open checkbox, with enough information to find its line again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CheckboxMark {
    /// Offset in the file of the byte between the brackets.
    pub offset: usize,
    /// Offset of the same byte in its line.
    pub column: usize,
    pub line: u32,
    /// The byte between the brackets when read: a space, or another sign of an open checkbox.
    pub sign: u8,
    /// Hash of the line when read, without its line ending.
    pub line_hash: String,
}

impl CheckboxMark {
    /// The mark for the byte at `column` of `line`. `None` unless it is a single ASCII byte.
    pub(crate) fn new(line: &str, number: u32, line_start: usize, column: usize) -> Option<Self> {
        let sign = *line.as_bytes().get(column)?;
        let plain = sign == b' ' || sign.is_ascii_graphic();
        plain.then(|| Self {
            offset: line_start + column,
            column,
            line: number,
            sign,
            line_hash: hash(line.as_bytes()),
        })
    }
}

/// Why no checkbox was ticked.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum TickError {
    #[error("line {line} has changed since it was read")]
    Changed { line: u32 },
    #[error("line {line} has moved, and {count} lines match it")]
    Ambiguous { line: u32, count: usize },
}

/// Ticks the checkbox. Exactly one byte differs from `bytes`, or none if it is already ticked.
///
/// The line must have the recorded hash. If the line at the old position does not, but exactly one other line does,
/// the line has moved and that one is ticked.
pub fn tick(bytes: &[u8], mark: &CheckboxMark) -> Result<Vec<u8>, TickError> {
    if let Some(start) = mark.offset.checked_sub(mark.column)
        && starts_line(bytes, start)
    {
        match compare(line_from(bytes, start), mark) {
            LineMatch::Same => return Ok(with_x(bytes, mark.offset)),
            LineMatch::Ticked => return Ok(bytes.to_vec()),
            LineMatch::Other => {}
        }
    }
    tick_elsewhere(bytes, mark)
}

/// Whether ticking some of these checkboxes is the only difference between two lines.
pub fn is_ticked(before: &[u8], after: &[u8], marks: &[CheckboxMark]) -> bool {
    marks.iter().any(|mark| {
        matches!(compare(without_ending(before), mark), LineMatch::Same) && with_x(before, mark.column) == after
    })
}

fn tick_elsewhere(bytes: &[u8], mark: &CheckboxMark) -> Result<Vec<u8>, TickError> {
    let mut same = Vec::new();
    let mut ticked = 0;
    let mut start = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        match compare(without_ending(line), mark) {
            LineMatch::Same => same.push(start + mark.column),
            LineMatch::Ticked => ticked += 1,
            LineMatch::Other => {}
        }
        start += line.len();
    }
    match (same.as_slice(), ticked) {
        ([offset], 0) => Ok(with_x(bytes, *offset)),
        ([], 1) => Ok(bytes.to_vec()),
        ([], 0) => Err(TickError::Changed { line: mark.line }),
        (same, ticked) => Err(TickError::Ambiguous { line: mark.line, count: same.len() + ticked }),
    }
}

enum LineMatch {
    Same,
    /// Equal except for the checkbox, which is ticked.
    Ticked,
    Other,
}

fn compare(line: &[u8], mark: &CheckboxMark) -> LineMatch {
    let Some(sign) = line.get(mark.column) else { return LineMatch::Other };
    if *sign == mark.sign {
        return if hash(line) == mark.line_hash { LineMatch::Same } else { LineMatch::Other };
    }
    if !matches!(sign, b'x' | b'X') {
        return LineMatch::Other;
    }
    let mut open = line.to_vec();
    open[mark.column] = mark.sign;
    if hash(&open) == mark.line_hash { LineMatch::Ticked } else { LineMatch::Other }
}

fn starts_line(bytes: &[u8], start: usize) -> bool {
    const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
    match start.checked_sub(1) {
        None => true,
        Some(before) => bytes.get(before) == Some(&b'\n') || bytes.get(..start) == Some(BYTE_ORDER_MARK),
    }
}

fn line_from(bytes: &[u8], start: usize) -> &[u8] {
    let rest = bytes.get(start..).unwrap_or_default();
    let end = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |at| at + 1);
    without_ending(&rest[..end])
}

fn without_ending(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn with_x(bytes: &[u8], offset: usize) -> Vec<u8> {
    let mut ticked = bytes.to_vec();
    if let Some(byte) = ticked.get_mut(offset) {
        *byte = b'x';
    }
    ticked
}

fn hash(line: &[u8]) -> String {
    hex(&Sha256::digest(line)[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark_of(text: &str, line: &str) -> CheckboxMark {
        let start = text.find(line).unwrap();
        let number = u32::try_from(text[..start].lines().count() + 1).unwrap();
        CheckboxMark::new(line, number, start, 3).unwrap()
    }

    fn ticked(text: &str, mark: &CheckboxMark) -> Result<String, TickError> {
        tick(text.as_bytes(), mark).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    const PLAN: &str = "# Plan\r\n- [ ] one\r\n- [ ] two\r\n";

    #[test]
    fn one_byte_changes_and_line_endings_stay() {
        let mark = mark_of(PLAN, "- [ ] two");
        assert_eq!(ticked(PLAN, &mark).unwrap(), "# Plan\r\n- [ ] one\r\n- [x] two\r\n");
    }

    #[test]
    fn a_ticked_box_is_unchanged() {
        let mark = mark_of(PLAN, "- [ ] two");
        let once = ticked(PLAN, &mark).unwrap();
        assert_eq!(ticked(&once, &mark).unwrap(), once);
    }

    #[test]
    fn a_ticked_line_is_recognized() {
        let marks = [mark_of(PLAN, "- [ ] one"), mark_of(PLAN, "- [ ] two")];
        let is = |before: &str, after: &str| is_ticked(before.as_bytes(), after.as_bytes(), &marks);
        assert!(is("- [ ] two\r", "- [x] two\r"));
        assert!(!is("- [ ] two\r", "- [x] two"));
        assert!(!is("- [ ] two", "- [x] two!"));
        assert!(!is("- [ ] two", "- [ ] two"));
        assert!(!is("- [ ] three", "- [x] three"));
    }

    #[test]
    fn a_line_that_moved_is_found_if_there_is_only_one() {
        let mark = mark_of(PLAN, "- [ ] two");
        assert_eq!(ticked("new\n- [ ] two\n- [ ] one\n", &mark).unwrap(), "new\n- [x] two\n- [ ] one\n");
        assert_eq!(ticked("new\n- [x] two\n", &mark).unwrap(), "new\n- [x] two\n");
        let twice = ticked("new\n- [ ] two\n- [ ] two\n", &mark);
        assert_eq!(twice, Err(TickError::Ambiguous { line: 3, count: 2 }));
        let half = ticked("new\n- [ ] two\n- [x] two\n", &mark);
        assert_eq!(half, Err(TickError::Ambiguous { line: 3, count: 2 }));
    }

    #[test]
    fn a_reworded_line_is_not_ticked() {
        let mark = mark_of(PLAN, "- [ ] two");
        let reworded = PLAN.replace("two", "too");
        assert_eq!(ticked(&reworded, &mark), Err(TickError::Changed { line: 3 }));
        assert_eq!(ticked("", &mark), Err(TickError::Changed { line: 3 }));
    }
}
