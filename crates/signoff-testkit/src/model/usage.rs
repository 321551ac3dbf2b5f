//! Tokens, as they are told to clients and added up for tests.

use std::iter::Sum;
use std::ops::Add;

use serde::{Deserialize, Serialize};

/// What replies were said to have used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    /// All tokens of the input, those of the cache among them.
    pub input: u64,
    /// Of the input: read from the cache.
    pub cached_input: u64,
    /// Of the input: written to the cache. Only Anthropic tells this.
    pub written_input: u64,
    pub output: u64,
    /// How many replies.
    #[serde(skip_deserializing)]
    pub requests: u64,
}

impl Usage {
    pub fn new(input: u64, output: u64) -> Self {
        Self { input, output, ..Self::default() }
    }

    /// So much of the input was read from the cache.
    #[must_use]
    pub fn cached(self, cached_input: u64) -> Self {
        Self { cached_input, ..self }
    }

    /// So much of the input was written to the cache.
    #[must_use]
    pub fn written(self, written_input: u64) -> Self {
        Self { written_input, ..self }
    }

    /// Of the input: what no cache has to do with.
    pub fn fresh_input(self) -> u64 {
        self.input.saturating_sub(self.cached_input + self.written_input)
    }

    pub fn total(self) -> u64 {
        self.input + self.output
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input: self.input + other.input,
            cached_input: self.cached_input + other.cached_input,
            written_input: self.written_input + other.written_input,
            output: self.output + other.output,
            requests: self.requests + other.requests,
        }
    }
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(each: I) -> Self {
        each.fold(Self::default(), Add::add)
    }
}
