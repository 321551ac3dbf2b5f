//! Parses a list item or line of a review into location, severity and description, and the fields of a finding:
//! `**File:** a.rs:1`, `- Severity: Minor`.

use super::ReviewRequest;
use super::candidates::parse_nonce_comment;
use super::location::{self, LocationMention};
use super::markdown_structure::{ListItem, MarkupKind};
use super::message::FinalMessage;
use super::wording::{is_listed, without_number, words};
use super::{inline_severity, markdown, wording};
use crate::review::{Finding, Note, Severity};

#[derive(Debug, Clone)]
pub(super) struct ReviewItem {
    pub location: Option<LocationMention>,
    pub severity: Option<Severity>,
    kind: Option<&'static str>,
    pub description: String,
}

impl ReviewItem {
    /// Parses the text at `offset` of the message. Returns `None` if it is empty, struck through or commented out.
    pub fn parse(message: &FinalMessage<'_>, offset: usize, text: &str) -> Option<Self> {
        let location = location::find(text);
        let at = offset + location.as_ref().map_or(0, |location| location.range.start);
        if text.trim().is_empty() || matches!(message.markup_at(at), Some(MarkupKind::Struck | MarkupKind::Comment)) {
            return None;
        }
        // Without a location, a word in capitals states no severity: "no CRITICAL issues are left".
        let found = if location.is_some() { inline_severity::severity(text) } else { inline_severity::tag(text) };
        let kind = inline_severity::kind(text);
        let tags = [found.as_ref().map(|(_, range)| range), kind.as_ref().map(|(_, range)| range)];
        let description = joined(inline_severity::description(text, tags, location.as_ref()).lines());
        let severity = found.map(|(severity, _)| severity);
        Some(Self { location, severity, kind: kind.map(|(kind, _)| kind), description })
    }

    pub fn note(self) -> Note {
        let (file, line) = split(self.location);
        Note { file, line, description: self.description }
    }

    /// Converts the item to a finding. Without a stated severity, it is critical.
    pub fn finding(self, kind: &str, request: &ReviewRequest) -> Finding {
        let (file, line) = split(self.location);
        let severity = self.severity.unwrap_or(Severity::Critical);
        let finding = Finding::new(&request.reviewer, self.kind.unwrap_or(kind), severity, self.description);
        Finding { file, line, ..finding }
    }
}

/// Joins the lines of each paragraph. Breaks between paragraphs stay.
pub(super) fn joined<'l>(lines: impl Iterator<Item = &'l str>) -> String {
    let mut text = String::new();
    let mut is_break = false;
    for line in lines.map(str::trim) {
        if !line.is_empty() && !text.is_empty() {
            text.push_str(if is_break { "\n\n" } else { " " });
        }
        is_break = line.is_empty();
        text.push_str(line);
    }
    text
}

fn split(location: Option<LocationMention>) -> (Option<String>, Option<u32>) {
    location.map_or((None, None), |location| (Some(location.file), location.line))
}

/// The item's own text, without the bullet or number and the checkbox.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnText<'m> {
    pub offset: usize,
    pub text: &'m str,
    /// Whether its checkbox is ticked, if it has one.
    pub ticked: Option<bool>,
}

/// The item's own text, up to a line that Markdown adds to the item only because there is no blank line before it.
pub(super) fn own_text<'m>(message: &FinalMessage<'m>, item: &ListItem) -> OwnText<'m> {
    let whole = message.text()[item.range.clone()].trim_start_matches([' ', '\t']);
    let text = whole.strip_prefix(['-', '*', '+']).unwrap_or_else(|| without_number(whole)).trim_start();
    let boxes = [("[ ] ", false), ("[x] ", true), ("[X] ", true)];
    let checkbox = boxes.into_iter().find_map(|(tick, ticked)| Some((text.strip_prefix(tick)?, Some(ticked))));
    let (text, ticked) = checkbox.unwrap_or((text, None));
    let end = length_before(text, |line| {
        let bare = line.trim_start();
        let own = heading_severity(line).is_some() || inline_severity::begins_with_severity(line);
        own || markdown::begins_verdict(bare) || parse_nonce_comment(bare).is_some()
    });
    OwnText { offset: item.range.end - text.len(), text: &text[..end], ticked }
}

/// The length of a text up to the first line after its first one that is not part of it.
fn length_before(text: &str, is_foreign: impl Fn(&str) -> bool) -> usize {
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().map_or(0, str::len);
    first + lines.take_while(|line| !is_foreign(line)).map(str::len).sum::<usize>()
}

/// The severity that a heading announces for the text below it: `Critical:`, `**Important (should fix):**`, `###
/// Minor issues`. Of several, the worst.
pub(super) fn heading_severity(line: &str) -> Option<Severity> {
    const MAX_HEADING_BYTES: usize = 200;
    if line.len() > MAX_HEADING_BYTES || !is_heading(line) {
        return None;
    }
    let mut found = None;
    let mut denied = false;
    let bare = without_parentheses(line);
    if wording::requires_changes(&bare) {
        return Some(Severity::Critical);
    }
    for word in words(&bare) {
        if let Some(severity) = inline_severity::severity_word(word) {
            found = found.max(Some(if denied { Severity::Minor } else { severity }));
        } else if word.eq_ignore_ascii_case("non") {
            // `Non-blocking`.
            denied = true;
            continue;
        } else if !is_filler(word) {
            return None;
        }
        denied = false;
    }
    found
}

/// Whether a line introduces the text below it: `# …`, `**…**`, `…:`.
pub(super) fn is_heading(line: &str) -> bool {
    let line = line.trim();
    let bold = |mark: &str| {
        let inside = line.strip_prefix(mark).and_then(|rest| rest.trim_end_matches(':').strip_suffix(mark));
        inside.is_some_and(|inside| !inside.is_empty() && !inside.contains(mark))
    };
    line.starts_with('#') || line.trim_end_matches(['*', '_']).ends_with(':') || bold("**") || bold("__")
}

fn without_parentheses(line: &str) -> String {
    let mut depth = 0_u32;
    let mut outside = String::with_capacity(line.len());
    for c in line.chars() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ if depth == 0 => outside.push(c),
            _ => {}
        }
    }
    if outside.contains(char::is_alphabetic) { outside } else { line.to_owned() }
}

fn is_filler(word: &str) -> bool {
    const FILLERS: &str = "issue issues finding findings problem problems bug bugs concern concerns severity \
        priority risk items improvements notes comments remarks things and or other";
    let number = word.bytes().all(|byte| byte.is_ascii_digit()) && word != "0";
    number || is_listed(word, FILLERS)
}

/// Parses a field into its lower-case name and its value.
pub(super) fn parse_field(line: &str) -> Option<(String, &str)> {
    const MAX_NAME_BYTES: usize = 12;
    let bare = line.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_' | '-' | '+'));
    let end = bare.find(|c: char| !c.is_ascii_alphabetic()).filter(|end| (1..=MAX_NAME_BYTES).contains(end))?;
    let value = bare[end..].trim_start_matches(['*', '_', '(', ')', 's']).strip_prefix(':')?;
    Some((bare[..end].to_ascii_lowercase(), value.trim_start_matches(['*', '_', ' '])))
}

pub(super) fn is_field(line: &str) -> bool {
    const FIELDS: &str = "file files location locations path where line lines severity priority level";
    parse_field(line).is_some_and(|(name, _)| is_listed(&name, FIELDS))
}

/// The length of an item's text before its fields.
pub(super) fn head_length(text: &str) -> usize {
    length_before(text, is_field)
}

/// Parses `File: src/a.rs`, whose line may be in the next field.
pub(super) fn named_file(line: &str) -> Option<LocationMention> {
    let (name, value) = parse_field(line)?;
    let is_place = ["file", "location", "path", "where"].iter().any(|location| name.starts_with(location));
    is_place.then(|| location::find_file(value)).flatten()
}

pub(super) fn line_number(value: &str) -> Option<u32> {
    let digits = value.trim_start_matches(['L', '`']);
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    digits[..length].parse().ok()
}
