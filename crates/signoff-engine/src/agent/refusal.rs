//! Classifies a provider's error by its HTTP status or its text.

use signoff_core::agent_output::AgentErrorKind;
use signoff_core::rate_limit::{self, ExitOutput};

/// Lower-case phrases with their meaning. Providers send some of them with a less specific status.
const PHRASES: [(&str, AgentErrorKind); 19] = [
    ("insufficient_quota", AgentErrorKind::OutOfCredit),
    ("insufficient balance", AgentErrorKind::OutOfCredit),
    ("credit balance", AgentErrorKind::OutOfCredit),
    ("context_length_exceeded", AgentErrorKind::PromptTooLong),
    ("maximum context length", AgentErrorKind::PromptTooLong),
    ("context window", AgentErrorKind::PromptTooLong),
    ("prompt is too long", AgentErrorKind::PromptTooLong),
    ("prompt budget", AgentErrorKind::PromptTooLong),
    ("invalid api key", AgentErrorKind::NotLoggedIn),
    ("invalid_api_key", AgentErrorKind::NotLoggedIn),
    ("incorrect api key", AgentErrorKind::NotLoggedIn),
    ("api key is missing", AgentErrorKind::NotLoggedIn),
    ("authentication required", AgentErrorKind::NotLoggedIn),
    ("no authentication information", AgentErrorKind::NotLoggedIn),
    ("model_not_found", AgentErrorKind::Model),
    ("model not found", AgentErrorKind::Model),
    ("overloaded", AgentErrorKind::Overloaded),
    ("json parsing failed", AgentErrorKind::Broken),
    ("connection was closed unexpectedly", AgentErrorKind::Broken),
];

/// Classifies an error. `seconds` is the wait the provider asked for outside of the text.
pub fn classify(status: Option<u16>, words: &str, seconds: Option<u64>) -> AgentErrorKind {
    let words = words.to_lowercase();
    let known = PHRASES.iter().find(|(word, _)| words.contains(word)).map(|(_, kind)| *kind);
    let asked = seconds.or_else(|| rate_limit_wait(&words).flatten());
    match (known, status) {
        (Some(kind), _) => kind,
        (None, Some(429)) => AgentErrorKind::Limited { seconds: asked },
        (None, Some(401 | 403)) => AgentErrorKind::NotLoggedIn,
        (None, Some(402)) => AgentErrorKind::OutOfCredit,
        (None, Some(404)) => AgentErrorKind::Model,
        (None, Some(413)) => AgentErrorKind::PromptTooLong,
        (None, Some(500..=599)) => AgentErrorKind::Overloaded,
        (None, Some(_)) => AgentErrorKind::Other,
        (None, None) if rate_limit_wait(&words).is_some() => AgentErrorKind::Limited { seconds: asked },
        (None, None) => AgentErrorKind::Other,
    }
}

/// The wait in the text, if the text is about a rate limit.
fn rate_limit_wait(words: &str) -> Option<Option<u64>> {
    let refused = rate_limit::detect(&ExitOutput { code: 1, stdout: b"", stderr: words.as_bytes() })?;
    Some(refused.retry_after.map(|delay| delay.as_secs()))
}
