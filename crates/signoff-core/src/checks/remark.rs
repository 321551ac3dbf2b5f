//! What a tool says about a place.

use super::place::Place;

/// How bad a tool calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Error,
    /// A place and a message without a word about how bad it is: an error if the command failed.
    Unstated,
    Warning,
    Note,
}

/// The words tools use, as they stand before a message. The longer one of two that begin alike comes first.
const WORDS: [(&str, Level); 16] = [
    ("fatal error", Level::Error),
    ("internal compiler error", Level::Error),
    ("syntax error", Level::Error),
    ("error", Level::Error),
    ("fatal", Level::Error),
    ("panic", Level::Error),
    ("warning", Level::Warning),
    ("warn", Level::Warning),
    ("style", Level::Note),
    ("note", Level::Note),
    ("remark", Level::Note),
    ("info", Level::Note),
    ("information", Level::Note),
    ("help", Level::Note),
    ("hint", Level::Note),
    ("suggestion", Level::Note),
];

impl Level {
    /// Reads `error: message` and `error TS2322: message` into the level and the message. What is not a word for
    /// how bad it is belongs to the message.
    pub(super) fn said(text: &str) -> (Self, &str) {
        let text = text.trim_start_matches([':', ' ', '-']).trim_start();
        WORDS
            .iter()
            .find_map(|(word, level)| Some((*level, after(text, word)?)))
            .unwrap_or((Self::Unstated, text))
    }
}

/// What stands after the word and its `:`; after a word and a code, the code as well.
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

/// One thing a tool said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Remark {
    pub level: Level,
    pub place: Option<Place>,
    pub message: String,
    pub suggestion: Option<String>,
}

impl Remark {
    pub(super) fn of(level: Level, place: Option<Place>, message: &str) -> Self {
        let message = if message.trim().is_empty() { "no message" } else { message };
        Self { level, place, message: clipped(message), suggestion: None }
    }

    pub(super) fn error(place: Place, message: &str) -> Self {
        Self::of(Level::Error, Some(place), message)
    }

    pub(super) fn at(&self) -> (Option<String>, Option<u32>) {
        match &self.place {
            None => (None, None),
            Some(place) => (Some(place.file.clone()), place.line),
        }
    }
}

/// What the readers found so far.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub remarks: Vec<Remark>,
}

impl Found {
    pub(super) fn push(&mut self, remark: Remark) {
        self.remarks.push(remark);
    }
}

/// The most characters of a message: a minified file can be one line of a megabyte.
const LONGEST: usize = 1_000;

pub(super) fn clipped(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
