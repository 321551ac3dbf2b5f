//! What `[API Error: …]` means: so Gemini CLI, and what others made of it, tell what their provider answered.

use std::borrow::Cow;
use std::time::Duration;

use serde::Deserialize;
use signoff_core::heard::{Trouble, TroubleKind};
use signoff_core::limited::delay;

/// The trouble that these words tell of.
pub fn trouble(words: &str, code: Option<i32>) -> Trouble {
    Trouble::new(kind(words, code), told(words))
}

/// What the provider said: the first line, out of its wrapping. The others say how to pay for more.
fn told(words: &str) -> Cow<'_, str> {
    let Some(inside) = words.trim_start().strip_prefix("[API Error: ") else {
        return Cow::Borrowed(words.lines().next().unwrap_or_default());
    };
    let whole = inside.rfind(']').map_or(inside, |end| &inside[..end]);
    answered(whole).unwrap_or_else(|| {
        let line = inside.lines().next().unwrap_or_default();
        Cow::Borrowed(line.strip_suffix(']').unwrap_or(line))
    })
}

/// The message of a provider's whole answer, if these words are one.
pub fn answered(words: &str) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Answer<'a> {
        #[serde(borrow)]
        error: Said<'a>,
    }
    #[derive(Deserialize)]
    struct Said<'a> {
        #[serde(borrow)]
        message: Cow<'a, str>,
    }
    let Answer { error } = serde_json::from_str(words).ok()?;
    Some(error.message).filter(|message| !message.is_empty())
}

/// What kind of trouble these words tell of. The exit code is the status of the provider's answer, as far as it fits into
/// a byte.
fn kind(words: &str, code: Option<i32>) -> TroubleKind {
    let words = words.to_lowercase();
    match by_words(&words) {
        Some(kind) => kind,
        None => status(&words, code).map_or(TroubleKind::Other, |status| by_status(status, &words)),
    }
}

fn by_status(status: u32, words: &str) -> TroubleKind {
    match status {
        401 | 403 => TroubleKind::NotLoggedIn,
        402 => TroubleKind::Money,
        404 => TroubleKind::Model,
        413 => TroubleKind::TooLong,
        429 => TroubleKind::Limited { seconds: delay(words).map(rounded_up) },
        500..=599 => TroubleKind::Overloaded,
        _ => TroubleKind::Other,
    }
}

/// Words that say more than the status beside them, or that stand without one.
fn by_words(words: &str) -> Option<TroubleKind> {
    let says = |any: &[&str]| any.iter().any(|some| words.contains(some));
    if says(&[
        "api key not valid",
        "api_key_invalid",
        "missing api key",
        "invalid api key",
        "unauthenticated",
    ]) {
        return Some(TroubleKind::NotLoggedIn);
    }
    if says(&["insufficient_quota", "insufficient balance"]) {
        return Some(TroubleKind::Money);
    }
    // Google speaks of billing also where a minute's wait is enough.
    let passes = says(&["resource_exhausted", "quota exceeded for metric"]) || delay(words).is_some();
    if says(&["billing"]) && !passes {
        return Some(TroubleKind::Money);
    }
    if says(&["maximum context length", "maximum number of tokens", "context is too large", "too long"]) {
        return Some(TroubleKind::TooLong);
    }
    if says(&[
        "rate limit",
        "too many requests",
        "exceeded your current quota",
        "quota exceeded",
        "resource_exhausted",
    ]) {
        return Some(TroubleKind::Limited { seconds: delay(words).map(rounded_up) });
    }
    if says(&["overloaded", "\"unavailable\""]) {
        return Some(TroubleKind::Overloaded);
    }
    if says(&["model not found", "model_not_found", "is not found for api version"]) {
        return Some(TroubleKind::Model);
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
    says(&broken).then_some(TroubleKind::Broken)
}

/// The status that is told: `"code":503` or `503 …` at the start, or by the exit code.
fn status(words: &str, code: Option<i32>) -> Option<u32> {
    let told = words.split_once("\"code\":").map(|(_, rest)| rest);
    let first = words.split_once("[api error: ").map(|(_, rest)| rest);
    let number = |text: &str| text.trim_start().get(..3)?.parse().ok();
    let said = told.and_then(number).or_else(|| first.and_then(number));
    // 128 and a signal's number are below.
    said.or_else(|| code.filter(|code| (144..256).contains(code)).map(|code| code as u32 + 256))
}

/// The longest wait that is asked for: `retry after 4s`, `retry in 1h30m`.
fn delay(words: &str) -> Option<Duration> {
    words.lines().filter_map(delay::told).max()
}

fn rounded_up(delay: Duration) -> u64 {
    delay.as_secs() + u64::from(delay.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What Gemini CLI makes of Google's limit for a minute.
    const GOOGLE: &str = "[API Error: You exceeded your current quota, please check your plan and billing details. For \
        more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits.\n* Quota exceeded \
        for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 10, model: \
        gemini-2.5-pro\nPlease retry in 3.2s.\nSuggested retry after 3s.]\nPlease wait and try again later.";

    #[test]
    fn words_and_codes() {
        use TroubleKind::*;
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
                Money,
            ),
            ("[API Error: 429 insufficient_quota, retry in 3s]", Some(1), Money),
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
            assert_eq!(kind(words, code), meant, "{words} {code:?}");
        }
    }

    #[test]
    fn the_words_of_the_provider() {
        for (words, said) in [
            ("[API Error: {\"error\":{\"code\":500,\"message\":\"no \\\"luck\\\"\"}}]", "no \"luck\""),
            ("[API Error: Slow down.\nSuggested retry after 4s.]\nPlease wait.", "Slow down."),
            ("[API Error: 401 no]", "401 no"),
            ("[API Error: ", ""),
            ("[API Error: no such place: a[0]]\nSee [there].", "no such place: a[0]"),
            ("as in [1]", "as in [1]"),
            ("plain words", "plain words"),
        ] {
            assert_eq!(trouble(words, None).message, said);
        }
    }

    proptest! {
        #[test]
        fn any_words(words in ".*", code: Option<i32>) {
            trouble(&words, code);
        }
    }
}
