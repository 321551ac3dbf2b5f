//! Detects whether an agent ended because of a rate limit, and computes the delay before the next try.
//!
//! A failure taken for a rate limit delays a loop needlessly; a rate limit taken for a failure costs an attempt. Both
//! are bounded, so unclear cases count as failures: only unambiguous phrases are recognized.

pub mod delay;
mod phrases;

use std::time::Duration;

use jiff::Timestamp;

use crate::agent_output::AgentError;
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
    pub why: Option<AgentError>,
}

impl RateLimited {
    /// Converts an agent error to a rate limit, or returns it if waiting does not help.
    pub fn from_error(trouble: AgentError) -> Result<Self, AgentError> {
        match trouble.retry_after() {
            Some(told) => Ok(Self { retry_after: told, why: Some(trouble) }),
            None => Err(trouble),
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
    let said = lines.iter().find(|line| phrases::is_rate_limit(&small(line)));
    let retry_after = lines.iter().filter_map(|line| delay::parse_retry_after(&small(line))).max();
    let why = said.map(|line| AgentError::new(phrases::error_kind(&small(line), retry_after), line.trim()));
    (exit.code == TRY_LATER || why.is_some()).then_some(RateLimited { retry_after, why })
}

fn last_lines(text: &[u8]) -> Vec<String> {
    let text = &text[text.len().saturating_sub(MAX_LINES * MAX_LINE_BYTES)..];
    let text = String::from_utf8_lossy(text);
    let said = text.lines().rev().filter(|line| !line.trim().is_empty());
    said.take(MAX_LINES).filter(|line| line.len() <= MAX_LINE_BYTES).map(str::to_owned).collect()
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
        let retry_after = retry_after.map(|told| told.min(MAX_WAIT).saturating_add(fraction(first.min(most), jitter)));
        retry_after.map_or(guess, |stated| stated.max(guess)).min(MAX_WAIT.saturating_add(first))
    }
}

/// Scales a duration by `jitter / u32::MAX`.
fn fraction(whole: Duration, jitter: u32) -> Duration {
    let millis = u64::try_from(whole.as_millis()).unwrap_or(u64::MAX);
    let part = u128::from(millis) * u128::from(jitter) / u128::from(u32::MAX);
    Duration::from_millis(u64::try_from(part).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
}
