//! The fields of a finding: `**File:** a.rs:1`, `- Severity: Minor`.

use crate::contract::location;

/// Parses `**File:** a.rs:1` or `- Severity: Minor` into the lower-case name and the value.
pub(super) fn field_of(line: &str) -> Option<(String, &str)> {
    const LONGEST: usize = 12;
    let bare = line.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_' | '-' | '+'));
    let end = bare.find(|c: char| !c.is_ascii_alphabetic()).filter(|end| (1..=LONGEST).contains(end))?;
    let value = bare[end..].trim_start_matches(['*', '_', '(', ')', 's']).strip_prefix(':')?;
    Some((bare[..end].to_ascii_lowercase(), value.trim_start_matches(['*', '_', ' '])))
}

pub(super) fn is_field(line: &str) -> bool {
    const FIELDS: [&str; 11] =
        ["file", "files", "location", "locations", "path", "where", "line", "lines", "severity", "priority", "level"];
    field_of(line).is_some_and(|(name, _)| FIELDS.contains(&name.as_str()))
}

/// The length of an item's text before its fields.
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

/// Parses `File: src/a.rs`, whose line may be in the next field.
pub(super) fn named_file(line: &str) -> Option<location::LocationMention> {
    let (name, value) = field_of(line)?;
    let is_place = ["file", "location", "path", "where"].iter().any(|place| name.starts_with(place));
    is_place.then(|| location::find_file(value)).flatten()
}

pub(super) fn number(value: &str) -> Option<u32> {
    let digits = value.trim_start_matches(['L', '`']);
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    digits[..length].parse().ok()
}
