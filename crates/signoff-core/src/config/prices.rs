//! `[prices."MODEL"]`: what a million tokens of a model cost, before the list that is shipped.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use serde_json::{Value as Json, json};

use super::layer::Source;
use super::slot::{Slot, table};
use super::{ConfigError, Origin, Row, Setting, Settings};
use crate::prices::{self, Price};
use crate::workflow::table::Checked;
use crate::workflow::value::{Value, Written};

table! {
    /// `[prices."MODEL"]`.
    PriceSettings, "a price" {
        /// Dollars for a million tokens that are read.
        input: Option<Setting<Rate>> = None,
        /// The same out of a cache; without it that of `input`.
        cached: Option<Setting<Rate>> = None,
        /// The same into a cache; without it that of `input`.
        written: Option<Setting<Rate>> = None,
        /// Dollars for a million tokens that are written.
        output: Option<Setting<Rate>> = None,
    }
}

/// Dollars for a million tokens, in millionths. Some models cost nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate(u64);

/// More than any provider asks.
const MOST: f64 = 100_000.0;

impl Value for Rate {
    fn expected(_: &str) -> String {
        "dollars for a million tokens such as 2.5, from 0 to 100000".to_owned()
    }

    fn schema(_: &str) -> Json {
        json!({ "type": "number", "minimum": 0, "maximum": MOST as u64 })
    }

    fn read<'v, 'i>(_: &str, written: &'v Written<'i>) -> Result<Self, &'v Written<'i>> {
        let value = written.get_ref();
        let text = value.as_float().map(|number| number.as_str());
        let text = text.or_else(|| value.as_integer().map(|number| number.as_str())).ok_or(written)?;
        let dollars: f64 = text.parse().map_err(|_| written)?;
        if !(0.0..=MOST).contains(&dollars) {
            return Err(written);
        }
        Ok(Self((dollars * 1e6).round() as u64))
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0 as f64 / 1e6)
    }
}

/// Prices by the names of models, which providers choose freely.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Prices(pub BTreeMap<String, PriceSettings>);

/// No model has a longer name.
const LONGEST: usize = 128;

impl Slot for Prices {
    fn lay(&mut self, key: &str, source: &Source<'_>) -> Checked<()> {
        let Some(tables) = source.inside(key)? else { return Ok(()) };
        for name in tables.table.names() {
            let odd = |char: char| char.is_whitespace() || char.is_control();
            if name.is_empty() || name.len() > LONGEST || name.contains(odd) {
                let message = format!(
                    "a model cannot have that name: expected 1 to {LONGEST} characters without spaces"
                );
                return Err(tables.table.error(name, message));
            }
            self.0.entry(name.to_owned()).or_default().lay(name, &tables)?;
        }
        Ok(())
    }

    fn rows(&self, key: &str, rows: &mut Vec<Row>) {
        for (name, table) in &self.0 {
            table.rows(&format!("{key}.{name}"), rows);
        }
    }

    fn schema(key: &str) -> Json {
        json!({
            "type": "object",
            "propertyNames": { "pattern": format!("^\\S{{1,{LONGEST}}}$") },
            "additionalProperties": PriceSettings::schema(key),
        })
    }
}

impl PriceSettings {
    /// What is not said is as shipped for this name.
    fn whole(&self, name: &str) -> Result<Price, &'static str> {
        let said = |rate: &Option<Setting<Rate>>| rate.as_ref().map(|rate| rate.value.0);
        let shipped = prices::shipped(name);
        let input = said(&self.input).or(shipped.map(|price| price.input)).ok_or("input")?;
        let output = said(&self.output).or(shipped.map(|price| price.output)).ok_or("output")?;
        // Who says what reading costs says it for caches too.
        let shipped = shipped.filter(|_| self.input.is_none());
        Ok(Price {
            input,
            cached: said(&self.cached).or(shipped.map(|price| price.cached)).unwrap_or(input),
            written: said(&self.written).or(shipped.map(|price| price.written)).unwrap_or(input),
            output,
        })
    }
}

impl Settings {
    /// What a model costs by the name its agent has for it: the longest name that fits, one's own or shipped.
    pub fn price(&self, model: &str) -> Option<Price> {
        let own = &self.written.prices.0;
        // Of two that are as long the last counts: one's own.
        let names = prices::shipped_names().chain(own.keys().map(String::as_str));
        let name = prices::nearest(names, model)?;
        own.get(name).and_then(|price| price.whole(name).ok()).or_else(|| prices::shipped(name))
    }

    pub(super) fn check_prices(&self) -> Result<(), ConfigError> {
        for (name, price) in &self.written.prices.0 {
            if let Err(missing) = price.whole(name) {
                let message = format!(
                    "[prices.{name:?}] has no `{missing}`: write `{missing} = 2.5`, dollars for a million tokens"
                );
                return Err(price.at.clone().unwrap_or(Origin::Default).error(message));
            }
        }
        Ok(())
    }
}
