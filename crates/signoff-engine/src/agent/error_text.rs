//! Parses and classifies the errors of agents and providers, by HTTP status or by text.

use std::borrow::Cow;
use std::time::Duration;

use serde::Deserialize;
use signoff_core::agent_output::{AgentError, AgentErrorKind};
use signoff_core::rate_limit::{self, ExitOutput};

/// The error described by this text.
pub fn parse_error(text: &str, code: Option<i32>) -> AgentError {
    AgentError::new(error_kind(text, code), provider_message(text))
}

/// The provider's message: the first line, without its wrapping. Further lines are about billing.
fn provider_message(text: &str) -> Cow<'_, str> {
    let Some(inside) = text.trim_start().strip_prefix("[API Error: ") else {
        return Cow::Borrowed(text.lines().next().unwrap_or_default());
    };
    let json = inside.rfind(']').map_or(inside, |end| &inside[..end]);
    parse_response(json).unwrap_or_else(|| {
        let line = inside.lines().next().unwrap_or_default();
        Cow::Borrowed(line.strip_suffix(']').unwrap_or(line))
    })
}

/// The message in a provider's JSON error response, if this text is one.
pub fn parse_response(text: &str) -> Option<Cow<'_, str>> {
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
    let ProviderResponse { error } = serde_json::from_str(text).ok()?;
    Some(error.message).filter(|message| !message.is_empty())
}

/// The kind of error. The exit code is the HTTP status truncated to a byte.
fn error_kind(text: &str, code: Option<i32>) -> AgentErrorKind {
    let text = text.to_lowercase();
    let kind = kind_by_phrase(&text).or_else(|| kind_by_status(http_status(&text, code)?));
    with_wait(kind.unwrap_or(AgentErrorKind::Other), retry_delay(&text).map(rounded_up))
}

/// The kind of error for an HTTP status. The wait after a rate limit is unknown.
pub fn kind_by_status(status: u16) -> Option<AgentErrorKind> {
    match status {
        401 | 403 => Some(AgentErrorKind::NotLoggedIn),
        402 => Some(AgentErrorKind::OutOfCredit),
        404 => Some(AgentErrorKind::ModelUnavailable),
        413 => Some(AgentErrorKind::PromptTooLong),
        429 => Some(AgentErrorKind::RateLimited { seconds: None }),
        500..=599 => Some(AgentErrorKind::Overloaded),
        _ => None,
    }
}

/// Sets the wait, if the kind is a rate limit.
pub fn with_wait(mut kind: AgentErrorKind, wait: Option<u64>) -> AgentErrorKind {
    if let AgentErrorKind::RateLimited { seconds } = &mut kind {
        *seconds = wait;
    }
    kind
}

/// Phrases, grouped by the kind of error. Earlier groups take precedence.
pub type Phrases = [(AgentErrorKind, &'static [&'static str])];

/// The kind of error of the first phrase that occurs in a text.
pub fn kind_of_phrase(text: &str, phrases: &Phrases) -> Option<AgentErrorKind> {
    phrases.iter().find(|(_, group)| group.iter().any(|phrase| text.contains(phrase))).map(|(kind, _)| *kind)
}

/// The error in the first line of stderr that contains one of these phrases.
pub fn error_by_line(stderr: &str, phrases: &Phrases) -> Option<AgentError> {
    let phrases = phrases.iter().flat_map(|(kind, group)| group.iter().map(move |phrase| (kind, phrase)));
    phrases.into_iter().find_map(|(kind, phrase)| {
        let line = stderr.lines().find(|line| line.contains(phrase))?;
        Some(AgentError::new(*kind, line))
    })
}

/// Phrases that are more specific than the status, or come without one.
const ACCOUNT_PHRASES: [(AgentErrorKind, &[&str]); 2] = [
    (
        AgentErrorKind::NotLoggedIn,
        &["api key not valid", "api_key_invalid", "missing api key", "invalid api key", "unauthenticated"],
    ),
    (AgentErrorKind::OutOfCredit, &["insufficient_quota", "insufficient balance"]),
];

/// Like `ACCOUNT_PHRASES`, but after the mention of billing.
const REQUEST_PHRASES: [(AgentErrorKind, &[&str]); 5] = [
    (
        AgentErrorKind::PromptTooLong,
        &["maximum context length", "maximum number of tokens", "context is too large", "too long"],
    ),
    (
        AgentErrorKind::RateLimited { seconds: None },
        &["rate limit", "too many requests", "exceeded your current quota", "quota exceeded", "resource_exhausted"],
    ),
    (AgentErrorKind::Overloaded, &["overloaded", "\"unavailable\""]),
    (AgentErrorKind::ModelUnavailable, &["model not found", "model_not_found", "is not found for api version"]),
    (
        AgentErrorKind::InvalidResponse,
        &[
            "terminated",
            "fetch failed",
            "unexpected token",
            "in json at position",
            "is not valid json",
            "socket hang up",
            "econnreset",
            "und_err",
        ],
    ),
];

fn kind_by_phrase(text: &str) -> Option<AgentErrorKind> {
    // Google mentions billing even for a limit that resets within a minute.
    let temporary = ["resource_exhausted", "quota exceeded for metric"];
    let is_temporary = || temporary.iter().any(|phrase| text.contains(phrase)) || retry_delay(text).is_some();
    let billing = || (text.contains("billing") && !is_temporary()).then_some(AgentErrorKind::OutOfCredit);
    kind_of_phrase(text, &ACCOUNT_PHRASES).or_else(billing).or_else(|| kind_of_phrase(text, &REQUEST_PHRASES))
}

/// The HTTP status: `"code":503`, a leading `503 …`, or from the exit code.
fn http_status(text: &str, code: Option<i32>) -> Option<u16> {
    let after_code = text.split_once("\"code\":").map(|(_, rest)| rest);
    let first = text.split_once("[api error: ").map(|(_, rest)| rest);
    let number = |text: &str| text.trim_start().get(..3)?.parse().ok();
    let parsed = after_code.and_then(number).or_else(|| first.and_then(number));
    // Exit codes for signals are lower.
    parsed.or_else(|| code.filter(|code| (144..256).contains(code)).map(|code| code as u16 + 256))
}

/// The longest delay in the text: `retry after 4s`, `retry in 1h30m`.
fn retry_delay(text: &str) -> Option<Duration> {
    text.lines().filter_map(rate_limit::parse_retry_after).max()
}

fn rounded_up(delay: Duration) -> u64 {
    delay.as_secs() + u64::from(delay.subsec_nanos() > 0)
}

/// Lower-case phrases with their meaning. Providers send some of them with a less specific status.
const PHRASES: [(AgentErrorKind, &[&str]); 6] = [
    (AgentErrorKind::OutOfCredit, &["insufficient_quota", "insufficient balance", "credit balance"]),
    (
        AgentErrorKind::PromptTooLong,
        &["context_length_exceeded", "maximum context length", "context window", "prompt is too long", "prompt budget"],
    ),
    (
        AgentErrorKind::NotLoggedIn,
        &[
            "invalid api key",
            "invalid_api_key",
            "incorrect api key",
            "api key is missing",
            "authentication required",
            "no authentication information",
        ],
    ),
    (AgentErrorKind::ModelUnavailable, &["model_not_found", "model not found"]),
    (AgentErrorKind::Overloaded, &["overloaded"]),
    (AgentErrorKind::InvalidResponse, &["json parsing failed", "connection was closed unexpectedly"]),
];

/// Classifies an error. `seconds` is the wait the provider asked for outside of the text.
pub fn classify(status: Option<u16>, text: &str, seconds: Option<u64>) -> AgentErrorKind {
    let text = text.to_lowercase();
    let wait = rate_limit_wait(&text);
    let kind = kind_of_phrase(&text, &PHRASES).or_else(|| match status {
        Some(status) => kind_by_status(status),
        None => wait.map(|_| AgentErrorKind::RateLimited { seconds: None }),
    });
    with_wait(kind.unwrap_or(AgentErrorKind::Other), seconds.or(wait.flatten()))
}

/// The wait in the text, if the text is about a rate limit.
fn rate_limit_wait(text: &str) -> Option<Option<u64>> {
    let refused = rate_limit::detect(&ExitOutput { code: 1, stdout: b"", stderr: text.as_bytes() })?;
    Some(refused.retry_after.map(|delay| delay.as_secs()))
}

/// Maximum number of lines of an error.
const MAX_LINES: usize = 3;

/// The last line that looks like an error, with the lines that follow it, or else the last line. Skips lines
/// about the location in the program.
pub fn find_error(text: &str) -> Option<String> {
    const ERRORS: [&str; 5] = ["Error:", "error: ", "ERROR", "fatal: ", "panicked at "];
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let messages: Vec<&str> = lines.iter().copied().filter(|line| !is_location(line)).collect();
    let is_error = |line: &&str| ERRORS.iter().any(|word| line.contains(word));
    match messages.iter().rposition(is_error) {
        Some(at) => {
            Some(messages[at..].iter().take(MAX_LINES).map(|line| strip_brace(line)).collect::<Vec<_>>().join(" "))
        }
        None => messages.last().or(lines.last()).map(|line| (*line).to_owned()),
    }
}

/// Removes the opening brace of a printed error object.
fn strip_brace(line: &str) -> &str {
    line.strip_suffix(" {").unwrap_or(line)
}

/// Whether a line is a stack frame, a bracket, a caret, a member of an object, or a runtime's version.
fn is_location(line: &str) -> bool {
    let has_words = line.contains(|letter: char| letter.is_alphanumeric());
    let version = line.strip_prefix("Node.js v").or_else(|| line.strip_prefix("Bun v"));
    let is_version = version.is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()));
    let is_stack = ["at ", "- /", "Require stack:"].iter().any(|start| line.starts_with(start));
    !has_words || is_stack || is_version || is_member(line)
}

/// Whether a line is a member of an object, such as `errno: -13,`.
fn is_member(line: &str) -> bool {
    let Some((name, value)) = line.split_once(": ") else { return false };
    let is_name = name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    let is_number = value.trim_end_matches(',').parse::<f64>().is_ok();
    is_name && (value.ends_with(',') || value.starts_with(['\'', '[', '{']) || is_number)
}

/// Stderr, or if it is empty the lines of stdout that are not JSON, because some programs print errors there.
/// `is_complete` says whether `stdout` is complete; otherwise its first line is a partial one.
pub fn error_output(stderr: Vec<u8>, stdout: &[u8], is_complete: bool) -> Vec<u8> {
    if !stderr.trim_ascii().is_empty() {
        return stderr;
    }
    let lines = stdout.split(|byte| *byte == b'\n').skip(usize::from(!is_complete));
    let plain = lines.filter(|line| !matches!(line.trim_ascii_start().first(), Some(b'{' | b'[') | None));
    plain.collect::<Vec<_>>().join(&b'\n')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Gemini CLI's message for Google's per-minute limit.
    const GOOGLE: &str = "[API Error: You exceeded your current quota, please check your plan and billing details. For \
    more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits.\n* Quota exceeded \
    for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 10, model: \
    gemini-2.5-pro\nPlease retry in 3.2s.\nSuggested retry after 3s.]\nPlease wait and try again later.";

    #[test]
    fn errors_are_classified_by_text_and_status() {
        use AgentErrorKind::*;
        for (text, code, meant) in [
            ("[API Error: {\"error\":{\"code\":500,\"message\":\"x\"}}]", None, Overloaded),
            ("[API Error: {\"error\":{\"code\":400,\"message\":\"x\"}}]", None, Other),
            ("[API Error: {\"error\":{\"code\":401,\"message\":\"x\"}}]", None, NotLoggedIn),
            ("[API Error: {\"error\":{\"code\": 403}}]", None, NotLoggedIn),
            ("[API Error: 401 no]", None, NotLoggedIn),
            ("[API Error: no]", Some(173), RateLimited { seconds: None }),
            ("[API Error: no]", Some(247), Overloaded),
            ("[API Error: no]", Some(148), ModelUnavailable),
            ("[API Error: no]", Some(143), Other),
            ("[API Error: 429 slow down, retry in 3.2s]", Some(1), RateLimited { seconds: Some(4) }),
            ("[API Error: Rate limit. Suggested retry after 800ms.]", Some(1), RateLimited { seconds: Some(1) }),
            (GOOGLE, Some(1), RateLimited { seconds: Some(4) }),
            (
                "[API Error: {\"error\":{\"code\":429,\"message\":\"You exceeded your current quota, please check your plan and billing details.\",\"status\":\"RESOURCE_EXHAUSTED\"}}]",
                Some(1),
                RateLimited { seconds: None },
            ),
            (
                "[API Error: 429 You exceeded your current quota, please check your plan and billing details.]",
                Some(1),
                OutOfCredit,
            ),
            ("[API Error: 429 insufficient_quota, retry in 3s]", Some(1), OutOfCredit),
            ("[API Error: 429 Too Many Requests, retry in 5m]", Some(1), RateLimited { seconds: Some(300) }),
            ("[API Error: 429 Too Many Requests, retry in 1h30m]", Some(1), RateLimited { seconds: Some(5400) }),
            ("[API Error: 429 Too Many Requests, retry in 500ms]", Some(1), RateLimited { seconds: Some(1) }),
            ("[API Error: API key not valid. Please pass a valid API key.]", Some(144), NotLoggedIn),
            ("[API Error: models/x is not found for API version v1beta]", Some(1), ModelUnavailable),
            ("[API Error: terminated]", Some(1), InvalidResponse),
            ("[API Error: Expected ',' or '}' after property value in JSON at position 67]", Some(1), InvalidResponse),
            ("no idea", Some(1), Other),
            ("", None, Other),
        ] {
            assert_eq!(error_kind(text, code), meant, "{text} {code:?}");
        }
    }

    #[test]
    fn the_providers_message_is_extracted() {
        for (text, expected) in [
            ("[API Error: {\"error\":{\"code\":500,\"message\":\"no \\\"luck\\\"\"}}]", "no \"luck\""),
            ("[API Error: Slow down.\nSuggested retry after 4s.]\nPlease wait.", "Slow down."),
            ("[API Error: 401 no]", "401 no"),
            ("[API Error: ", ""),
            ("[API Error: no such place: a[0]]\nSee [there].", "no such place: a[0]"),
            ("as in [1]", "as in [1]"),
            ("plain words", "plain words"),
        ] {
            assert_eq!(parse_error(text, None).message, expected);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_classified(text in ".*", code: Option<i32>) {
            parse_error(&text, code);
        }
    }

    #[test]
    fn the_line_with_the_error_is_found() {
        for (text, expected) in [
            (
                "Failed to extract bundled package: Error: EACCES: permission denied, mkdir '~/.cache'\n    \
             at async mkdir (node:internal/fs/promises:852:10)\n    at async ph (index.js:9:1) {\n  errno: -13,\n  \
             code: 'EACCES',\n  syscall: 'mkdir',\n  path: '~/.cache'\n}\n",
                "Failed to extract bundled package: Error: EACCES: permission denied, mkdir '~/.cache'",
            ),
            (
                "file:///opt/agent/cli.js:27\nimport x from \"y\" with { type: \"json\" };\n                   ^^^^\n\n\
             SyntaxError: Unexpected token 'with'\n    at ESMLoader.moduleStrategy (node:internal/x:119:18)\n\n\
             Node.js v18.19.1\n",
                "SyntaxError: Unexpected token 'with'",
            ),
            (
                "node:internal/modules/cjs/loader:1143\n  throw err;\n  ^\n\nError: Cannot find module 'undici'\n\
             Require stack:\n- /opt/agent/cli.js\n    at Module._load (node:internal/modules/cjs/loader:1)  {\n  \
             code: 'MODULE_NOT_FOUND',\n  requireStack: [ '/opt/agent/cli.js' ]\n}\n\nNode.js v24.21.0\n",
                "Error: Cannot find module 'undici'",
            ),
            ("TypeError: fetch failed {\n  cause: 1\n}\n", "TypeError: fetch failed"),
            ("Starting\nfatal: not a repository\n", "fatal: not a repository"),
            ("error: unknown option '--x'\n(Did you mean --y?)\n", "error: unknown option '--x' (Did you mean --y?)"),
            (
                "Error: Invalid configuration:\n\n  no such file: nope.json\n",
                "Error: Invalid configuration: no such file: nope.json",
            ),
            ("One\nTwo\n", "Two"),
            ("env: 'node': No such file or directory\n", "env: 'node': No such file or directory"),
            ("No saved session found with ID x\n}\n", "No saved session found with ID x"),
            ("  }\n", "}"),
        ] {
            assert_eq!(find_error(text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(find_error(" \n\n"), None);
    }

    #[test]
    fn without_stderr_the_error_is_read_from_stdout() {
        let output = |stderr: &str, stdout: &str, is_complete| {
            String::from_utf8(error_output(stderr.into(), stdout.as_bytes(), is_complete)).unwrap()
        };
        assert_eq!(output("no\n", "yes\n", true), "no\n");
        assert_eq!(output(" \n", "{\"type\":\"x\"}\nPlease log in.\n  {\"cut\":", true), "Please log in.");
        assert_eq!(output("", "rest\"}\nPlease log in.\n", false), "Please log in.");
        assert_eq!(output("", "", true), "");
    }

    proptest! {
        #[test]
        fn any_text(text in ".*", stdout: Vec<u8>, is_complete: bool) {
            prop_assert_eq!(find_error(&text).is_none(), text.trim().is_empty());
            error_output(Vec::new(), &stdout, is_complete);
        }
    }
}
