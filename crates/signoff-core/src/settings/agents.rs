//! Agents: their kinds, how they are configured, and the prices of their models.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::VariantNames;

use super::assign::text;
use super::file::AgentTable;
use super::reader::either;
use super::rules::value;
use super::values::as_dollars;
use super::{ConfigError, Settings, key};
use crate::policy::TimeSpan;
use crate::prices::{self, Price};

/// The kind of program that an agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[strum(const_into_str, serialize_all = "lowercase")]
pub enum AgentKind {
    Claude,
    Codex,
    Gemini,
    Opencode,
    Qwen,
    Copilot,
    /// Any agent that speaks the Agent Client Protocol.
    Acp,
    /// Any program: the prompt on stdin, the final message on stdout.
    Command,
    /// The project's own commands, as a reviewer without a model.
    Checks,
    /// A scripted agent without a model.
    Demo,
}

impl AgentKind {
    /// Whether agents of this kind are known to copy a nonce from their prompt. A custom program may not.
    pub fn echoes_nonces(self) -> bool {
        match self {
            Self::Claude | Self::Codex | Self::Gemini | Self::Opencode | Self::Qwen | Self::Copilot | Self::Acp => true,
            Self::Command | Self::Checks | Self::Demo => false,
        }
    }

    /// The provider of an agent that names none. A custom program is its own provider.
    pub(super) fn provider(self, name: &str) -> String {
        match self {
            Self::Claude | Self::Codex | Self::Gemini | Self::Opencode | Self::Qwen | Self::Copilot => {
                self.into_str().to_owned()
            }
            Self::Acp | Self::Command | Self::Checks | Self::Demo => name.to_owned(),
        }
    }

    /// Whether `command` must name the program to start.
    pub(super) fn needs_command(self) -> bool {
        matches!(self, Self::Acp | Self::Command)
    }

    /// Whether it can implement, fix and review. Agents of kind `checks` only run commands.
    pub(super) fn can_do_work(self) -> bool {
        self != Self::Checks
    }
}

/// A configured agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentConfig {
    pub name: String,
    pub kind: AgentKind,
    /// The program and its first arguments. Empty: the program of its kind.
    pub command: Vec<String>,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    /// Names of the person's variables that it gets, or prefixes: `AWS_*`.
    pub pass: Vec<String>,
    pub model: Option<String>,
    pub timeout: Option<TimeSpan>,
    /// The agent that replaces this one while its provider refuses.
    pub fallback: Option<String>,
    /// Agents of one provider share the limit `agents_per_provider`.
    pub provider: String,
    /// Maximum number of these agents in parallel.
    pub max_agents: Option<u32>,
}

/// The agent of a table. None if its kind is unknown.
pub(super) fn agent(name: &str, table: &AgentTable) -> Option<AgentConfig> {
    let kind = table.kind(name)?;
    let env = table.env.iter().map(|(name, value)| (name.0.clone(), value.0.clone()));
    Some(AgentConfig {
        name: name.to_owned(),
        kind,
        command: table.command.as_ref().map(|command| command.0.clone()).unwrap_or_default(),
        args: table.args.0.clone(),
        env: env.collect(),
        pass: table.pass.0.clone(),
        model: text(&table.model),
        timeout: table.timeout,
        fallback: text(&table.fallback),
        provider: text(&table.provider).unwrap_or_else(|| kind.provider(name)),
        max_agents: table.max_agents.map(|bound| bound.0),
    })
}

impl AgentTable {
    /// Its kind. Without the key `kind`, the name of the table counts.
    pub(super) fn kind(&self, name: &str) -> Option<AgentKind> {
        self.kind.or(name.parse::<AgentKind>().ok())
    }
}

impl Settings {
    /// An agent by name.
    pub fn agent(&self, name: &str) -> Option<AgentConfig> {
        self.file.agents.get(name).and_then(|table| agent(name, table))
    }

    /// Every agent, by name.
    pub fn agents(&self) -> Vec<AgentConfig> {
        self.file.agents.iter().filter_map(|(name, table)| agent(name.as_str(), table)).collect()
    }

    /// The fallbacks of an agent, in order.
    pub fn fallbacks(&self, name: &str) -> Vec<AgentConfig> {
        let mut chain: Vec<AgentConfig> = Vec::new();
        let next = |last: &str| self.agent(&self.agent(last)?.fallback?);
        while let Some(agent) = next(chain.last().map_or(name, |last| &last.name)) {
            chain.push(agent);
        }
        chain
    }

    /// The agent itself for index 0, or one of its fallbacks; the last one if there are fewer.
    pub(super) fn fallback(&self, agent: AgentConfig, fallback_index: usize) -> AgentConfig {
        let mut chain = if fallback_index == 0 { Vec::new() } else { self.fallbacks(&agent.name) };
        chain.truncate(fallback_index);
        chain.pop().unwrap_or(agent)
    }

    /// Maximum number of agents of one provider in parallel.
    pub fn agents_per_provider(&self) -> Option<u32> {
        self.file.limits.keys.agents_per_provider.map(|bound| bound.0)
    }

    pub(super) fn check_agents(&self) -> Result<(), ConfigError> {
        for (name, table) in self.file.agents.iter() {
            let name = name.as_str();
            let message = match table.kind(name) {
                None => {
                    let kinds = either(AgentKind::VARIANTS);
                    format!("agent `{name}` has no `kind`: expected {kinds}")
                }
                Some(kind) if kind.needs_command() && table.command.is_none() => {
                    format!("agent `{name}` is of kind \"{}\": write `command = [\"./agent\"]`", kind.into_str())
                }
                Some(_) => {
                    self.check_fallback(name)?;
                    continue;
                }
            };
            return Err(self.error(&[key::AGENTS, name], message));
        }
        Ok(())
    }

    /// Fallbacks must exist, be able to do work and form no cycle.
    fn check_fallback(&self, name: &str) -> Result<(), ConfigError> {
        let mut seen = vec![name];
        while let Some(table) = seen.last().and_then(|last| self.file.agents.get(*last)) {
            let (Some(last), Some(fallback)) = (seen.last(), &table.fallback) else { return Ok(()) };
            let path = [key::AGENTS, *last, key::FALLBACK];
            self.check_worker(&path, key::FALLBACK)?;
            let next = fallback.as_str();
            if seen.contains(&next) {
                let cycle = seen.join(" → ");
                let message =
                    format!("`fallback` forms a cycle: {cycle} → {next}; write another agent, or leave it out");
                return Err(self.error(&path, message));
            }
            seen.push(next);
        }
        Ok(())
    }

    /// The price of a model by the name that its agent reports: the longest matching name, configured or built in.
    pub fn price(&self, model: &str) -> Option<Price> {
        let own = &self.file.prices;
        // Of two names of the same length the last counts: the configured one.
        let names = prices::built_in_names().chain(own.keys().map(|name| name.as_str()));
        let name = prices::best_match(names, model)?;
        own.get(name).and_then(|price| price.price(name).ok()).or_else(|| prices::built_in_price(name))
    }

    pub(super) fn check_prices(&self) -> Result<(), ConfigError> {
        for (name, price) in self.file.prices.iter() {
            if let Err(missing) = price.price(name.as_str()) {
                return Err(self.error(
                    &[key::PRICES, name.as_str()],
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

/// `[prices."MODEL"]`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename = "a price")]
pub(super) struct PriceTable {
    /// Dollars for a million input tokens.
    pub input: Option<TokenPrice>,
    /// Dollars for a million tokens read from a cache; without it that of `input`.
    pub cached: Option<TokenPrice>,
    /// Dollars for a million tokens written to a cache; without it that of `input`.
    pub written: Option<TokenPrice>,
    /// Dollars for a million output tokens.
    pub output: Option<TokenPrice>,
}

/// Micro-dollars for a million tokens. Some models are free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TokenPrice(#[serde(serialize_with = "as_dollars")] u64);

value!(
    TokenPrice,
    "dollars for a million tokens such as 2.5, from 0 to 100000",
    { "type": "number", "minimum": 0, "maximum": 100_000 },
    |dollars: f64| (0.0..=1e5).contains(&dollars).then(|| Self((dollars * 1e6).round() as u64))
);

impl PriceTable {
    /// The whole price. Missing keys come from the built-in price of the model.
    fn price(&self, name: &str) -> Result<Price, &'static str> {
        let price_of = |price: Option<TokenPrice>| price.map(|price| price.0);
        let built_in = prices::built_in_price(name);
        let input = price_of(self.input).or(built_in.map(|price| price.input)).ok_or(key::INPUT)?;
        let output = price_of(self.output).or(built_in.map(|price| price.output)).ok_or(key::OUTPUT)?;
        // A configured price for input also applies to caches.
        let built_in = built_in.filter(|_| self.input.is_none());
        Ok(Price {
            input,
            cached: price_of(self.cached).or(built_in.map(|price| price.cached)).unwrap_or(input),
            written: price_of(self.written).or(built_in.map(|price| price.written)).unwrap_or(input),
            output,
        })
    }
}
