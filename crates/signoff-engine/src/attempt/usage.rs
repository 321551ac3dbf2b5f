//! What an agent says it used.

use std::collections::HashMap;

use serde_json::value::RawValue;
use signoff_core::config::Settings;
use signoff_core::heard::{Spent, Tokens};
use signoff_core::prices::Price;
use signoff_core::review::Usage;

use super::conclude::start_of;
use super::hear::heard;
use crate::process::{AttemptDir, Ended};

/// More of anything counts as so much.
const MOST: f64 = 1e15;

/// Who is asked what it used: its price is known by its model.
#[derive(Clone, Copy)]
pub struct Priced<'a> {
    pub settings: &'a Settings,
    /// The model that the agent was to use, as far as anybody said so.
    pub model: Option<&'a str>,
}

/// What the agent says it used, and how long it took.
pub fn usage(priced: Priced<'_>, dir: &AttemptDir, ended: &Ended) -> Usage {
    Usage { duration_ms: ended.duration_ms, ..told_usage(priced, dir) }
}

/// What the agent says it used: in its own words, or where it was told to write it. What it does not say of the cost
/// is worked out from list prices.
pub fn told_usage(priced: Priced<'_>, dir: &AttemptDir) -> Usage {
    match heard(dir) {
        Some(heard) => priced.all(&heard.spent),
        None => priced.read(&start_of(&dir.usage(), 64 * 1024)),
    }
}

/// The models whose price nobody knows, although they were used.
pub fn unpriced(priced: Priced<'_>, dir: &AttemptDir) -> Vec<Option<String>> {
    let spent = heard(dir).map(|heard| heard.spent).unwrap_or_default();
    let costs = |spent: &&Spent| spent.cost_micro_usd.is_none() && spent.tokens != Tokens::default();
    let unknown = spent.iter().filter(costs).filter(|spent| priced.price(spent.model.as_deref()).is_none());
    unknown.map(|spent| priced.model_of(spent.model.as_deref()).map(str::to_owned)).collect()
}

impl<'a> Priced<'a> {
    /// What all models were used for, together.
    pub fn all(&self, spent: &[Spent]) -> Usage {
        spent.iter().map(|spent| self.counted(spent)).fold(Usage::default(), Usage::plus)
    }

    fn model_of<'s>(&self, own: Option<&'s str>) -> Option<&'s str>
    where
        'a: 's,
    {
        own.or(self.model)
    }

    fn price(&self, own: Option<&str>) -> Option<Price> {
        self.settings.price(self.model_of(own)?)
    }

    fn counted(&self, spent: &Spent) -> Usage {
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

    /// Each number by itself: one that is odd costs none of the others.
    fn read(&self, text: &[u8]) -> Usage {
        let told: HashMap<String, &RawValue> = serde_json::from_slice(text).unwrap_or_default();
        let number = |name| told.get(name).map_or(0.0, |value| number(value.get()));
        let usage = Usage {
            cost_micro_usd: whole(number("cost_usd") * 1e6),
            input_tokens: whole(number("input_tokens")),
            output_tokens: whole(number("output_tokens")),
            ..Usage::default()
        };
        let tokens = Tokens { input: usage.input_tokens, output: usage.output_tokens, ..Tokens::default() };
        estimated(usage, self.price(None).filter(|_| !told.contains_key("cost_usd")), tokens)
    }
}

fn estimated(usage: Usage, price: Option<Price>, tokens: Tokens) -> Usage {
    match price {
        Some(price) if tokens != Tokens::default() => {
            Usage { cost_micro_usd: price.of(tokens), cost_is_estimated: true, ..usage }
        }
        Some(_) | None => usage,
    }
}

/// A number, or a text that is one; anything else is nothing.
fn number(value: &str) -> f64 {
    let text = value.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(value);
    text.trim().parse().unwrap_or(0.0)
}

/// Rounded up, but for what a multiplication adds. Less than nothing is nothing.
fn whole(number: f64) -> u64 {
    (number - 1e-6).ceil().clamp(0.0, MOST) as u64
}

#[cfg(test)]
mod tests {
    use signoff_core::config::{self, Layer};

    use super::*;

    fn settings(text: &str) -> Settings {
        config::read(&[Layer::repository("signoff.toml", text)], &[], &[]).unwrap()
    }

    fn told(text: &str) -> (u64, u64, u64) {
        let settings = settings("");
        let read = Priced { settings: &settings, model: None }.read(text.as_bytes());
        let Usage { cost_micro_usd, input_tokens, output_tokens, .. } = read;
        (cost_micro_usd, input_tokens, output_tokens)
    }

    fn spent(model: Option<&str>, cost_micro_usd: Option<u64>) -> Spent {
        let tokens = Tokens { input: 100_000, cached: 60_000, written: 0, output: 10_000 };
        Spent { model: model.map(str::to_owned), tokens, cost_micro_usd }
    }

    #[test]
    fn what_an_agent_does_not_say_is_worked_out_and_marked() {
        let settings = settings("[prices.\"gpt-5\"]\ninput = 1\n[prices.mine]\ninput = 0\noutput = 0\n");
        let counted = |model, spent: &Spent| {
            let usage = Priced { settings: &settings, model }.counted(spent);
            (usage.cost_micro_usd, usage.cost_is_estimated)
        };
        // Its own word counts, whatever its model costs.
        assert_eq!(counted(None, &spent(Some("gpt-5.4"), Some(7))), (7, false));
        assert_eq!(counted(None, &spent(Some("gpt-5.4"), Some(0))), (0, false));
        // 0.04 × 2.50 + 0.06 × 0.25 + 0.01 × 15.00
        assert_eq!(counted(None, &spent(Some("openai/gpt-5.4"), None)), (265_000, true));
        // The model that was asked for, where the agent names none.
        assert_eq!(counted(Some("gpt-5.4"), &spent(None, None)), (265_000, true));
        // One's own price: 0.1 × 1.00 + 0.01 × 10.00, and one that is nothing.
        assert_eq!(counted(None, &spent(Some("gpt-5-2025-08-07"), None)), (200_000, true));
        assert_eq!(counted(None, &spent(Some("mine"), None)), (0, true));
        assert_eq!(counted(None, &spent(Some("unheard-of"), None)), (0, false));
        assert_eq!(counted(None, &spent(None, None)), (0, false));
        assert_eq!(counted(None, &Spent { model: Some("gpt-5".to_owned()), ..Spent::default() }), (0, false));
    }

    #[test]
    fn a_program_that_counts_tokens_alone_gets_its_price_too() {
        let settings = settings("");
        let read = |text: &str| {
            let usage = Priced { settings: &settings, model: Some("gpt-5.4") }.read(text.as_bytes());
            (usage.cost_micro_usd, usage.cost_is_estimated)
        };
        assert_eq!(read(r#"{"input_tokens": 100000, "output_tokens": 10000}"#), (400_000, true));
        assert_eq!(read(r#"{"input_tokens": 100000, "cost_usd": 0}"#), (0, false));
        assert_eq!(read("{}"), (0, false));
    }

    #[test]
    fn an_odd_number_costs_none_of_the_others() {
        let plain = r#"{"cost_usd": 0.29, "input_tokens": 12, "output_tokens": 3}"#;
        assert_eq!(told(plain), (290_000, 12, 3));
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
            ("1e999", MOST as u64),
            ("99999999999999999999999", MOST as u64),
        ] {
            assert_eq!(told(&plain.replace("12", odd)), (290_000, counts, 3), "{odd}");
        }
        assert_eq!(told(&plain.replace("0.29", "\"0.5\"")), (500_000, 12, 3));
        assert_eq!(told(&plain.replace("0.29", "-2")), (0, 12, 3));
        assert_eq!(told(&plain.replace("0.29", "1e300")), (MOST as u64, 12, 3));
    }

    #[test]
    fn what_is_no_account_tells_nothing() {
        for text in ["", "{", "[]", "null", r#"{"cost_usd": 0.4"#, r#"{"other": 1}"#] {
            assert_eq!(told(text), (0, 0, 0), "{text}");
        }
    }
}
