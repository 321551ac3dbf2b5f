//! Parses `[API Error: …]`, the form in which Gemini CLI and its forks report a provider's error.

use std::borrow::Cow;
use std::time::Duration;

use serde::Deserialize;
use signoff_core::agent_output::{AgentError, AgentErrorKind};
use signoff_core::rate_limit::delay;

/// The error described by this text.
pub fn parse_error(words: &str, code: Option<i32>) -> AgentError {
    AgentError::new(error_kind(words, code), provider_message(words))
}

/// The provider's message: the first line, without its wrapping. Further lines are about billing.
fn provider_message(words: &str) -> Cow<'_, str> {
    let Some(inside) = words.trim_start().strip_prefix("[API Error: ") else {
        return Cow::Borrowed(words.lines().next().unwrap_or_default());
    };
    let whole = inside.rfind(']').map_or(inside, |end| &inside[..end]);
    parse_response(whole).unwrap_or_else(|| {
        let line = inside.lines().next().unwrap_or_default();
        Cow::Borrowed(line.strip_suffix(']').unwrap_or(line))
    })
}

/// The message in a provider's JSON error response, if this text is one.
pub fn parse_response(words: &str) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct ProviderResponse<'a> {
        #[serde(borrow)]
        error: ProviderError<'a>,
    }
    #[derive(Deserialize)]
    struct ProviderError<'a> {
        #[serde(borrow)]
        message: Cow<'a, str>,
    }
    let ProviderResponse { error } = serde_json::from_str(words).ok()?;
    Some(error.message).filter(|message| !message.is_empty())
}

/// The kind of error. The exit code is the HTTP status truncated to a byte.
fn error_kind(words: &str, code: Option<i32>) -> AgentErrorKind {
    let words = words.to_lowercase();
    match kind_by_phrase(&words) {
        Some(kind) => kind,
        None => http_status(&words, code).map_or(AgentErrorKind::Other, |status| kind_by_status(status, &words)),
    }
}

fn kind_by_status(status: u32, words: &str) -> AgentErrorKind {
    match status {
        401 | 403 => AgentErrorKind::NotLoggedIn,
        402 => AgentErrorKind::OutOfCredit,
        404 => AgentErrorKind::Model,
        413 => AgentErrorKind::PromptTooLong,
        429 => AgentErrorKind::Limited { seconds: retry_delay(words).map(rounded_up) },
        500..=599 => AgentErrorKind::Overloaded,
        _ => AgentErrorKind::Other,
    }
}

/// Phrases that are more specific than the status, or come without one.
fn kind_by_phrase(words: &str) -> Option<AgentErrorKind> {
    let says = |any: &[&str]| any.iter().any(|some| words.contains(some));
    if says(&["api key not valid", "api_key_invalid", "missing api key", "invalid api key", "unauthenticated"]) {
        return Some(AgentErrorKind::NotLoggedIn);
    }
    if says(&["insufficient_quota", "insufficient balance"]) {
        return Some(AgentErrorKind::OutOfCredit);
    }
    // Google mentions billing even for a limit that resets within a minute.
    let is_temporary = says(&["resource_exhausted", "quota exceeded for metric"]) || retry_delay(words).is_some();
    if says(&["billing"]) && !is_temporary {
        return Some(AgentErrorKind::OutOfCredit);
    }
    if says(&["maximum context length", "maximum number of tokens", "context is too large", "too long"]) {
        return Some(AgentErrorKind::PromptTooLong);
    }
    if says(&["rate limit", "too many requests", "exceeded your current quota", "quota exceeded", "resource_exhausted"])
    {
        return Some(AgentErrorKind::Limited { seconds: retry_delay(words).map(rounded_up) });
    }
    if says(&["overloaded", "\"unavailable\""]) {
        return Some(AgentErrorKind::Overloaded);
    }
    if says(&["model not found", "model_not_found", "is not found for api version"]) {
        return Some(AgentErrorKind::Model);
    }
    let broken = [
        "terminated",
        "fetch failed",
        "unexpected token",
        "in json at position",
        "is not valid json",
        "socket hang up",
        "econnreset",
        "und_err",
    ];
    says(&broken).then_some(AgentErrorKind::Broken)
}

/// The HTTP status: `"code":503`, a leading `503 …`, or from the exit code.
fn http_status(words: &str, code: Option<i32>) -> Option<u32> {
    let after_code = words.split_once("\"code\":").map(|(_, rest)| rest);
    let first = words.split_once("[api error: ").map(|(_, rest)| rest);
    let number = |text: &str| text.trim_start().get(..3)?.parse().ok();
    let parsed = after_code.and_then(number).or_else(|| first.and_then(number));
    // Exit codes for signals are lower.
    parsed.or_else(|| code.filter(|code| (144..256).contains(code)).map(|code| code as u32 + 256))
}

/// The longest delay in the text: `retry after 4s`, `retry in 1h30m`.
fn retry_delay(words: &str) -> Option<Duration> {
    words.lines().filter_map(delay::parse_retry_after).max()
}

fn rounded_up(delay: Duration) -> u64 {
    delay.as_secs() + u64::from(delay.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Gemini CLI's message for Google's per-minute limit.
    const GOOGLE: &str = "[API Error: You exceeded your current quota, please check your plan and billing details. For \
        more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits.\n* Quota exceeded \
        for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 10, model: \
        gemini-2.5-pro\nPlease retry in 3.2s.\nSuggested retry after 3s.]\nPlease wait and try again later.";

    #[test]
    fn errors_are_classified_by_text_and_status() {
        use AgentErrorKind::*;
        for (words, code, meant) in [
            ("[API Error: {\"error\":{\"code\":500,\"message\":\"x\"}}]", None, Overloaded),
            ("[API Error: {\"error\":{\"code\":400,\"message\":\"x\"}}]", None, Other),
            ("[API Error: {\"error\":{\"code\":401,\"message\":\"x\"}}]", None, NotLoggedIn),
            ("[API Error: {\"error\":{\"code\": 403}}]", None, NotLoggedIn),
            ("[API Error: 401 no]", None, NotLoggedIn),
            ("[API Error: no]", Some(173), Limited { seconds: None }),
            ("[API Error: no]", Some(247), Overloaded),
            ("[API Error: no]", Some(148), Model),
            ("[API Error: no]", Some(143), Other),
            ("[API Error: 429 slow down, retry in 3.2s]", Some(1), Limited { seconds: Some(4) }),
            ("[API Error: Rate limit. Suggested retry after 800ms.]", Some(1), Limited { seconds: Some(1) }),
            (GOOGLE, Some(1), Limited { seconds: Some(4) }),
            (
                "[API Error: {\"error\":{\"code\":429,\"message\":\"You exceeded your current quota, please check your plan and billing details.\",\"status\":\"RESOURCE_EXHAUSTED\"}}]",
                Some(1),
                Limited { seconds: None },
            ),
            (
                "[API Error: 429 You exceeded your current quota, please check your plan and billing details.]",
                Some(1),
                OutOfCredit,
            ),
            ("[API Error: 429 insufficient_quota, retry in 3s]", Some(1), OutOfCredit),
            ("[API Error: 429 Too Many Requests, retry in 5m]", Some(1), Limited { seconds: Some(300) }),
            ("[API Error: 429 Too Many Requests, retry in 1h30m]", Some(1), Limited { seconds: Some(5400) }),
            ("[API Error: 429 Too Many Requests, retry in 500ms]", Some(1), Limited { seconds: Some(1) }),
            ("[API Error: API key not valid. Please pass a valid API key.]", Some(144), NotLoggedIn),
            ("[API Error: models/x is not found for API version v1beta]", Some(1), Model),
            ("[API Error: terminated]", Some(1), Broken),
            ("[API Error: Expected ',' or '}' after property value in JSON at position 67]", Some(1), Broken),
            ("no idea", Some(1), Other),
            ("", None, Other),
        ] {
            assert_eq!(error_kind(words, code), meant, "{words} {code:?}");
        }
    }

    #[test]
    fn the_providers_message_is_extracted() {
        for (words, said) in [
            ("[API Error: {\"error\":{\"code\":500,\"message\":\"no \\\"luck\\\"\"}}]", "no \"luck\""),
            ("[API Error: Slow down.\nSuggested retry after 4s.]\nPlease wait.", "Slow down."),
            ("[API Error: 401 no]", "401 no"),
            ("[API Error: ", ""),
            ("[API Error: no such place: a[0]]\nSee [there].", "no such place: a[0]"),
            ("as in [1]", "as in [1]"),
            ("plain words", "plain words"),
        ] {
            assert_eq!(parse_error(words, None).message, said);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_classified(words in ".*", code: Option<i32>) {
            parse_error(&words, code);
        }
    }
}
