//! Detects whether an agent ended because of a rate limit, and computes the delay before the next try.
//!
//! A failure taken for a rate limit delays a loop needlessly; a rate limit taken for a failure costs an attempt. Both
//! are bounded, so unclear cases count as failures: only unambiguous phrases are recognized.

use std::time::Duration;

use jiff::Timestamp;

use crate::agent_output::{AgentError, AgentErrorKind};
use crate::policy::TimeSpan;

/// The exit code that means "try again later": `EX_TEMPFAIL` of `sysexits.h`.
pub const TRY_LATER: i32 = 75;

/// How an agent's process ended: its exit code and the end of its output.
#[derive(Debug, Clone, Copy)]
pub struct ExitOutput<'a> {
    pub code: i32,
    pub stdout: &'a [u8],
    pub stderr: &'a [u8],
}

/// A rate limit reported by a provider, and the delay it asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RateLimited {
    pub retry_after: Option<Duration>,
    /// The agent's own error message, if there is one.
    pub error: Option<AgentError>,
}

impl RateLimited {
    /// Converts an agent error to a rate limit, or returns it if waiting does not help.
    pub fn from_error(error: AgentError) -> Result<Self, AgentError> {
        match error.retry_after() {
            Some(delay) => Ok(Self { retry_after: delay, error: Some(error) }),
            None => Err(error),
        }
    }
}

/// Maximum number of lines searched at the end of each stream. A rate limit is the last thing an agent prints.
const MAX_LINES: usize = 8;

/// Lines longer than this, in bytes, are not messages for people.
const MAX_LINE_BYTES: usize = 600;

/// Detects a rate limit from the exit code, or from unambiguous phrases in the last lines of output.
pub fn detect(exit: &ExitOutput<'_>) -> Option<RateLimited> {
    if exit.code == 0 {
        return None;
    }
    let lines: Vec<String> = [exit.stderr, exit.stdout].into_iter().flat_map(last_lines).collect();
    let small = |line: &String| line.to_lowercase();
    let limit_line = lines.iter().find(|line| is_rate_limit(&small(line)));
    let retry_after = lines.iter().filter_map(|line| parse_retry_after(&small(line))).max();
    let error = limit_line.map(|line| AgentError::new(error_kind(&small(line), retry_after), line.trim()));
    (exit.code == TRY_LATER || error.is_some()).then_some(RateLimited { retry_after, error })
}

fn last_lines(text: &[u8]) -> Vec<String> {
    let text = &text[text.len().saturating_sub(MAX_LINES * MAX_LINE_BYTES)..];
    let text = String::from_utf8_lossy(text);
    let lines = text.lines().rev().filter(|line| !line.trim().is_empty());
    lines.take(MAX_LINES).filter(|line| line.len() <= MAX_LINE_BYTES).map(str::to_owned).collect()
}

/// Phrases that occur only in rate limit messages. Here and below, `|` is between two phrases.
const UNAMBIGUOUS: &str = "too many requests|rate_limit_error|ratelimiterror|overloaded_error|resource_exhausted|\
    insufficient_quota|usage limit reached|reached your usage limit|hit your usage limit|exceeded your current quota|\
    quota exceeded|quota has been exceeded|rate limit exceeded|rate limit reached";

/// Topics that tasks may also be about, and phrases that make them a rate limit message.
const TOPICS: &str = "rate limit|rate-limit|rate_limit|ratelimit|overloaded";
const REFUSING: &str = "retry after|retry-after|retry in|try again|you have hit|you've hit|you are being|\
    currently overloaded|server is overloaded";

/// Words in lines about code: tests, findings, plans.
const ABOUT_CODE: &str = "test|assert|expected|implement|missing|should|todo|verdict|finding|::|`|function|unhandled";

/// HTTP status codes that mean "try again later".
const STATUS: [&str; 3] = ["429", "529", "503"];
const STATUS_CONTEXT: &str = "http|status|api error|too many requests|service unavailable";

const OVERLOADED: &str = "overloaded|529|503|service unavailable";

/// Whether a line in lower case contains one of the phrases.
fn has(line: &str, phrases: &str) -> bool {
    phrases.split('|').any(|phrase| line.contains(phrase))
}

/// Whether a line in lower case is a rate limit message.
fn is_rate_limit(line: &str) -> bool {
    let is_refused = has(line, TOPICS) && has(line, REFUSING);
    let has_status = has_status_code(line) && has(line, STATUS_CONTEXT);
    !has(line, ABOUT_CODE) && (has(line, UNAMBIGUOUS) || is_refused || has_status)
}

/// The kind of error: an overloaded provider, or a rate limit of this account.
fn error_kind(line: &str, retry_after: Option<Duration>) -> AgentErrorKind {
    if has(line, OVERLOADED) {
        return AgentErrorKind::Overloaded;
    }
    AgentErrorKind::RateLimited { seconds: retry_after.map(|delay| delay.as_secs()) }
}

/// Whether the line contains such a status code as a separate number.
fn has_status_code(line: &str) -> bool {
    line.split(|char: char| !char.is_ascii_alphanumeric() && char != '.').any(|word| STATUS.contains(&word))
}

/// Phrases that precede a delay.
const PREFIXES: [&str; 6] = ["retry-after", "retry after", "retry_after", "retry in", "try again in", "\"retrydelay\""];

/// Parses the delay from a line in lower case.
pub fn parse_retry_after(line: &str) -> Option<Duration> {
    let behind = |lead: &str| line.find(lead).map(|at| &line[at + lead.len()..]);
    PREFIXES.into_iter().filter_map(behind).find_map(parse_duration)
}

/// Parses `30`, `: 30`, `6m0s`, `1.5 seconds`. Without a unit the number means seconds.
fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim_start_matches(|char: char| matches!(char, ':' | '"' | '=' | '_') || char.is_whitespace());
    let mut sum = None;
    while let Some((number, after)) = number(rest) {
        let (unit, behind) = unit(after);
        sum = Some(sum.unwrap_or(0.0) + number * unit);
        // `6m0s` continues; other text after a duration is not part of it.
        rest = if unit == 1.0 { "" } else { behind };
    }
    sum.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
}

/// Parses a number at the start, and returns the rest.
fn number(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(text.len());
    let number = text[..end].trim_end_matches('.').parse().ok()?;
    Some((number, &text[end..]))
}

/// Parses a unit at the start into seconds, and returns the rest.
fn unit(text: &str) -> (f64, &str) {
    let word = text.trim_start_matches(' ');
    let end = word.find(|char: char| !char.is_ascii_alphabetic()).unwrap_or(word.len());
    let seconds = match &word[..end] {
        "ms" | "milliseconds" => 0.001,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        _ => 1.0,
    };
    (seconds, &word[end..])
}

/// An exponential backoff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The first delay.
    pub first: TimeSpan,
    /// The maximum delay, unless the provider asks for a longer one.
    pub max: TimeSpan,
}

/// Maximum delay, whatever the provider asks for.
pub const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

impl Backoff {
    /// The end of the delay after `waits` earlier ones. `jitter` is any number; it spreads agents apart that were
    /// limited together.
    pub fn until(&self, now: Timestamp, waits: u32, retry_after: Option<Duration>, jitter: u32) -> Timestamp {
        let wait = self.wait(waits, retry_after, jitter);
        now.checked_add(wait).unwrap_or(Timestamp::MAX)
    }

    /// Doubles with each wait. The jitter picks a value between half and all of it. Never shorter than `retry_after`.
    pub fn wait(&self, waits: u32, retry_after: Option<Duration>, jitter: u32) -> Duration {
        let (first, most) = (Duration::from_secs(self.first.seconds), Duration::from_secs(self.max.seconds));
        let grown = first.saturating_mul(1_u32.checked_shl(waits.min(31)).unwrap_or(u32::MAX)).min(most);
        let guess = grown / 2 + fraction(grown - grown / 2, jitter);
        // Agents that got the same delay must not all retry at once either.
        let retry_after =
            retry_after.map(|delay| delay.min(MAX_WAIT).saturating_add(fraction(first.min(most), jitter)));
        retry_after.map_or(guess, |stated| stated.max(guess)).min(MAX_WAIT.saturating_add(first))
    }
}

/// Scales a duration by `jitter / u32::MAX`.
fn fraction(whole: Duration, jitter: u32) -> Duration {
    let millis = u64::try_from(whole.as_millis()).unwrap_or(u64::MAX);
    let part = u128::from(millis) * u128::from(jitter) / u128::from(u32::MAX);
    Duration::from_millis(u64::try_from(part).unwrap_or(u64::MAX))
}
