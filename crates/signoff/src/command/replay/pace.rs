//! How fast a replay goes.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use signoff_core::wire::Recorded;
use signoff_term::tui::{Pace, Tempo};

/// Nothing is waited for longer where nobody said how fast it should go.
const LONGEST: Duration = Duration::from_secs(2);

/// How fast it goes where nobody said so.
const DEFAULT: f64 = 10.0;

/// From this on nothing is waited for.
const FASTEST: f64 = 10_000.0;

/// Nobody would see anything move.
const SLOWEST: f64 = 0.1;

/// How many times as fast as it was; without end for the fastest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speed(f64);

/// `max`, or a number, on the command line.
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

/// How far a replay is, and how it goes on.
pub struct Pacing {
    speed: f64,
    longest: Option<Duration>,
    paused: bool,
    /// What time it is in what is shown; none before the first fact.
    time: Option<Timestamp>,
    /// When that was.
    looked_at: Option<Timestamp>,
    /// What is still to be waited.
    owed: Duration,
}

impl Pacing {
    pub fn new(speed: Option<Speed>) -> Self {
        let longest = if speed.is_none() { Some(LONGEST) } else { None };
        let speed = speed.map_or(DEFAULT, |speed| speed.0);
        Self { speed, longest, paused: false, time: None, looked_at: None, owed: Duration::ZERO }
    }

    /// How long to wait between two moments of the run.
    fn gap(&self, from: Timestamp, to: Timestamp) -> Duration {
        let gap = to.duration_since(from).max(SignedDuration::ZERO).unsigned_abs();
        let gap = Duration::try_from_secs_f64(gap.as_secs_f64() / self.speed).unwrap_or_default();
        self.longest.map_or(gap, |longest| gap.min(longest))
    }

    /// What is to be waited before a fact of this time, with all that was not waited yet.
    pub fn wait(&mut self, at: Timestamp) -> Duration {
        let last = self.time.replace(at).unwrap_or(at);
        self.owed += self.gap(last, at);
        self.owed
    }

    /// It was waited; so long.
    pub fn waited(&mut self) -> Duration {
        std::mem::take(&mut self.owed)
    }

    /// How many of the facts to come are due at this time of day.
    pub fn due(&mut self, to_come: &[Recorded], now: Timestamp) -> usize {
        let passed =
            self.looked_at.replace(now).map_or(Duration::ZERO, |at| now.duration_since(at).unsigned_abs());
        if self.paused {
            return 0;
        }
        if self.speed.is_infinite() {
            self.time = to_come.last().map(|last| last.at).or(self.time);
            return to_come.len();
        }
        self.owed += passed;
        let mut due = 0;
        for next in to_come {
            let wait = self.time.map_or(Duration::ZERO, |time| self.gap(time, next.at));
            let Some(left) = self.owed.checked_sub(wait) else { break };
            (self.owed, self.time) = (left, Some(next.at));
            due += 1;
        }
        if to_come.len() == due {
            self.owed = Duration::ZERO;
        }
        due
    }

    /// What time it is in what is shown: between two facts the clocks go on.
    pub fn time(&self) -> Option<Timestamp> {
        let on = self.owed.as_secs_f64() * if self.speed.is_finite() { self.speed } else { 0.0 };
        let time = self.time?;
        Some(time.checked_add(SignedDuration::from_secs_f64(on)).unwrap_or(time))
    }

    /// Takes in what a person wants.
    pub fn change(&mut self, tempo: Tempo) {
        match tempo {
            Tempo::Faster if self.speed * 2.0 > FASTEST => self.speed = f64::INFINITY,
            Tempo::Faster => self.speed *= 2.0,
            Tempo::Slower if self.speed.is_infinite() => self.speed = FASTEST,
            Tempo::Slower => self.speed = (self.speed / 2.0).max(SLOWEST),
            Tempo::Pause => self.paused = !self.paused,
        }
    }

    /// How it goes, for the screen.
    pub fn told(&self, ended: bool) -> Pace {
        let speed = if self.speed.is_finite() { format!("{}×", self.speed) } else { "max".to_owned() };
        Pace { speed, paused: self.paused, ended }
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

    fn log(seconds: &[i64]) -> Vec<Recorded> {
        let fact = || Fact::Run(RunFact::Specified { name: String::new(), text: String::new() });
        let recorded = |second: &i64| Recorded { run: RunId(1), seq: 1, at: at(*second), fact: fact() };
        seconds.iter().map(recorded).collect()
    }

    /// Which facts are due at each second.
    fn shown(pacing: &mut Pacing, log: &[Recorded], seconds: std::ops::Range<i64>) -> Vec<usize> {
        let mut shown = 0;
        let mut look = |second| {
            shown += pacing.due(&log[shown..], at(second));
            shown
        };
        seconds.map(&mut look).collect()
    }

    #[test]
    fn real_time_takes_as_long_as_it_took() {
        let mut pacing = Pacing::new(speed("1").ok());
        assert_eq!(shown(&mut pacing, &log(&[10, 12, 15]), 0..7), [1, 1, 2, 2, 2, 3, 3]);
    }

    #[test]
    fn nothing_is_waited_for_long_unless_asked_for() {
        let mut pacing = Pacing::new(None);
        assert_eq!(shown(&mut pacing, &log(&[0, 10, 10_000]), 0..5), [1, 2, 2, 3, 3]);
    }

    #[test]
    fn the_fastest_waits_for_nothing_and_a_pause_for_everything() {
        let mut pacing = Pacing::new(speed("max").ok());
        assert_eq!(shown(&mut pacing, &log(&[0, 10, 10_000]), 0..1), [3]);
        let mut pacing = Pacing::new(speed("1").ok());
        pacing.change(Tempo::Pause);
        assert_eq!(shown(&mut pacing, &log(&[0, 1]), 0..3), [0, 0, 0]);
        pacing.change(Tempo::Pause);
        assert_eq!(shown(&mut pacing, &log(&[0, 2]), 3..6), [1, 2, 2]);
    }

    #[test]
    fn speeds_are_doubled_and_halved() {
        let mut pacing = Pacing::new(None);
        let told = |pacing: &Pacing| pacing.told(false).speed;
        assert_eq!(told(&pacing), "10×");
        pacing.change(Tempo::Faster);
        assert_eq!(told(&pacing), "20×");
        (0..20).for_each(|_| pacing.change(Tempo::Faster));
        assert_eq!(told(&pacing), "max");
        (0..40).for_each(|_| pacing.change(Tempo::Slower));
        assert_eq!(told(&pacing), "0.1×");
    }

    #[test]
    fn no_other_speed_is_understood() {
        for word in ["0", "-1", "nan", "inf", "fast", "", "1e9"] {
            assert!(speed(word).is_err(), "{word}");
        }
    }
}
