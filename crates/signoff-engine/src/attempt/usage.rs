//! Reads how much an agent used, and estimates costs that it does not report.

use std::collections::HashMap;

use serde_json::value::RawValue;
use signoff_core::agent_output::{ModelSpend, TokenCounts};
use signoff_core::prices::Price;
use signoff_core::review::Usage;
use signoff_core::settings::Settings;

use super::finish::read_start;
use super::parse_output::agent_summary;
use crate::process::{AttemptDir, ProcessResult};

/// Upper bound for each number.
const MAX_NUMBER: f64 = 1e15;

/// What is needed to price an agent's usage.
#[derive(Clone, Copy)]
pub struct UsagePricing<'a> {
    pub settings: &'a Settings,
    /// The configured model of the agent.
    pub model: Option<&'a str>,
}

/// The usage that the agent reports, and its duration.
pub fn usage(pricing: UsagePricing<'_>, dir: &AttemptDir, ended: &ProcessResult) -> Usage {
    Usage { duration_ms: ended.duration_ms, ..reported_usage(pricing, dir) }
}

/// The usage that the agent reports in its output or in its usage file. Costs that it does not report are estimated
/// from list prices.
pub fn reported_usage(pricing: UsagePricing<'_>, dir: &AttemptDir) -> Usage {
    match agent_summary(dir) {
        Some(summary) => pricing.all(&summary.spent),
        None => pricing.parse_usage_file(&read_start(&dir.usage(), 64 * 1024)),
    }
}

/// The used models without a known price.
pub fn unpriced(pricing: UsagePricing<'_>, dir: &AttemptDir) -> Vec<Option<String>> {
    let spent = agent_summary(dir).map(|summary| summary.spent).unwrap_or_default();
    let costs = |spent: &&ModelSpend| spent.cost_micro_usd.is_none() && spent.tokens != TokenCounts::default();
    let unknown = spent.iter().filter(costs).filter(|spent| pricing.price(spent.model.as_deref()).is_none());
    unknown.map(|spent| spent.model.as_deref().or(pricing.model).map(str::to_owned)).collect()
}

impl<'a> UsagePricing<'a> {
    /// The total usage of all models.
    pub fn all(&self, spent: &[ModelSpend]) -> Usage {
        spent.iter().map(|spent| self.counted(spent)).fold(Usage::default(), Usage::plus)
    }

    fn price(&self, own: Option<&str>) -> Option<Price> {
        self.settings.price(own.or(self.model)?)
    }

    fn counted(&self, spent: &ModelSpend) -> Usage {
        let usage = Usage {
            cost_micro_usd: spent.cost_micro_usd.unwrap_or(0),
            input_tokens: spent.tokens.input,
            cached_tokens: spent.tokens.cached,
            output_tokens: spent.tokens.output,
            ..Usage::default()
        };
        let price = self.price(spent.model.as_deref()).filter(|_| spent.cost_micro_usd.is_none());
        estimated(usage, price, spent.tokens)
    }

    /// Parses the usage file. Each number is parsed on its own, so an invalid one does not affect the others.
    fn parse_usage_file(&self, text: &[u8]) -> Usage {
        let fields: HashMap<String, &RawValue> = serde_json::from_slice(text).unwrap_or_default();
        let number = |name| fields.get(name).map_or(0.0, |value| number(value.get()));
        let usage = Usage {
            cost_micro_usd: round_up(number("cost_usd") * 1e6),
            input_tokens: round_up(number("input_tokens")),
            output_tokens: round_up(number("output_tokens")),
            ..Usage::default()
        };
        let tokens = TokenCounts { input: usage.input_tokens, output: usage.output_tokens, ..TokenCounts::default() };
        estimated(usage, self.price(None).filter(|_| !fields.contains_key("cost_usd")), tokens)
    }
}

fn estimated(usage: Usage, price: Option<Price>, tokens: TokenCounts) -> Usage {
    match price {
        Some(price) if tokens != TokenCounts::default() => {
            Usage { cost_micro_usd: price.cost(tokens), cost_is_estimated: true, ..usage }
        }
        Some(_) | None => usage,
    }
}

/// Parses a number, or a string with a number; 0 for anything else.
fn number(value: &str) -> f64 {
    let text = value.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(value);
    text.trim().parse().unwrap_or(0.0)
}

/// Rounds up, tolerating floating-point errors. Negative numbers become 0.
fn round_up(number: f64) -> u64 {
    (number - 1e-6).ceil().clamp(0.0, MAX_NUMBER) as u64
}

#[cfg(test)]
mod tests {
    use signoff_core::settings::{self, Layer};

    use super::*;

    fn settings(text: &str) -> Settings {
        settings::read(&[Layer::repository("signoff.toml", text)], &[], &[]).unwrap()
    }

    fn parse(text: &str) -> (u64, u64, u64) {
        let settings = settings("");
        let read = UsagePricing { settings: &settings, model: None }.parse_usage_file(text.as_bytes());
        let Usage { cost_micro_usd, input_tokens, output_tokens, .. } = read;
        (cost_micro_usd, input_tokens, output_tokens)
    }

    fn spent(model: Option<&str>, cost_micro_usd: Option<u64>) -> ModelSpend {
        let tokens = TokenCounts { input: 100_000, cached: 60_000, written: 0, output: 10_000 };
        ModelSpend { model: model.map(str::to_owned), tokens, cost_micro_usd }
    }

    #[test]
    fn unreported_costs_are_estimated_and_marked() {
        let settings = settings("[prices.\"gpt-5\"]\ninput = 1\n[prices.mine]\ninput = 0\noutput = 0\n");
        let counted = |model, spent: &ModelSpend| {
            let usage = UsagePricing { settings: &settings, model }.counted(spent);
            (usage.cost_micro_usd, usage.cost_is_estimated)
        };
        // A reported cost is used as is.
        assert_eq!(counted(None, &spent(Some("gpt-5.4"), Some(7))), (7, false));
        assert_eq!(counted(None, &spent(Some("gpt-5.4"), Some(0))), (0, false));
        // 0.04 × 2.50 + 0.06 × 0.25 + 0.01 × 15.00
        assert_eq!(counted(None, &spent(Some("openai/gpt-5.4"), None)), (265_000, true));
        // The configured model is used if the agent reports none.
        assert_eq!(counted(Some("gpt-5.4"), &spent(None, None)), (265_000, true));
        // Configured prices: 0.1 × 1.00 + 0.01 × 10.00, and a price of zero.
        assert_eq!(counted(None, &spent(Some("gpt-5-2025-08-07"), None)), (200_000, true));
        assert_eq!(counted(None, &spent(Some("mine"), None)), (0, true));
        assert_eq!(counted(None, &spent(Some("unheard-of"), None)), (0, false));
        assert_eq!(counted(None, &spent(None, None)), (0, false));
        assert_eq!(counted(None, &ModelSpend { model: Some("gpt-5".to_owned()), ..ModelSpend::default() }), (0, false));
    }

    #[test]
    fn token_counts_without_a_cost_are_priced() {
        let settings = settings("");
        let read = |text: &str| {
            let usage = UsagePricing { settings: &settings, model: Some("gpt-5.4") }.parse_usage_file(text.as_bytes());
            (usage.cost_micro_usd, usage.cost_is_estimated)
        };
        assert_eq!(read(r#"{"input_tokens": 100000, "output_tokens": 10000}"#), (400_000, true));
        assert_eq!(read(r#"{"input_tokens": 100000, "cost_usd": 0}"#), (0, false));
        assert_eq!(read("{}"), (0, false));
    }

    #[test]
    fn an_invalid_number_does_not_affect_the_others() {
        let plain = r#"{"cost_usd": 0.29, "input_tokens": 12, "output_tokens": 3}"#;
        assert_eq!(parse(plain), (290_000, 12, 3));
        for (odd, counts) in [
            ("null", 0),
            ("\"12\"", 12),
            ("\" 12.5 \"", 13),
            ("1.0", 1),
            ("1.2", 2),
            ("1e3", 1000),
            ("-1", 0),
            ("\"-1\"", 0),
            ("\"NaN\"", 0),
            ("\"many\"", 0),
            ("true", 0),
            ("[7]", 0),
            ("{}", 0),
            ("1e999", MAX_NUMBER as u64),
            ("99999999999999999999999", MAX_NUMBER as u64),
        ] {
            assert_eq!(parse(&plain.replace("12", odd)), (290_000, counts, 3), "{odd}");
        }
        assert_eq!(parse(&plain.replace("0.29", "\"0.5\"")), (500_000, 12, 3));
        assert_eq!(parse(&plain.replace("0.29", "-2")), (0, 12, 3));
        assert_eq!(parse(&plain.replace("0.29", "1e300")), (MAX_NUMBER as u64, 12, 3));
    }

    #[test]
    fn an_invalid_usage_file_counts_as_zero() {
        for text in ["", "{", "[]", "null", r#"{"cost_usd": 0.4"#, r#"{"other": 1}"#] {
            assert_eq!(parse(text), (0, 0, 0), "{text}");
        }
    }
}
