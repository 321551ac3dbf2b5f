//! The clock of a replay.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use signoff_core::wire::RecordedFact;
use signoff_term::tui::{ReplayControl, ReplayState};

/// Maximum wait between two facts if no speed is given.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// The default speed.
const DEFAULT: f64 = 10.0;

/// The highest finite speed.
const FASTEST: f64 = 10_000.0;

/// The lowest speed.
const SLOWEST: f64 = 0.1;

/// The speed as a multiple of the recorded one; infinite for `max`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speed(f64);

/// Parses `max` or a number on the command line.
pub fn speed(text: &str) -> Result<Speed, String> {
    if text == "max" {
        return Ok(Speed(f64::INFINITY));
    }
    let number: Option<f64> = text.parse().ok();
    number
        .filter(|number| (SLOWEST..=FASTEST).contains(number))
        .map(Speed)
        .ok_or_else(|| format!("`{text}` is neither `max` nor a number from {SLOWEST} to {FASTEST}"))
}

/// The position and speed of a replay.
pub struct ReplayClock {
    speed: f64,
    max_wait: Option<Duration>,
    paused: bool,
    /// The recorded time of the last shown fact; `None` before the first one.
    time: Option<Timestamp>,
    /// When `due` was last called.
    polled_at: Option<Timestamp>,
    /// In `wait`: the time still to wait. In `due`: the time that has passed since the last shown fact.
    pending: Duration,
}

impl ReplayClock {
    pub fn new(speed: Option<Speed>) -> Self {
        let longest = if speed.is_none() { Some(MAX_WAIT) } else { None };
        let speed = speed.map_or(DEFAULT, |speed| speed.0);
        Self { speed, max_wait: longest, paused: false, time: None, polled_at: None, pending: Duration::ZERO }
    }

    /// The wait between two recorded times at the current speed.
    fn gap(&self, from: Timestamp, to: Timestamp) -> Duration {
        let gap = to.duration_since(from).max(SignedDuration::ZERO).unsigned_abs();
        let gap = Duration::try_from_secs_f64(gap.as_secs_f64() / self.speed).unwrap_or_default();
        self.max_wait.map_or(gap, |longest| gap.min(longest))
    }

    /// Returns the wait before a fact recorded at `at`, including waits that were skipped.
    pub fn wait(&mut self, at: Timestamp) -> Duration {
        let last = self.time.replace(at).unwrap_or(at);
        self.pending += self.gap(last, at);
        self.pending
    }

    /// Returns the pending wait and resets it.
    pub fn take_wait(&mut self) -> Duration {
        std::mem::take(&mut self.pending)
    }

    /// Returns how many of the remaining facts are due now.
    pub fn due(&mut self, to_come: &[Arc<RecordedFact>], now: Timestamp) -> usize {
        let passed = self.polled_at.replace(now).map_or(Duration::ZERO, |at| now.duration_since(at).unsigned_abs());
        if self.paused {
            return 0;
        }
        if self.speed.is_infinite() {
            self.time = to_come.last().map(|last| last.at).or(self.time);
            return to_come.len();
        }
        self.pending += passed;
        let mut due = 0;
        for next in to_come {
            let wait = self.time.map_or(Duration::ZERO, |time| self.gap(time, next.at));
            let Some(left) = self.pending.checked_sub(wait) else { break };
            (self.pending, self.time) = (left, Some(next.at));
            due += 1;
        }
        if to_come.len() == due {
            self.pending = Duration::ZERO;
        }
        due
    }

    /// The current time of the replay, which also advances between two facts.
    pub fn time(&self) -> Option<Timestamp> {
        let on = self.pending.as_secs_f64() * if self.speed.is_finite() { self.speed } else { 0.0 };
        let time = self.time?;
        Some(time.checked_add(SignedDuration::from_secs_f64(on)).unwrap_or(time))
    }

    /// Applies a key for the speed.
    pub fn change(&mut self, control: ReplayControl) {
        match control {
            ReplayControl::Faster if self.speed * 2.0 > FASTEST => self.speed = f64::INFINITY,
            ReplayControl::Faster => self.speed *= 2.0,
            ReplayControl::Slower if self.speed.is_infinite() => self.speed = FASTEST,
            ReplayControl::Slower => self.speed = (self.speed / 2.0).max(SLOWEST),
            ReplayControl::Pause => self.paused = !self.paused,
        }
    }

    /// The speed and state to show on the screen.
    pub fn state(&self, ended: bool) -> ReplayState {
        let speed = if self.speed.is_finite() { format!("{}×", self.speed) } else { "max".to_owned() };
        ReplayState { speed, paused: self.paused, ended }
    }
}

#[cfg(test)]
mod tests {
    use signoff_core::ids::RunId;
    use signoff_core::wire::{Fact, RunFact};

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn log(seconds: &[i64]) -> Vec<Arc<RecordedFact>> {
        let fact = || Fact::Run(RunFact::Specified { name: String::new(), text: String::new() });
        let recorded = |second: &i64| Arc::new(RecordedFact { run: RunId(1), seq: 1, at: at(*second), fact: fact() });
        seconds.iter().map(recorded).collect()
    }

    /// The number of shown facts at each second.
    fn shown(clock: &mut ReplayClock, log: &[Arc<RecordedFact>], seconds: std::ops::Range<i64>) -> Vec<usize> {
        let mut shown = 0;
        let mut count_at = |second| {
            shown += clock.due(&log[shown..], at(second));
            shown
        };
        seconds.map(&mut count_at).collect()
    }

    #[test]
    fn real_time_keeps_the_recorded_duration() {
        let mut clock = ReplayClock::new(speed("1").ok());
        assert_eq!(shown(&mut clock, &log(&[10, 12, 15]), 0..7), [1, 1, 2, 2, 2, 3, 3]);
    }

    #[test]
    fn long_waits_are_shortened_by_default() {
        let mut clock = ReplayClock::new(None);
        assert_eq!(shown(&mut clock, &log(&[0, 10, 10_000]), 0..5), [1, 2, 2, 3, 3]);
    }

    #[test]
    fn the_fastest_speed_never_waits_and_a_pause_always_does() {
        let mut clock = ReplayClock::new(speed("max").ok());
        assert_eq!(shown(&mut clock, &log(&[0, 10, 10_000]), 0..1), [3]);
        let mut clock = ReplayClock::new(speed("1").ok());
        clock.change(ReplayControl::Pause);
        assert_eq!(shown(&mut clock, &log(&[0, 1]), 0..3), [0, 0, 0]);
        clock.change(ReplayControl::Pause);
        assert_eq!(shown(&mut clock, &log(&[0, 2]), 3..6), [1, 2, 2]);
    }

    #[test]
    fn speeds_are_doubled_and_halved() {
        let mut clock = ReplayClock::new(None);
        let speed_text = |clock: &ReplayClock| clock.state(false).speed;
        assert_eq!(speed_text(&clock), "10×");
        clock.change(ReplayControl::Faster);
        assert_eq!(speed_text(&clock), "20×");
        (0..20).for_each(|_| clock.change(ReplayControl::Faster));
        assert_eq!(speed_text(&clock), "max");
        (0..40).for_each(|_| clock.change(ReplayControl::Slower));
        assert_eq!(speed_text(&clock), "0.1×");
    }

    #[test]
    fn unknown_speeds_are_errors() {
        for word in ["0", "-1", "nan", "inf", "fast", "", "1e9"] {
            assert!(speed(word).is_err(), "{word}");
        }
    }
}
