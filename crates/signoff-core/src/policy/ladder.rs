//! Ladders: what to do at the first failure, at the second, and so on.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What to do about one failure.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
    strum::EnumString,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Rung {
    // Ordered by weight: if reviewers of one panel lead to different rungs, the heaviest counts.
    /// Start the same job again.
    Retry,
    /// Use up the attempt and start the next one.
    NextAttempt,
    /// Give the raw text to the fixer.
    RequestChanges,
    /// Count the cycle as failed.
    NotPassed,
    /// Ask a person.
    Ask,
    /// End the loop; after a discussion, wait for people.
    Stop,
    /// End the loop as failed.
    Fail,
}

impl Rung {
    pub const ALL: [Self; 7] =
        [Self::Retry, Self::NextAttempt, Self::RequestChanges, Self::NotPassed, Self::Ask, Self::Stop, Self::Fail];

    pub fn as_str(self) -> &'static str {
        self.into()
    }

    fn parse(word: &str) -> Option<Self> {
        word.parse().ok()
    }
}

/// Rungs that are tried in turn. The last one applies from then on, except that a last `retry` is followed by `stop`:
/// a retry is one more try, never an endless one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ladder(Vec<Rung>);

impl Ladder {
    pub fn new(rungs: &[Rung]) -> Self {
        Self(rungs.to_vec())
    }

    pub fn rungs(&self) -> &[Rung] {
        &self.0
    }

    /// The rung for a failure after `earlier` failures of the same job.
    pub fn rung(&self, earlier: u32) -> Rung {
        match (self.0.get(earlier as usize), self.0.last()) {
            (Some(rung), _) => *rung,
            (None, None | Some(Rung::Retry)) => Rung::Stop,
            (None, Some(last)) => *last,
        }
    }
}

impl fmt::Display for Ladder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.0.iter().map(|rung| rung.as_str()).collect();
        f.write_str(&words.join(", "))
    }
}

impl Serialize for Ladder {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [one] => one.serialize(serializer),
            several => several.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Ladder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a word or a list of words")]
        enum LadderText {
            One(String),
            Several(Vec<String>),
        }
        let words = match LadderText::deserialize(deserializer)? {
            LadderText::One(word) => vec![word],
            LadderText::Several(words) => words,
        };
        parse_ladder(&words).map_err(serde::de::Error::custom)
    }
}

fn parse_ladder(words: &[String]) -> Result<Ladder, String> {
    let known = || Rung::ALL.map(Rung::as_str).join(", ");
    if words.is_empty() {
        return Err(format!("a ladder needs at least one word: {}", known()));
    }
    let rung =
        |word: &String| Rung::parse(word).ok_or_else(|| format!("unknown word `{word}`, expected one of {}", known()));
    words.iter().map(rung).collect::<Result<_, _>>().map(Ladder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rungs_are_used_in_turn_and_the_last_one_repeats() {
        let ladder = Ladder::new(&[Rung::Retry, Rung::Ask]);
        let words: Vec<_> = (0..4).map(|earlier| ladder.rung(earlier).as_str()).collect();
        assert_eq!(words, ["retry", "ask", "ask", "ask"]);
    }

    #[test]
    fn a_ladder_with_only_retry_ends() {
        let ladder = Ladder::new(&[Rung::Retry, Rung::Retry]);
        let words: Vec<_> = (0..4).map(|earlier| ladder.rung(earlier).as_str()).collect();
        assert_eq!(words, ["retry", "retry", "stop", "stop"]);
    }
}
