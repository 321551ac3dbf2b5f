//! How Codex ended. It has words for it and nothing else.

use std::time::Duration;

use signoff_core::heard::{Trouble, TroubleKind};
use signoff_core::limited::{self, Ended};

use crate::agent::Closing;

/// What a turn that failed is about. `resets_in` is when the subscription may be used again, where that is known.
pub fn trouble(words: &str, resets_in: Option<Duration>) -> Trouble {
    let kind = match by_status(words).or_else(|| by_words(words)) {
        Some(TroubleKind::Limited { .. }) => {
            let wait = told(words).or(resets_in);
            TroubleKind::Limited { seconds: wait.map(|wait| wait.as_secs_f64().ceil() as u64) }
        }
        Some(kind) => kind,
        None => TroubleKind::Other,
    };
    Trouble::new(kind, words)
}

/// `try again in 4.5s`.
fn told(words: &str) -> Option<Duration> {
    limited::recognise(&Ended { code: 1, stdout: &[], stderr: words.as_bytes() })?.told
}

/// `unexpected status 401 Unauthorized: …`, `last status: 429 Too Many Requests`.
fn by_status(words: &str) -> Option<TroubleKind> {
    let behind = words.split_once("status")?.1.trim_start_matches([':', ' ']);
    let number = behind.split(|letter: char| !letter.is_ascii_digit()).next()?;
    match number.parse::<u16>().ok()? {
        401 | 403 => Some(TroubleKind::NotLoggedIn),
        402 => Some(TroubleKind::Money),
        413 => Some(TroubleKind::TooLong),
        429 => Some(TroubleKind::Limited { seconds: None }),
        500..=599 => Some(TroubleKind::Overloaded),
        404 if words.contains("model") => Some(TroubleKind::Model),
        _ => None,
    }
}

/// Its phrases, in small letters; of those that fit the first counts.
const PHRASES: [(&str, TroubleKind); 21] = [
    ("no rollout found for thread", TroubleKind::Session),
    ("usage limit", TroubleKind::Limited { seconds: None }),
    ("rate limit", TroubleKind::Limited { seconds: None }),
    ("quota exceeded", TroubleKind::Money),
    ("exceeded your current quota", TroubleKind::Money),
    ("high demand", TroubleKind::Overloaded),
    ("overloaded", TroubleKind::Overloaded),
    ("at capacity", TroubleKind::Overloaded),
    ("context window", TroubleKind::TooLong),
    ("input exceeds the maximum length", TroubleKind::TooLong),
    ("missing environment variable", TroubleKind::NotLoggedIn),
    ("not logged in", TroubleKind::NotLoggedIn),
    ("sign in again", TroubleKind::NotLoggedIn),
    ("access token could not be refreshed", TroubleKind::NotLoggedIn),
    ("stream disconnected", TroubleKind::Broken),
    ("connection failed", TroubleKind::Broken),
    ("required mcp servers failed", TroubleKind::Reports),
    ("error: unexpected argument", TroubleKind::Version),
    ("error: unrecognized subcommand", TroubleKind::Version),
    ("error: invalid value", TroubleKind::Version),
    ("unknown feature flag", TroubleKind::Version),
];

fn by_words(words: &str) -> Option<TroubleKind> {
    let words = words.to_lowercase();
    let fits = |(phrase, kind): &(&str, TroubleKind)| words.contains(phrase).then_some(*kind);
    let unknown = ["does not exist", "not supported", "model_not_found"];
    let model = || words.contains("model") && unknown.iter().any(|phrase| words.contains(phrase));
    PHRASES.iter().find_map(fits).or_else(|| model().then_some(TroubleKind::Model))
}

/// It ended before its turn did: what it wrote to stderr says why, if it did not even begin.
pub fn without_end(closing: &Closing<'_>) -> Trouble {
    let stderr = String::from_utf8_lossy(closing.stderr);
    let said = stderr.lines().map(str::trim).rev().find_map(|line| Some((line, by_words(line)?)));
    match said {
        Some((line, kind @ TroubleKind::Reports)) => Trouble::new(kind, unreached(line)),
        Some((
            line,
            kind @ (TroubleKind::Version
            | TroubleKind::TooLong
            | TroubleKind::NotLoggedIn
            | TroubleKind::Session),
        )) => Trouble::new(kind, line),
        Some(_) | None => closing.without_a_word(),
    }
}

/// Why it did not reach the server, without where within itself that happened.
fn unreached(line: &str) -> String {
    const WHAT: &str = "required MCP servers failed to initialize: ";
    let why = line.rsplit_once(WHAT).map_or(line, |(_, why)| why);
    let why = why.rsplit_once("] error: ").map_or(why, |(_, why)| why);
    format!("{WHAT}{why}")
}

pub fn is_about_reports(trouble: &Trouble) -> bool {
    trouble.kind == TroubleKind::Reports
}

/// What programs say that were kept from writing.
const REFUSALS: [&str; 5] = [
    "Permission denied",
    "Read-only file system",
    "Operation not permitted",
    // Git, where it has no place for what it is to write.
    "unable to create temporary",
    "blocked by read-only sandbox",
];

/// Whether the output of a command is that of one that was kept from writing.
pub fn is_refusal(output: &str) -> bool {
    REFUSALS.iter().any(|words| output.contains(words))
}
