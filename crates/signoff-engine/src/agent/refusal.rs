//! What a provider's refusal means, whoever passes it on: its HTTP status where there is one, otherwise its words.

use signoff_core::heard::TroubleKind;
use signoff_core::limited::{self, Ended};

/// Words that nobody uses for anything else, in small letters, and what they mean. Providers send some of them with a
/// status that says less.
const WORDS: [(&str, TroubleKind); 19] = [
    ("insufficient_quota", TroubleKind::Money),
    ("insufficient balance", TroubleKind::Money),
    ("credit balance", TroubleKind::Money),
    ("context_length_exceeded", TroubleKind::TooLong),
    ("maximum context length", TroubleKind::TooLong),
    ("context window", TroubleKind::TooLong),
    ("prompt is too long", TroubleKind::TooLong),
    ("prompt budget", TroubleKind::TooLong),
    ("invalid api key", TroubleKind::NotLoggedIn),
    ("invalid_api_key", TroubleKind::NotLoggedIn),
    ("incorrect api key", TroubleKind::NotLoggedIn),
    ("api key is missing", TroubleKind::NotLoggedIn),
    ("authentication required", TroubleKind::NotLoggedIn),
    ("no authentication information", TroubleKind::NotLoggedIn),
    ("model_not_found", TroubleKind::Model),
    ("model not found", TroubleKind::Model),
    ("overloaded", TroubleKind::Overloaded),
    ("json parsing failed", TroubleKind::Broken),
    ("connection was closed unexpectedly", TroubleKind::Broken),
];

/// What a refusal means. `seconds` is the wait that the provider asked for, where it did apart from its words.
pub fn kind(status: Option<u16>, words: &str, seconds: Option<u64>) -> TroubleKind {
    let words = words.to_lowercase();
    let known = WORDS.iter().find(|(word, _)| words.contains(word)).map(|(_, kind)| *kind);
    let asked = seconds.or_else(|| refused(&words).flatten());
    match (known, status) {
        (Some(kind), _) => kind,
        (None, Some(429)) => TroubleKind::Limited { seconds: asked },
        (None, Some(401 | 403)) => TroubleKind::NotLoggedIn,
        (None, Some(402)) => TroubleKind::Money,
        (None, Some(404)) => TroubleKind::Model,
        (None, Some(413)) => TroubleKind::TooLong,
        (None, Some(500..=599)) => TroubleKind::Overloaded,
        (None, Some(_)) => TroubleKind::Other,
        (None, None) if refused(&words).is_some() => TroubleKind::Limited { seconds: asked },
        (None, None) => TroubleKind::Other,
    }
}

/// The wait that words ask for, if they are a refusal.
fn refused(words: &str) -> Option<Option<u64>> {
    let refused = limited::recognise(&Ended { code: 1, stdout: b"", stderr: words.as_bytes() })?;
    Some(refused.told.map(|told| told.as_secs()))
}
