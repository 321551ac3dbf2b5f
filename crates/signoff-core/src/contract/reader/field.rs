//! The fields of a finding: `**File:** a.rs:1`, `- Severity: Minor`.

use crate::contract::place;

/// `**File:** a.rs:1`, `- Severity: Minor`: the name in lower case and the value.
pub(super) fn field_of(line: &str) -> Option<(String, &str)> {
    const LONGEST: usize = 12;
    let bare = line.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_' | '-' | '+'));
    let end = bare.find(|c: char| !c.is_ascii_alphabetic()).filter(|end| (1..=LONGEST).contains(end))?;
    let value = bare[end..].trim_start_matches(['*', '_', '(', ')', 's']).strip_prefix(':')?;
    Some((bare[..end].to_ascii_lowercase(), value.trim_start_matches(['*', '_', ' '])))
}

pub(super) fn is_field(line: &str) -> bool {
    const FIELDS: [&str; 11] = [
        "file",
        "files",
        "location",
        "locations",
        "path",
        "where",
        "line",
        "lines",
        "severity",
        "priority",
        "level",
    ];
    field_of(line).is_some_and(|(name, _)| FIELDS.contains(&name.as_str()))
}

/// How much of an item comes before its fields.
pub(super) fn head_length(text: &str) -> usize {
    let mut length = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if number > 0 && is_field(line) {
            break;
        }
        length += line.len();
    }
    length
}

/// `File: src/a.rs`, whose line may be the next field.
pub(super) fn named_file(line: &str) -> Option<place::Place> {
    let (name, value) = field_of(line)?;
    let is_place = ["file", "location", "path", "where"].iter().any(|place| name.starts_with(place));
    is_place.then(|| place::file(value)).flatten()
}

pub(super) fn number(value: &str) -> Option<u32> {
    let digits = value.trim_start_matches(['L', '`']);
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    digits[..length].parse().ok()
}
