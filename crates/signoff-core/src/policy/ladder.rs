//! Ladders: what to do the first time something goes wrong, the second time, and so on.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One answer to one mishap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rung {
    // The order is the order of weight: where seats of one panel disagree, the heaviest word counts.
    /// The same job once more.
    Retry,
    /// The attempt is spent; the next one follows.
    NextAttempt,
    /// The raw text goes to the fixer.
    RequestChanges,
    /// The cycle counts as failed.
    NotPassed,
    /// A person decides.
    Ask,
    /// The loop ends here; for a discussion, waiting for people.
    Stop,
    /// The loop ends as failed.
    Fail,
}

impl Rung {
    pub const ALL: [Self; 7] = [
        Self::Retry,
        Self::NextAttempt,
        Self::RequestChanges,
        Self::NotPassed,
        Self::Ask,
        Self::Stop,
        Self::Fail,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::NextAttempt => "next-attempt",
            Self::RequestChanges => "request-changes",
            Self::NotPassed => "not-passed",
            Self::Ask => "ask",
            Self::Stop => "stop",
            Self::Fail => "fail",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rung| rung.word() == word)
    }
}

/// Words tried in turn. The last one holds from then on, except that a last `retry` is followed by `stop`:
/// a retry is one more try, never an endless one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ladder(Vec<Rung>);

impl Ladder {
    pub fn of(rungs: &[Rung]) -> Self {
        Self(rungs.to_vec())
    }

    pub fn rungs(&self) -> &[Rung] {
        &self.0
    }

    /// The word for a mishap that follows `earlier` others of the same job.
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
        let words: Vec<_> = self.0.iter().map(|rung| rung.word()).collect();
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
        enum Written {
            One(String),
            Several(Vec<String>),
        }
        let words = match Written::deserialize(deserializer)? {
            Written::One(word) => vec![word],
            Written::Several(words) => words,
        };
        read(&words).map_err(serde::de::Error::custom)
    }
}

fn read(words: &[String]) -> Result<Ladder, String> {
    let known = || Rung::ALL.map(Rung::word).join(", ");
    if words.is_empty() {
        return Err(format!("a ladder needs at least one word: {}", known()));
    }
    let rung = |word: &String| {
        Rung::from_word(word).ok_or_else(|| format!("unknown word `{word}`, expected one of {}", known()))
    };
    words.iter().map(rung).collect::<Result<_, _>>().map(Ladder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_tried_in_turn_and_the_last_one_holds() {
        let ladder = Ladder::of(&[Rung::Retry, Rung::Ask]);
        let words: Vec<_> = (0..4).map(|earlier| ladder.rung(earlier).word()).collect();
        assert_eq!(words, ["retry", "ask", "ask", "ask"]);
    }

    #[test]
    fn retrying_ends_even_where_nothing_else_was_said() {
        let ladder = Ladder::of(&[Rung::Retry, Rung::Retry]);
        let words: Vec<_> = (0..4).map(|earlier| ladder.rung(earlier).word()).collect();
        assert_eq!(words, ["retry", "retry", "stop", "stop"]);
    }
}
