//! The bounds on repetition.

use serde::{Deserialize, Serialize};

/// How often a gate may review and fix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// n reviews and n − 1 fixes.
    MaxCycles(u32),
    /// n fixes and n + 1 reviews.
    MaxFixes(u32),
    /// Bounded by the loop's attempts and its budget only.
    #[serde(serialize_with = "unlimited")]
    Unlimited,
}

fn unlimited<S: serde::Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(true)
}

impl Bound {
    /// How many fixes the bound allows, if it allows only so many.
    pub fn fixes(self) -> Option<u32> {
        match self {
            Self::MaxCycles(cycles) => Some(cycles.saturating_sub(1)),
            Self::MaxFixes(fixes) => Some(fixes),
            Self::Unlimited => None,
        }
    }

    /// How many reviews the bound allows: the m of "cycle n/m".
    pub fn reviews(self) -> Option<u32> {
        self.fixes().map(|fixes| fixes.saturating_add(1))
    }

    pub fn allows_another_fix(self, done: u32, granted: u32) -> bool {
        self.fixes().is_none_or(|fixes| done < fixes.saturating_add(granted))
    }
}

/// The bounds of a loop that belong to no gate.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Implement and fix attempts of one loop, all in all.
    pub max_attempts: u32,
    /// Ways through the workflow; `restart` begins the next one.
    pub max_passes: u32,
    /// Attempts lost in a row to crashes of the program itself.
    pub max_recoveries: u32,
    /// Landings that came back with a conflict or failing checks.
    pub max_conflicts: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_attempts: 50, max_passes: 10, max_recoveries: 5, max_conflicts: 3 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
