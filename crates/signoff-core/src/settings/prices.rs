//! `[prices."MODEL"]`: prices of models, which override the built-in list.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::rules::value;
use super::{ConfigError, Settings};
use crate::prices::{self, Price};

/// `[prices."MODEL"]`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename = "a price")]
pub(super) struct PriceTable {
    /// Dollars for a million input tokens.
    pub input: Option<Rate>,
    /// Dollars for a million tokens read from a cache; without it that of `input`.
    pub cached: Option<Rate>,
    /// Dollars for a million tokens written to a cache; without it that of `input`.
    pub written: Option<Rate>,
    /// Dollars for a million output tokens.
    pub output: Option<Rate>,
}

/// Dollars for a million tokens, in millionths. Some models are free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate(u64);

value!(
    Rate,
    "dollars for a million tokens such as 2.5, from 0 to 100000",
    { "type": "number", "minimum": 0, "maximum": 100_000 },
    |dollars: f64| (0.0..=1e5).contains(&dollars).then(|| Self((dollars * 1e6).round() as u64))
);

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0 as f64 / 1e6)
    }
}

impl PriceTable {
    /// The whole price. What is not set is taken from the built-in price of this name.
    fn price(&self, name: &str) -> Result<Price, &'static str> {
        let rate = |rate: Option<Rate>| rate.map(|rate| rate.0);
        let shipped = prices::shipped(name);
        let input = rate(self.input).or(shipped.map(|price| price.input)).ok_or("input")?;
        let output = rate(self.output).or(shipped.map(|price| price.output)).ok_or("output")?;
        // A price of one's own for input holds for caches too.
        let shipped = shipped.filter(|_| self.input.is_none());
        Ok(Price {
            input,
            cached: rate(self.cached).or(shipped.map(|price| price.cached)).unwrap_or(input),
            written: rate(self.written).or(shipped.map(|price| price.written)).unwrap_or(input),
            output,
        })
    }
}

impl Settings {
    /// The price of a model by the name its agent has for it: the longest matching name, configured or built in.
    pub fn price(&self, model: &str) -> Option<Price> {
        let own = &self.file.prices;
        // Of two names of the same length the last counts: the configured one.
        let names = prices::shipped_names().chain(own.keys().map(|name| name.as_str()));
        let name = prices::best_match(names, model)?;
        own.get(name).and_then(|price| price.price(name).ok()).or_else(|| prices::shipped(name))
    }

    pub(super) fn check_prices(&self) -> Result<(), ConfigError> {
        for (name, price) in self.file.prices.iter() {
            if let Err(missing) = price.price(name.as_str()) {
                return Err(self.error(
                    &["prices", name.as_str()],
                    format!(
                        "[prices.{:?}] has no `{missing}`: write `{missing} = 2.5`, dollars for a million tokens",
                        name.as_str()
                    ),
                ));
            }
        }
        Ok(())
    }
}
