//! Limits on repetition, and durations in the form `90s`, `30m`, `2h`.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number, or `"unlimited"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Count {
    Unlimited,
    #[serde(untagged)]
    Number(u32),
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a whole number or \"unlimited\"")]
        enum CountText {
            Number(u32),
            Text(String),
        }
        match CountText::deserialize(deserializer)? {
            CountText::Number(number) => Ok(Self::Number(number)),
            CountText::Text(text) if text == "unlimited" => Ok(Self::Unlimited),
            CountText::Text(text) => {
                let expected = "expected a whole number or \"unlimited\"";
                Err(serde::de::Error::custom(format!("invalid limit `{text}`: {expected}")))
            }
        }
    }
}

/// How often a gate may review and fix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "BoundKeys", into = "BoundKeys")]
pub enum Bound {
    /// n reviews and n − 1 fixes.
    MaxCycles(u32),
    /// n fixes and n + 1 reviews.
    MaxFixes(u32),
    /// Limited only by the loop's attempts and its budget.
    Unlimited,
}

/// The serialized form: one of two keys.
#[derive(Serialize, Deserialize)]
struct BoundKeys {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_cycles: Option<Count>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_fixes: Option<Count>,
}

impl From<Bound> for BoundKeys {
    fn from(bound: Bound) -> Self {
        match bound {
            Bound::MaxCycles(cycles) => Self { max_cycles: Some(Count::Number(cycles)), max_fixes: None },
            Bound::MaxFixes(fixes) => Self { max_cycles: None, max_fixes: Some(Count::Number(fixes)) },
            Bound::Unlimited => Self { max_cycles: None, max_fixes: Some(Count::Unlimited) },
        }
    }
}

impl From<BoundKeys> for Bound {
    fn from(written: BoundKeys) -> Self {
        Self::from_keys(written.max_cycles, written.max_fixes).unwrap_or(Self::MaxCycles(1))
    }
}

impl Bound {
    /// Creates the limit that one of the two keys sets.
    pub fn from_keys(max_cycles: Option<Count>, max_fixes: Option<Count>) -> Option<Self> {
        match (max_cycles, max_fixes) {
            (Some(Count::Number(cycles)), _) => Some(Self::MaxCycles(cycles)),
            (_, Some(Count::Number(fixes))) => Some(Self::MaxFixes(fixes)),
            (Some(Count::Unlimited), _) | (_, Some(Count::Unlimited)) => Some(Self::Unlimited),
            (None, None) => None,
        }
    }

    /// Maximum number of fixes; none if unlimited.
    pub fn fixes(self) -> Option<u32> {
        match self {
            Self::MaxCycles(cycles) => Some(cycles.saturating_sub(1)),
            Self::MaxFixes(fixes) => Some(fixes),
            Self::Unlimited => None,
        }
    }

    /// Maximum number of reviews: the m of "cycle n/m".
    pub fn reviews(self) -> Option<u32> {
        self.fixes().map(|fixes| fixes.saturating_add(1))
    }

    pub fn allows_another_fix(self, done: u32, granted: u32) -> bool {
        self.fixes().is_none_or(|fixes| done < fixes.saturating_add(granted))
    }
}

/// The limits of a loop that belong to no gate.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LoopLimits {
    /// Implement and fix attempts of one loop in total.
    pub max_attempts: u32,
    /// Passes through the workflow; `restart` starts the next one.
    pub max_passes: u32,
    /// Consecutive attempts lost to crashes of the program itself.
    pub max_recoveries: u32,
    /// Landings that were rejected by a conflict or failing checks.
    pub max_conflicts: u32,
    /// Consecutive rate limits of one job.
    #[serde(default = "rate_limits")]
    pub max_rate_limits: u32,
    /// Whether the limit of a gate counts the restarts it causes. Logs of earlier versions lack this field, and their
    /// runs do not count restarts.
    #[serde(default)]
    pub bounds_restarts: bool,
}

/// The default for logs of earlier versions.
fn rate_limits() -> u32 {
    20
}

impl Default for LoopLimits {
    fn default() -> Self {
        let max_rate_limits = rate_limits();
        Self {
            max_attempts: 50,
            max_passes: 10,
            max_recoveries: 5,
            max_conflicts: 3,
            max_rate_limits,
            bounds_restarts: true,
        }
    }
}

/// A length of time in whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
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

    /// Earlier versions wrote logs without the bounds on rate limits and restarts.
    #[test]
    fn an_older_log_is_read_with_the_bound_of_today() {
        let old = r#"{"max_attempts":7,"max_passes":10,"max_recoveries":5,"max_conflicts":3}"#;
        let limits: LoopLimits = serde_json::from_str(old).unwrap();
        assert_eq!(limits, LoopLimits { max_attempts: 7, bounds_restarts: false, ..LoopLimits::default() });
    }

    #[test]
    fn three_cycles_are_three_reviews_and_two_fixes() {
        let bound = Bound::MaxCycles(3);
        assert_eq!((bound.reviews(), bound.fixes()), (Some(3), Some(2)));
    }

    #[test]
    fn five_fixes_are_six_reviews() {
        let bound = Bound::MaxFixes(5);
        assert_eq!((bound.reviews(), bound.fixes()), (Some(6), Some(5)));
    }

    #[test]
    fn a_person_can_grant_one_more() {
        let bound = Bound::MaxCycles(1);
        assert!(!bound.allows_another_fix(0, 0));
        assert!(bound.allows_another_fix(0, 1));
        assert!(!bound.allows_another_fix(1, 1));
    }

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
