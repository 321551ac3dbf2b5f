//! What an agent says it used.

use std::collections::HashMap;

use serde_json::value::RawValue;
use signoff_core::heard::Spent;
use signoff_core::review::Usage;

use super::conclude::start_of;
use super::hear::heard;
use crate::process::{AttemptDir, Ended};

/// More of anything counts as so much.
const MOST: f64 = 1e15;

/// What the agent says it used, and how long it took.
pub fn usage(dir: &AttemptDir, ended: &Ended) -> Usage {
    Usage { duration_ms: ended.duration_ms, ..told_usage(dir) }
}

/// What the agent says it used: in its own words, or where it was told to write it.
pub fn told_usage(dir: &AttemptDir) -> Usage {
    match heard(dir) {
        Some(heard) => all(&heard.spent),
        None => read(&start_of(&dir.usage(), 64 * 1024)),
    }
}

/// What all models were used for, together.
pub fn all(spent: &[Spent]) -> Usage {
    spent.iter().map(counted).fold(Usage::default(), Usage::plus)
}

fn counted(spent: &Spent) -> Usage {
    Usage {
        cost_micro_usd: spent.cost_micro_usd.unwrap_or(0),
        input_tokens: spent.tokens.input,
        cached_tokens: spent.tokens.cached,
        output_tokens: spent.tokens.output,
        ..Usage::default()
    }
}

/// Each number by itself: one that is odd costs none of the others.
fn read(text: &[u8]) -> Usage {
    let told: HashMap<String, &RawValue> = serde_json::from_slice(text).unwrap_or_default();
    let number = |name| told.get(name).map_or(0.0, |value| number(value.get()));
    Usage {
        cost_micro_usd: whole(number("cost_usd") * 1e6),
        input_tokens: whole(number("input_tokens")),
        output_tokens: whole(number("output_tokens")),
        ..Usage::default()
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
    use super::*;

    fn told(text: &str) -> (u64, u64, u64) {
        let Usage { cost_micro_usd, input_tokens, output_tokens, .. } = read(text.as_bytes());
        (cost_micro_usd, input_tokens, output_tokens)
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
