//! How Claude Code ended: its result, or what it wrote instead.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use signoff_core::heard::{Trouble, TroubleKind};

use super::spent::Bill;
use crate::agent::Closing;

/// What its provider answered last instead of an answer.
#[derive(Debug, Default)]
pub struct Refusal {
    /// Its own word for it.
    pub word: Option<String>,
    /// How long it was told to wait before it asked again.
    pub asked_to_wait: Option<Duration>,
    /// When a subscription may be used again, in seconds since 1970.
    pub resets_at: Option<i64>,
}

/// The line that says how it ended.
#[derive(Debug)]
pub struct Outcome {
    pub session: Option<String>,
    pub denials: Vec<Denial>,
    pub bill: Bill,
    line: Line,
}

#[derive(Debug, Deserialize)]
struct Line {
    subtype: String,
    is_error: bool,
    result: Option<String>,
    #[serde(default)]
    errors: Vec<String>,
    terminal_reason: Option<String>,
    api_error_status: Option<u16>,
    session_id: Option<String>,
}

/// A call that was refused.
#[derive(Debug, Deserialize)]
pub struct Denial {
    pub tool_name: String,
    pub tool_use_id: String,
    pub tool_input: Option<Box<RawValue>>,
}

impl Outcome {
    /// Reads a result. What it says of itself beside how it ended may be missing or odd.
    pub fn read(line: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Beside<'a> {
            #[serde(borrow)]
            permission_denials: Option<&'a RawValue>,
            #[serde(borrow)]
            model_usage_since_last_result: Option<&'a RawValue>,
            #[serde(borrow)]
            usage: Option<&'a RawValue>,
            #[serde(borrow)]
            total_cost_usd: Option<&'a RawValue>,
        }
        let mut known: Line = serde_json::from_slice(line).ok()?;
        let beside: Beside<'_> = serde_json::from_slice(line).ok()?;
        Some(Self {
            session: known.session_id.take(),
            denials: part(beside.permission_denials).unwrap_or_default(),
            bill: Bill {
                since_last: part(beside.model_usage_since_last_result),
                usage: part(beside.usage),
                total_cost_usd: part(beside.total_cost_usd),
            },
            line: known,
        })
    }

    /// Its final message; an error has none.
    pub fn message(&self) -> Option<&str> {
        self.line.result.as_deref().filter(|_| self.is_well())
    }

    fn is_well(&self) -> bool {
        !self.line.is_error && self.line.subtype == "success"
    }

    pub fn trouble(&self, refusal: &Refusal, closing: &Closing<'_>) -> Option<Trouble> {
        if self.is_well() {
            return None;
        }
        let words = self.words();
        Some(Trouble::new(self.kind(&words, refusal, closing), &words))
    }

    /// What it says itself; for those who mend it alone is what stands in brackets.
    fn words(&self) -> String {
        let Line { result, errors, terminal_reason, .. } = &self.line;
        let errors: Vec<&str> = errors
            .iter()
            .map(String::as_str)
            .filter(|error| !error.starts_with("[ede_diagnostic]"))
            .collect();
        let said = result.clone().into_iter().chain([errors.join("; ")]).chain(terminal_reason.clone());
        said.into_iter().find(|words| !words.is_empty()).unwrap_or_default()
    }

    fn kind(&self, words: &str, refusal: &Refusal, closing: &Closing<'_>) -> TroubleKind {
        match (self.line.subtype.as_str(), self.line.terminal_reason.as_deref()) {
            ("error_max_turns" | "error_max_budget_usd", _) => return TroubleKind::Bound,
            (_, Some("prompt_too_long")) => return TroubleKind::TooLong,
            _ => {}
        }
        let limited = || TroubleKind::Limited { seconds: refusal.seconds(words, closing) };
        match refusal.word.as_deref() {
            Some("rate_limit") => return limited(),
            None if words.contains("limit reached") => return limited(),
            Some("authentication_failed") => return TroubleKind::NotLoggedIn,
            Some("billing_error") => return TroubleKind::Money,
            Some("model_not_found") => return TroubleKind::Model,
            Some("overloaded") => return TroubleKind::Overloaded,
            _ => {}
        }
        match (self.line.api_error_status.or_else(|| status_in(words)), refusal.word.as_deref()) {
            (Some(401 | 403), _) => TroubleKind::NotLoggedIn,
            (Some(402), _) => TroubleKind::Money,
            (Some(404), _) => TroubleKind::Model,
            (Some(413), _) => TroubleKind::TooLong,
            (Some(429), _) => limited(),
            (Some(500..=599), _) => TroubleKind::Overloaded,
            // Without a status there was no answer, or none that could be read.
            (None, Some("server_error" | "unknown")) => TroubleKind::Broken,
            _ => by_words(words).unwrap_or(TroubleKind::Other),
        }
    }
}

fn part<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
}

impl Refusal {
    /// How long to wait, where anybody said so.
    fn seconds(&self, words: &str, closing: &Closing<'_>) -> Option<u64> {
        let resets_at = self.resets_at.or_else(|| reset_in(words));
        let until = resets_at.map(|at| at.saturating_sub(closing.ended_at.as_second()).max(0));
        let until = until.and_then(|seconds| u64::try_from(seconds).ok());
        until.or_else(|| self.asked_to_wait.map(|delay| delay.as_secs()))
    }
}

/// Older versions: `usage limit reached|1794810000`.
fn reset_in(words: &str) -> Option<i64> {
    words.split_once("limit reached|")?.1.trim().parse().ok()
}

/// Older versions: `API Error: 529 …`.
fn status_in(words: &str) -> Option<u16> {
    let rest = words.strip_prefix("API Error: ")?;
    rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

/// Some ends have only words, and all have in older versions.
fn by_words(words: &str) -> Option<TroubleKind> {
    let begins = |start: &str| words.starts_with(start);
    if begins("No conversation found with session ID") {
        Some(TroubleKind::Session)
    } else if begins("Invalid API key") || begins("Not logged in") {
        Some(TroubleKind::NotLoggedIn)
    } else if begins("Credit balance is too low") {
        Some(TroubleKind::Money)
    } else if begins("Prompt is too long") || words.contains("context window limit") {
        Some(TroubleKind::TooLong)
    } else if words.contains("model") && words.contains("not supported") {
        Some(TroubleKind::Model)
    } else {
        None
    }
}

/// It ended without a result: what it wrote to stderr says why, if it did not even begin.
pub fn without_result(closing: &Closing<'_>) -> Trouble {
    let stderr = String::from_utf8_lossy(closing.stderr);
    let says = |words: &str| stderr.contains(words);
    let kind = if says("error: unknown option") || says("error: option") {
        TroubleKind::Version
    } else if says("No conversation found with session ID") {
        TroubleKind::Session
    } else if says("stdin input exceeds") {
        TroubleKind::TooLong
    } else if says("Invalid MCP configuration") {
        TroubleKind::Reports
    } else {
        TroubleKind::NoEnd
    };
    Trouble { kind, ..closing.without_a_word() }
}
