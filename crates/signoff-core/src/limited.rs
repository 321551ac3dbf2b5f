//! Whether an agent ended because its provider refused it for now, and how long to wait before asking again.
//!
//! Taking a failure for a refusal makes a loop wait for nothing; taking a refusal for a failure costs an attempt. Both
//! are bounded, so a doubt is a failure: only what nobody would write about anything else is recognised.

pub mod delay;
mod words;

use std::time::Duration;

use jiff::Timestamp;

use crate::heard::Trouble;
use crate::policy::Span;

/// The exit code with which a program says "later": `EX_TEMPFAIL` of `sysexits.h`.
pub const TRY_LATER: i32 = 75;

/// How an agent ended: with which code, and the last it wrote.
#[derive(Debug, Clone, Copy)]
pub struct Ended<'a> {
    pub code: i32,
    pub stdout: &'a [u8],
    pub stderr: &'a [u8],
}

/// A provider's refusal, and how long it said to wait.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Refused {
    pub told: Option<Duration>,
    /// Why, in the agent's own words, where it has any.
    pub why: Option<Trouble>,
}

impl Refused {
    /// What an agent says itself; none where waiting does not help.
    pub fn of(trouble: Trouble) -> Result<Self, Trouble> {
        match trouble.wait() {
            Some(told) => Ok(Self { told, why: Some(trouble) }),
            None => Err(trouble),
        }
    }
}

/// Only so many lines at the end are looked at: a refusal is the last that an agent says.
const LINES: usize = 8;

/// Longer lines are not messages for people.
const LONGEST: usize = 600;

/// What any program's end says: its exit code, or unmistakable words in its last lines.
pub fn recognise(ended: &Ended<'_>) -> Option<Refused> {
    if ended.code == 0 {
        return None;
    }
    let lines: Vec<String> = [ended.stderr, ended.stdout].into_iter().flat_map(last_lines).collect();
    let small = |line: &String| line.to_lowercase();
    let said = lines.iter().find(|line| words::refuses(&small(line)));
    let told = lines.iter().filter_map(|line| delay::told(&small(line))).max();
    let why = said.map(|line| Trouble::new(words::kind(&small(line), told), line.trim()));
    (ended.code == TRY_LATER || why.is_some()).then_some(Refused { told, why })
}

fn last_lines(text: &[u8]) -> Vec<String> {
    let text = &text[text.len().saturating_sub(LINES * LONGEST)..];
    let text = String::from_utf8_lossy(text);
    let said = text.lines().rev().filter(|line| !line.trim().is_empty());
    said.take(LINES).filter(|line| line.len() <= LONGEST).map(str::to_owned).collect()
}

/// How waits grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The first wait.
    pub first: Span,
    /// No wait is longer, unless the provider says so.
    pub most: Span,
}

/// Nobody is believed who wants a longer wait.
pub const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

impl Backoff {
    /// The end of a wait after so many others. `chance` is any number: it spreads those apart who were refused together.
    pub fn until(&self, now: Timestamp, waits: u32, told: Option<Duration>, chance: u32) -> Timestamp {
        let wait = self.wait(waits, told, chance);
        now.checked_add(wait).unwrap_or(Timestamp::MAX)
    }

    /// Twice as long each time, between half and the whole of it by chance; never shorter than was told.
    pub fn wait(&self, waits: u32, told: Option<Duration>, chance: u32) -> Duration {
        let (first, most) = (Duration::from_secs(self.first.seconds), Duration::from_secs(self.most.seconds));
        let grown = first.saturating_mul(1_u32.checked_shl(waits.min(31)).unwrap_or(u32::MAX)).min(most);
        let guess = grown / 2 + share(grown - grown / 2, chance);
        // Those who are told the same must not all come back at once either.
        let told = told.map(|told| told.min(LONGEST_WAIT).saturating_add(share(first.min(most), chance)));
        told.map_or(guess, |told| told.max(guess)).min(LONGEST_WAIT.saturating_add(first))
    }
}

/// The share of a length that a number is of all numbers.
fn share(whole: Duration, chance: u32) -> Duration {
    let millis = u64::try_from(whole.as_millis()).unwrap_or(u64::MAX);
    let part = u128::from(millis) * u128::from(chance) / u128::from(u32::MAX);
    Duration::from_millis(u64::try_from(part).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const USUAL: Backoff = Backoff { first: Span { seconds: 30 }, most: Span { seconds: 900 } };

    #[test]
    fn waits_grow_to_the_longest() {
        let waits: Vec<u64> = (0..7).map(|waits| USUAL.wait(waits, None, u32::MAX).as_secs()).collect();
        assert_eq!(waits, [30, 60, 120, 240, 480, 900, 900]);
        assert_eq!(USUAL.wait(0, None, 0), Duration::from_secs(15));
    }

    #[test]
    fn what_is_told_is_waited_for_even_if_it_is_long() {
        let hour = Duration::from_secs(3600);
        assert_eq!(USUAL.wait(0, Some(hour), 0), hour);
        assert_eq!(USUAL.wait(5, Some(Duration::from_secs(1)), u32::MAX), Duration::from_secs(900));
        assert!(USUAL.wait(0, Some(Duration::MAX), 7) <= LONGEST_WAIT + Duration::from_secs(30));
    }

    #[test]
    fn no_backoff_is_no_wait() {
        let none = Backoff { first: Span { seconds: 0 }, most: Span { seconds: 900 } };
        assert_eq!(none.wait(9, None, u32::MAX), Duration::ZERO);
    }

    proptest! {
        /// Whatever is told and however often: at least what was told, at least half of the growth, and bounded.
        #[test]
        fn waits_are_bounded(waits in 0u32..100, told in prop::option::of(0u64..100_000), chance: u32) {
            let told = told.map(Duration::from_secs);
            let wait = USUAL.wait(waits, told, chance);
            prop_assert!(wait >= told.unwrap_or_default().min(LONGEST_WAIT));
            prop_assert!(wait >= Duration::from_secs(15));
            prop_assert!(wait <= told.unwrap_or_default().max(Duration::from_secs(900)) + Duration::from_secs(30));
        }

        #[test]
        fn any_bytes_are_looked_at(stdout: Vec<u8>, stderr in ".*", code in 0i32..256) {
            recognise(&Ended { code, stdout: &stdout, stderr: stderr.as_bytes() });
        }
    }
}
