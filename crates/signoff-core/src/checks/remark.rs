//! A remark: one message of a tool, with its level and location.

use super::location::SourceLocation;

/// The severity that a tool gives a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RemarkLevel {
    Error,
    /// No severity word. It is an error if the command failed.
    Unstated,
    Warning,
    Note,
}

/// The severity words of tools, before a message. If one is a prefix of another, the longer one comes first.
const WORDS: [(&str, RemarkLevel); 16] = [
    ("fatal error", RemarkLevel::Error),
    ("internal compiler error", RemarkLevel::Error),
    ("syntax error", RemarkLevel::Error),
    ("error", RemarkLevel::Error),
    ("fatal", RemarkLevel::Error),
    ("panic", RemarkLevel::Error),
    ("warning", RemarkLevel::Warning),
    ("warn", RemarkLevel::Warning),
    ("style", RemarkLevel::Note),
    ("note", RemarkLevel::Note),
    ("remark", RemarkLevel::Note),
    ("info", RemarkLevel::Note),
    ("information", RemarkLevel::Note),
    ("help", RemarkLevel::Note),
    ("hint", RemarkLevel::Note),
    ("suggestion", RemarkLevel::Note),
];

impl RemarkLevel {
    /// Parses `error: message` and `error TS2322: message` into the level and the message. Text that is not a
    /// severity word stays in the message.
    pub(super) fn parse(text: &str) -> (Self, &str) {
        let text = text.trim_start_matches([':', ' ', '-']).trim_start();
        WORDS.iter().find_map(|(word, level)| Some((*level, after(text, word)?))).unwrap_or((Self::Unstated, text))
    }
}

/// The text after the word and its `:`. After a word and a code, the code is included.
fn after<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let (head, rest) = text.split_at_checked(word.len())?;
    if !head.eq_ignore_ascii_case(word) {
        return None;
    }
    let coded = rest.strip_prefix(' ').filter(|rest| {
        let code = rest.split(':').next().unwrap_or_default();
        code.len() < rest.len() && code.len() <= 12 && code.ends_with(|c: char| c.is_ascii_digit())
    });
    rest.strip_prefix(':').or(coded).map(str::trim_start)
}

/// One message of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Remark {
    pub level: RemarkLevel,
    pub place: Option<SourceLocation>,
    pub message: String,
    pub suggestion: Option<String>,
}

impl Remark {
    pub(super) fn new(level: RemarkLevel, place: Option<SourceLocation>, message: &str) -> Self {
        let message = if message.trim().is_empty() { "no message" } else { message };
        Self { level, place, message: clipped(message), suggestion: None }
    }

    pub(super) fn error(place: SourceLocation, message: &str) -> Self {
        Self::new(RemarkLevel::Error, Some(place), message)
    }

    pub(super) fn location(&self) -> (Option<String>, Option<u32>) {
        match &self.place {
            None => (None, None),
            Some(place) => (Some(place.file.clone()), place.line),
        }
    }
}

/// The remarks found so far.
#[derive(Debug, Default)]
pub(super) struct RemarkList {
    pub remarks: Vec<Remark>,
}

impl RemarkList {
    pub(super) fn push(&mut self, remark: Remark) {
        self.remarks.push(remark);
    }
}

/// Maximum characters of a message. A minified file can be one line of a megabyte.
const LONGEST: usize = 1_000;

pub(super) fn clipped(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
