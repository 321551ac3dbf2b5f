//! Estimates the cost of tokens, for agents that do not report it.
//!
//! A list price is an estimate: it ignores discounts, tiers and subscriptions. Estimated costs are marked wherever
//! they are shown.

use crate::agent_output::TokenCounts;

/// The price of a million tokens of a model, in millionths of a dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    pub input: u64,
    /// Input read from a cache.
    pub cached: u64,
    /// Input written to a cache.
    pub written: u64,
    pub output: u64,
}

/// The number of tokens that a price is for.
const MILLION: u128 = 1_000_000;

impl Price {
    /// The cost of tokens, in millionths of a dollar.
    pub fn cost(self, tokens: TokenCounts) -> u64 {
        let TokenCounts { input, cached, written, output } = tokens;
        // Tokens that are counted twice are paid once.
        let cached = cached.min(input);
        let written = written.min(input - cached);
        let parts = [
            (input - cached - written, self.input),
            (cached, self.cached),
            (written, self.written),
            (output, self.output),
        ];
        let sum = parts.into_iter().map(|(count, price)| u128::from(count) * u128::from(price));
        let sum = sum.fold(0, u128::saturating_add);
        u64::try_from((sum + MILLION / 2) / MILLION).unwrap_or(u64::MAX)
    }
}

/// The built-in price for exactly this name.
pub fn shipped(name: &str) -> Option<Price> {
    let (_, input, cached, written, output) = *PRICES.iter().find(|(known, ..)| *known == name)?;
    let micro = |dollars: f64| (dollars * 1e6).round() as u64;
    Some(Price { input: micro(input), cached: micro(cached), written: micro(written), output: micro(output) })
}

/// The names with built-in prices.
pub fn shipped_names<'a>() -> impl Iterator<Item = &'a str> {
    PRICES.iter().map(|(name, ..)| *name)
}

/// The most specific name that matches a model.
pub fn best_match<'a>(names: impl IntoIterator<Item = &'a str>, model: &str) -> Option<&'a str> {
    let model = model.to_ascii_lowercase();
    let fits = |name: &&str| matches_model(&name.to_ascii_lowercase(), &model);
    names.into_iter().filter(fits).max_by_key(|name| name.len())
}

/// Whether a name matches a model. Providers add prefixes (`openai/`, `us.anthropic.`), dates and variants
/// (`-20250929`, `:free`). Another version is another model: `gpt-5` does not match `gpt-5.4`.
fn matches_model(name: &str, model: &str) -> bool {
    model.match_indices(name).any(|(at, _)| {
        let before = model.get(..at).and_then(|text| text.chars().next_back());
        let behind = model.get(at + name.len()..).and_then(|text| text.chars().next());
        before.is_none_or(|char| matches!(char, '/' | '.' | ':' | '~'))
            && behind.is_none_or(|char| matches!(char, '-' | ':' | '@' | '/' | '['))
    })
}

/// The date of the built-in list prices. `[prices]` in the configuration takes precedence over them.
pub const AS_OF: &str = "2026-09-22";

/// The source of the list.
pub const SOURCE: &str = "models.dev";

/// Model name, then dollars per million tokens: input, cache read, cache write, output. If a provider does not charge
/// for cache writes, they cost as much as other input. If prices rise with the length of the prompt, the lowest is
/// listed.
const PRICES: &[(&str, f64, f64, f64, f64)] = &[
    ("claude-fable-5", 10.0, 1.0, 12.5, 50.0),
    ("claude-fable-5-1", 10.0, 0.25, 12.5, 50.0),
    ("claude-opus-5-5", 4.0, 0.2, 5.0, 20.0),
    ("claude-opus-5", 5.0, 0.5, 6.25, 25.0),
    ("claude-opus-4-8", 5.0, 0.5, 6.25, 25.0),
    ("claude-opus-4-7", 5.0, 0.5, 6.25, 25.0),
    ("claude-opus-4-6", 5.0, 0.5, 6.25, 25.0),
    ("claude-opus-4-5", 5.0, 0.5, 6.25, 25.0),
    ("claude-sonnet-5", 2.0, 0.2, 2.5, 10.0),
    ("claude-sonnet-4-6", 3.0, 0.3, 3.75, 15.0),
    ("claude-sonnet-4-5", 3.0, 0.3, 3.75, 15.0),
    ("claude-haiku-4-5", 1.0, 0.1, 1.25, 5.0),
    ("gpt-6-astra", 10.0, 1.0, 12.5, 50.0),
    ("gpt-6-sol", 2.0, 0.2, 2.5, 10.0),
    ("gpt-6-luna", 0.1, 0.01, 0.125, 0.5),
    ("gpt-5.6", 4.0, 0.4, 5.0, 20.0),
    ("gpt-5.6-sol", 4.0, 0.4, 5.0, 20.0),
    ("gpt-5.6-terra", 2.0, 0.2, 2.5, 12.0),
    ("gpt-5.6-luna", 0.2, 0.02, 0.25, 1.2),
    ("gpt-5.5", 5.0, 0.5, 5.0, 30.0),
    ("gpt-5.5-pro", 30.0, 30.0, 30.0, 180.0),
    ("gpt-5.4", 2.5, 0.25, 2.5, 15.0),
    ("gpt-5.4-pro", 30.0, 30.0, 30.0, 180.0),
    ("gpt-5.4-mini", 0.75, 0.075, 0.75, 4.5),
    ("gpt-5.4-nano", 0.2, 0.02, 0.2, 1.25),
    ("gpt-5.3-codex", 1.75, 0.175, 1.75, 14.0),
    ("gpt-5.2", 1.75, 0.175, 1.75, 14.0),
    ("gpt-5.2-pro", 21.0, 21.0, 21.0, 168.0),
    ("gpt-5.1", 1.25, 0.125, 1.25, 10.0),
    ("gpt-5", 1.25, 0.125, 1.25, 10.0),
    ("gpt-5-pro", 15.0, 15.0, 15.0, 120.0),
    ("gpt-5-mini", 0.25, 0.025, 0.25, 2.0),
    ("gpt-5-nano", 0.05, 0.005, 0.05, 0.4),
    ("gpt-4.1", 2.0, 0.5, 2.0, 8.0),
    ("gpt-4.1-mini", 0.4, 0.1, 0.4, 1.6),
    ("gpt-4.1-nano", 0.1, 0.025, 0.1, 0.4),
    ("gpt-4o", 2.5, 1.25, 2.5, 10.0),
    ("gpt-4o-mini", 0.15, 0.075, 0.15, 0.6),
    ("o3", 2.0, 0.5, 2.0, 8.0),
    ("o3-pro", 20.0, 20.0, 20.0, 80.0),
    ("o4-mini", 1.1, 0.275, 1.1, 4.4),
    ("gemini-3.8-flash", 0.75, 0.075, 0.75, 3.75),
    ("gemini-3.7-flash", 0.75, 0.075, 0.75, 3.75),
    ("gemini-3.6-flash", 0.75, 0.075, 0.75, 3.75),
    ("gemini-3.5-flash", 1.5, 0.15, 1.5, 9.0),
    ("gemini-3.5-flash-lite", 0.3, 0.03, 0.3, 2.5),
    ("gemini-3.1-pro-preview", 2.0, 0.2, 2.0, 12.0),
    ("gemini-3.1-flash-lite", 0.25, 0.025, 0.25, 1.5),
    ("gemini-3-flash-preview", 0.5, 0.05, 0.5, 3.0),
    ("gemini-flash-latest", 0.75, 0.075, 0.75, 3.75),
    ("gemini-flash-lite-latest", 0.3, 0.03, 0.3, 2.5),
    ("gemini-2.5-pro", 1.25, 0.125, 1.25, 10.0),
    ("gemini-2.5-flash", 0.3, 0.03, 0.3, 2.5),
    ("gemini-2.5-flash-lite", 0.1, 0.01, 0.1, 0.4),
    ("qwen3.8-max", 2.0, 0.25, 2.5, 6.0),
    ("qwen3.8-flash", 0.15, 0.016, 0.2, 0.47),
    ("qwen3.7-max", 2.5, 0.5, 3.125, 7.5),
    ("qwen3.7-plus", 0.5, 0.05, 0.625, 3.0),
    ("qwen3.6-plus", 0.5, 0.05, 0.625, 3.0),
    ("qwen3.5-plus", 0.4, 0.4, 0.4, 2.4),
    ("qwen3-max", 1.2, 1.2, 1.2, 6.0),
    ("qwen3-coder-plus", 1.0, 1.0, 1.0, 5.0),
    ("qwen3-coder-flash", 0.3, 0.3, 0.3, 1.5),
    ("qwen3-coder-480b-a35b-instruct", 1.5, 1.5, 1.5, 7.5),
    ("qwen3-coder-30b-a3b-instruct", 0.45, 0.45, 0.45, 2.25),
    ("grok-4.7", 2.0, 0.5, 2.0, 6.0),
    ("grok-4.6", 2.0, 0.5, 2.0, 6.0),
    ("grok-4.5", 2.0, 0.3, 2.0, 6.0),
    ("grok-4.3", 1.25, 0.2, 1.25, 2.5),
    ("grok-build-0.1", 1.0, 0.2, 1.0, 2.0),
    ("deepseek-flash", 0.15, 0.003, 0.15, 0.6),
    ("deepseek-v4-flash", 0.15, 0.003, 0.15, 0.6),
    ("deepseek-v4-pro", 0.435, 0.003625, 0.435, 0.87),
    ("kimi-k3", 3.0, 0.3, 3.0, 15.0),
    ("kimi-k2.7-code", 0.95, 0.19, 0.95, 4.0),
    ("kimi-k2.7-code-highspeed", 1.9, 0.38, 1.9, 8.0),
    ("kimi-k2.6", 0.95, 0.16, 0.95, 4.0),
    ("glm-5.3", 1.4, 0.26, 1.4, 4.4),
    ("glm-5.3-flash", 0.15, 0.03, 0.15, 0.5),
    ("glm-5.2", 1.4, 0.26, 1.4, 4.4),
    ("glm-5", 1.0, 0.2, 1.0, 3.2),
    ("glm-5-turbo", 1.2, 0.24, 1.2, 4.0),
    ("glm-4.7", 0.6, 0.11, 0.6, 2.2),
    ("glm-4.6", 0.6, 0.11, 0.6, 2.2),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn best_shipped(model: &str) -> Option<&'static str> {
        best_match(shipped_names(), model)
    }

    #[test]
    fn a_model_is_known_by_its_longest_name() {
        for (model, name) in [
            ("gpt-5", Some("gpt-5")),
            ("gpt-5-mini-2025-08-07", Some("gpt-5-mini")),
            ("GPT-5.4", Some("gpt-5.4")),
            ("openai/gpt-5.3-codex", Some("gpt-5.3-codex")),
            ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", Some("claude-sonnet-4-5")),
            ("claude-sonnet-4-5@20250929", Some("claude-sonnet-4-5")),
            ("claude-opus-5-5[1m]", Some("claude-opus-5-5")),
            ("gemini-3.1-pro-preview", Some("gemini-3.1-pro-preview")),
            ("gpt-55", None),
            ("my-gpt-5", None),
            ("gpt", None),
            ("", None),
        ] {
            assert_eq!(best_shipped(model), name, "{model}");
        }
    }

    #[test]
    fn every_kind_of_token_has_its_price() {
        let price = shipped("claude-sonnet-4-5").expect("a price");
        let tokens = TokenCounts { input: 1_000_000, cached: 600_000, written: 300_000, output: 100_000 };
        // 0.1 × 3.00 + 0.6 × 0.30 + 0.3 × 3.75 + 0.1 × 15.00
        assert_eq!(price.cost(tokens), 3_105_000);
        assert_eq!(price.cost(TokenCounts::default()), 0);
        let most = TokenCounts { input: u64::MAX, cached: u64::MAX, written: u64::MAX, output: u64::MAX };
        assert!(price.cost(most) > 0);
    }

    #[test]
    fn no_name_is_shipped_twice_and_every_price_makes_sense() {
        let names: std::collections::BTreeSet<_> = shipped_names().collect();
        assert_eq!(names.len(), PRICES.len());
        for name in names {
            let price = shipped(name).expect("a price");
            assert!(price.cached <= price.input && price.input <= price.output, "{name}: {price:?}");
            assert_eq!(best_shipped(name), Some(name));
        }
    }
}
