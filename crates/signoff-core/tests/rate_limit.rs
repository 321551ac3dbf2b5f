//! Rate limits: messages that report one, the delays that they state, and the backoff.

use std::time::Duration;

use proptest::prelude::*;
use signoff_core::policy::TimeSpan;
use signoff_core::rate_limit::{Backoff, ExitOutput, MAX_WAIT, detect, parse_retry_after};

const USUAL: Backoff = Backoff { first: TimeSpan { seconds: 30 }, max: TimeSpan { seconds: 900 } };

#[test]
fn waits_grow_to_the_longest() {
    let waits: Vec<u64> = (0..7).map(|waits| USUAL.wait(waits, None, u32::MAX).as_secs()).collect();
    assert_eq!(waits, [30, 60, 120, 240, 480, 900, 900]);
    assert_eq!(USUAL.wait(0, None, 0), Duration::from_secs(15));
}

#[test]
fn a_stated_delay_is_honoured_even_if_it_is_long() {
    let hour = Duration::from_secs(3600);
    assert_eq!(USUAL.wait(0, Some(hour), 0), hour);
    assert_eq!(USUAL.wait(5, Some(Duration::from_secs(1)), u32::MAX), Duration::from_secs(900));
    assert!(USUAL.wait(0, Some(Duration::MAX), 7) <= MAX_WAIT + Duration::from_secs(30));
}

#[test]
fn no_backoff_is_no_wait() {
    let none = Backoff { first: TimeSpan { seconds: 0 }, max: TimeSpan { seconds: 900 } };
    assert_eq!(none.wait(9, None, u32::MAX), Duration::ZERO);
}

proptest! {
    /// The delay is at least the stated one and at least half of the backoff, and it is bounded.
    #[test]
    fn waits_are_bounded(waits in 0u32..100, stated in prop::option::of(0u64..100_000), chance: u32) {
        let stated = stated.map(Duration::from_secs);
        let wait = USUAL.wait(waits, stated, chance);
        prop_assert!(wait >= stated.unwrap_or_default().min(MAX_WAIT));
        prop_assert!(wait >= Duration::from_secs(15));
        prop_assert!(wait <= stated.unwrap_or_default().max(Duration::from_secs(900)) + Duration::from_secs(30));
    }

    #[test]
    fn any_output_can_be_examined(stdout: Vec<u8>, stderr in ".*", code in 0i32..256) {
        detect(&ExitOutput { code, stdout: &stdout, stderr: stderr.as_bytes() });
    }
}

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

#[test]
fn lengths_are_read_as_people_and_servers_write_them() {
    let seconds = |line: &str| parse_retry_after(&line.to_lowercase()).map(|wait| wait.as_secs_f64());
    for (line, wait) in [
        ("Retry-After: 30", 30.0),
        ("retry after 20 s", 20.0),
        ("Please try again in 6m0s.", 360.0),
        ("try again in 1h2m3s", 3723.0),
        ("try again in 6.2s. Visit", 6.2),
        ("please try again in 320ms", 0.32),
        ("retry in 2 minutes", 120.0),
        ("\"retryDelay\": \"34s\"", 34.0),
        ("{\"retry_after\": 7}", 7.0),
        ("try again in 3 days", 259_200.0),
    ] {
        assert_eq!(seconds(line), Some(wait), "{line}");
    }
    for line in ["try again in a while", "retry after lunch", "Retry-After: Wed, 21 Oct 2026", "wait 30 s", ""] {
        assert_eq!(seconds(line), None, "{line}");
    }
}

#[test]
fn absurd_lengths_are_none() {
    assert_eq!(parse_retry_after(&format!("retry after {}", "9".repeat(400))), None);
}
