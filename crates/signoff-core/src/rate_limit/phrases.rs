//! Phrases by which rate limit messages are recognized.

use std::time::Duration;

use crate::agent_output::AgentErrorKind;

/// Phrases that occur only in rate limit messages.
const UNAMBIGUOUS: [&str; 14] = [
    "too many requests",
    "rate_limit_error",
    "ratelimiterror",
    "overloaded_error",
    "resource_exhausted",
    "insufficient_quota",
    "usage limit reached",
    "reached your usage limit",
    "hit your usage limit",
    "exceeded your current quota",
    "quota exceeded",
    "quota has been exceeded",
    "rate limit exceeded",
    "rate limit reached",
];

/// Topics that tasks may also be about, and phrases that make them a rate limit message.
const TOPICS: [&str; 5] = ["rate limit", "rate-limit", "rate_limit", "ratelimit", "overloaded"];
const REFUSING: [&str; 9] = [
    "retry after",
    "retry-after",
    "retry in",
    "try again",
    "you have hit",
    "you've hit",
    "you are being",
    "currently overloaded",
    "server is overloaded",
];

/// Words in lines about code: tests, findings, plans.
const ABOUT_CODE: [&str; 13] = [
    "test",
    "assert",
    "expected",
    "implement",
    "missing",
    "should",
    "todo",
    "verdict",
    "finding",
    "::",
    "`",
    "function",
    "unhandled",
];

/// HTTP status codes that mean "try again later".
const STATUS: [&str; 3] = ["429", "529", "503"];
const STATUS_CONTEXT: [&str; 5] = ["http", "status", "api error", "too many requests", "service unavailable"];

/// Whether a line in lower case is a rate limit message.
pub fn is_rate_limit(line: &str) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
    if has(&ABOUT_CODE) {
        return false;
    }
    has(&UNAMBIGUOUS) || (has(&TOPICS) && has(&REFUSING)) || (has_status_code(line) && has(&STATUS_CONTEXT))
}

/// The kind of error: an overloaded provider, or a rate limit of this account.
pub fn error_kind(line: &str, retry_after: Option<Duration>) -> AgentErrorKind {
    let overloaded = ["overloaded", "529", "503", "service unavailable"].iter().any(|word| line.contains(word));
    if overloaded {
        AgentErrorKind::Overloaded
    } else {
        AgentErrorKind::Limited { seconds: retry_after.map(|delay| delay.as_secs()) }
    }
}

/// Whether the line contains such a status code as a separate number.
fn has_status_code(line: &str) -> bool {
    line.split(|char: char| !char.is_ascii_alphanumeric() && char != '.').any(|word| STATUS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::super::{ExitOutput, detect};

    /// Rate limit messages of providers, clients and agents.
    const REFUSALS: [&str; 24] = [
        "API Error: 429 {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"…\"}}",
        "API Error: 529 {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}",
        "Error: 429 Too Many Requests",
        "HTTP 429",
        "HTTP/1.1 503 Service Unavailable",
        "http status: 529",
        "exceeded retry limit, last status: 429 Too Many Requests",
        "stream error: 503 Service Unavailable; giving up",
        "Claude AI usage limit reached|1763240400",
        "You've hit your usage limit. Upgrade to Pro or try again in 3 days.",
        "You have reached your usage limit for this week.",
        "Rate limit reached for gpt-5 on tokens per min. Limit 30000, used 29000. Please try again in 6.2s.",
        "error: rate limit exceeded, retry after 20 s",
        "You exceeded your current quota, please check your plan and billing details.",
        "Quota exceeded for quota metric 'Generate Content API requests per minute'",
        "{\"error\":{\"code\":429,\"status\":\"RESOURCE_EXHAUSTED\"}}",
        "{\"error\":{\"code\":\"insufficient_quota\"}}",
        "openai.RateLimitError: Error code: 429",
        "The model is overloaded. Please try again later.",
        "The engine is currently overloaded, please try again later",
        "We're rate limited, retry in 30 seconds",
        "429 Too Many Requests\nRetry-After: 30",
        "request failed with status code 503",
        "You are being rate limited.",
    ];

    /// Messages of agents that failed for other reasons.
    const FAILURES: [&str; 22] = [
        "",
        "error: could not compile `app`",
        "I could not add rate limiting to the login: the middleware is gone.",
        "missing rate limit on POST /login",
        "FAILED tests/test_api.py::test_rate_limit_exceeded - assert 200 == 429",
        "the test expects HTTP 429 Too Many Requests, got 200",
        "src/limit.rs:429: error: mismatched types",
        "line 503 is too long",
        "429 files changed",
        "took 529 ms",
        "version 4.29.503",
        "Should return status 503 when the queue is full",
        "The function `retry_after` is missing",
        "overloaded operator+ is ambiguous",
        "error: overloaded method has no match",
        "disk quota of the user is unknown",
        "I reached my limit of turns",
        "max turns reached",
        "context window limit reached",
        "Verdict: the API answers too many requests with 200",
        "rate limit: 5 per minute",
        "unhandled status 503",
    ];

    fn is_detected(line: &str) -> bool {
        let on_stderr = ExitOutput { code: 1, stdout: b"", stderr: line.as_bytes() };
        let on_stdout = ExitOutput { code: 1, stdout: line.as_bytes(), stderr: b"" };
        let both = (detect(&on_stderr).is_some(), detect(&on_stdout).is_some());
        assert_eq!(both.0, both.1, "{line}");
        both.0
    }

    #[test]
    fn refusals_are_recognised() {
        let missed: Vec<_> = REFUSALS.into_iter().filter(|line| !is_detected(line)).collect();
        assert!(missed.is_empty(), "{missed:#?}");
    }

    #[test]
    fn other_failures_are_not() {
        let taken: Vec<_> = FAILURES.into_iter().filter(|line| is_detected(line)).collect();
        assert!(taken.is_empty(), "{taken:#?}");
    }

    #[test]
    fn success_is_never_a_rate_limit() {
        for line in REFUSALS {
            assert_eq!(detect(&ExitOutput { code: 0, stdout: line.as_bytes(), stderr: line.as_bytes() }), None);
        }
    }

    #[test]
    fn only_the_last_lines_count() {
        let text = format!("HTTP 429\n{}", "went on\n".repeat(8));
        assert_eq!(detect(&ExitOutput { code: 1, stdout: b"", stderr: text.as_bytes() }), None);
    }

    #[test]
    fn one_exit_code_needs_no_words() {
        assert!(detect(&ExitOutput { code: 75, stdout: b"", stderr: b"" }).is_some());
    }
}
