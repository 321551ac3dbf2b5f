//! Token counts, reported to clients and summed up for tests.

use std::iter::Sum;
use std::ops::Add;

use serde::{Deserialize, Serialize};

/// The token usage of replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TokenUsage {
    /// All input tokens, including cached ones.
    pub input: u64,
    /// Input tokens read from the cache.
    pub cached_input: u64,
    /// Input tokens written to the cache. Only Anthropic reports these.
    pub written_input: u64,
    pub output: u64,
    /// Number of replies.
    #[serde(skip_deserializing)]
    pub requests: u64,
}

impl TokenUsage {
    pub fn new(input: u64, output: u64) -> Self {
        Self { input, output, ..Self::default() }
    }

    /// Sets the input tokens read from the cache.
    #[must_use]
    pub fn with_cached(self, cached_input: u64) -> Self {
        Self { cached_input, ..self }
    }

    /// Sets the input tokens written to the cache.
    #[must_use]
    pub fn with_written(self, written_input: u64) -> Self {
        Self { written_input, ..self }
    }

    /// Input tokens that were neither read from nor written to the cache.
    pub fn fresh_input(self) -> u64 {
        self.input.saturating_sub(self.cached_input + self.written_input)
    }

    pub fn total(self) -> u64 {
        self.input + self.output
    }
}

impl Add for TokenUsage {
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

impl Sum for TokenUsage {
    fn sum<I: Iterator<Item = Self>>(each: I) -> Self {
        each.fold(Self::default(), Add::add)
    }
}
