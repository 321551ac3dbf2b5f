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

/// The built-in list prices, by model name. `[prices]` in the configuration takes precedence.
const BUILT_IN: &str = include_str!("prices/shipped.txt");

fn built_in_prices<'a>() -> impl Iterator<Item = (&'a str, Price)> {
    BUILT_IN.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let name = words.next()?;
        let mut micro = || Some((words.next()?.parse::<f64>().ok()? * 1e6).round() as u64);
        Some((name, Price { input: micro()?, cached: micro()?, written: micro()?, output: micro()? }))
    })
}

/// The built-in price for exactly this name.
pub fn built_in_price(name: &str) -> Option<Price> {
    built_in_prices().find(|(known, _)| *known == name).map(|(_, price)| price)
}

/// The names with built-in prices.
pub fn built_in_names<'a>() -> impl Iterator<Item = &'a str> {
    built_in_prices().map(|(name, _)| name)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn best_shipped(model: &str) -> Option<&'static str> {
        best_match(built_in_names(), model)
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
        let price = built_in_price("claude-sonnet-4-5").expect("a price");
        let tokens = TokenCounts { input: 1_000_000, cached: 600_000, written: 300_000, output: 100_000 };
        // 0.1 × 3.00 + 0.6 × 0.30 + 0.3 × 3.75 + 0.1 × 15.00
        assert_eq!(price.cost(tokens), 3_105_000);
        assert_eq!(price.cost(TokenCounts::default()), 0);
        let most = TokenCounts { input: u64::MAX, cached: u64::MAX, written: u64::MAX, output: u64::MAX };
        assert!(price.cost(most) > 0);
    }

    #[test]
    fn no_name_is_shipped_twice_and_every_price_makes_sense() {
        let names: std::collections::BTreeSet<_> = built_in_names().collect();
        let listed = BUILT_IN.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        assert_eq!(names.len(), listed.count());
        for name in names {
            let price = built_in_price(name).expect("a price");
            assert!(price.cached <= price.input && price.input <= price.output, "{name}: {price:?}");
            assert_eq!(best_shipped(name), Some(name));
        }
    }
}
