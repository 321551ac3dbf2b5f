//! Durations in the form `90s`, `30m`, `2h`.

use std::fmt;

use serde::{Serialize, Serializer};

/// A length of time in whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeSpan {
    pub seconds: u64,
}

impl TimeSpan {
    pub const fn minutes(minutes: u64) -> Self {
        Self { seconds: minutes * 60 }
    }

    /// Parses `90s`, `30m` or `2h`.
    pub fn parse(text: &str) -> Option<Self> {
        let unit = text.chars().last()?;
        let digits = text.strip_suffix(unit)?;
        let number: u64 = digits.parse().ok().filter(|_| !digits.starts_with('+'))?;
        let factor = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            _ => return None,
        };
        number.checked_mul(factor).map(|seconds| Self { seconds })
    }
}

impl fmt::Display for TimeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seconds {
            0 => f.write_str("0s"),
            seconds if seconds % 3600 == 0 => write!(f, "{}h", seconds / 3600),
            seconds if seconds % 60 == 0 => write!(f, "{}m", seconds / 60),
            seconds => write!(f, "{seconds}s"),
        }
    }
}

impl Serialize for TimeSpan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_back_as_written() {
        for text in ["90s", "30m", "2h", "3m", "0s"] {
            assert_eq!(TimeSpan::parse(text).expect(text).to_string(), text);
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "s", "30", "-1s", "+1s", "1d", "1.5h", "99999999999999999999h", "5µ", "18446744073709551615h"]
        {
            assert_eq!(TimeSpan::parse(text), None, "{text}");
        }
    }
}
