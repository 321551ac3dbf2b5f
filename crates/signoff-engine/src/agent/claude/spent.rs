//! What Claude Code says it used.
//!
//! Its results count per model what was used since the result before, which adds up to what this process used. The totals
//! beside that go on from a session that was resumed, and leave out the agents that it asked.

use std::collections::BTreeMap;

use serde::Deserialize;
use signoff_core::heard::{Spent, Tokens};

use crate::agent::bounded::Answers;

/// What the processes of one session used so far.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Which model it began with.
    pub model: Option<String>,
    by_model: BTreeMap<String, Spent>,
    /// By versions that know no better.
    older: Option<Spent>,
    /// What was begun since the last result: of this nobody says what it came to, unless there is another result.
    open: Answers,
    /// What its files say of who came to no result.
    kept: Answers,
}

/// The counts of a message, or of all messages together.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub struct Usage {
    input_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
    output_tokens: u64,
}

/// The same per model.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ModelUsage {
    input_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
    output_tokens: u64,
    #[serde(rename = "costUSD")]
    cost_usd: Option<f64>,
    /// Which prices it took.
    cost_basis: Option<Basis>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Basis {
    /// None that it knows for this model: it took those of another.
    Unknown,
    #[serde(other)]
    Known,
}

/// What a result says about it.
#[derive(Debug, Default)]
pub struct Bill {
    pub since_last: Option<BTreeMap<String, ModelUsage>>,
    pub usage: Option<Usage>,
    pub total_cost_usd: Option<f64>,
}

impl Ledger {
    /// Notes a message that has begun. The same is told with each of its parts.
    pub fn begun(&mut self, id: &str, model: Option<&str>, usage: Usage) {
        self.open.note(id, model, usage.tokens());
    }

    /// Notes what a file says of a message. The stream tells of one only how it begins.
    pub fn kept(&mut self, id: &str, model: &str, usage: Usage) {
        let billed = !self.by_model.is_empty() || self.older.is_some();
        if !billed {
            self.kept.note(id, Some(model), usage.tokens());
            self.open.leave_out(id);
        } else if self.open.is_recent(id) {
            self.open.note(id, Some(model), usage.tokens());
        }
    }

    pub fn closed(&mut self, bill: &Bill) {
        self.open = Answers::default();
        match (&bill.since_last, bill.usage) {
            (Some(models), _) => {
                for (model, usage) in models {
                    let spent = self.by_model.entry(model.clone()).or_default();
                    spent.model = Some(model.clone());
                    spent.tokens = spent.tokens.and(usage.tokens());
                    let cost = usage.told_cost().map(micro);
                    spent.cost_micro_usd = sum(spent.cost_micro_usd, cost);
                }
            }
            (None, Some(usage)) => {
                let before = self.older.take().unwrap_or_default();
                self.older = Some(Spent {
                    model: self.model.clone(),
                    tokens: before.tokens.and(usage.tokens()),
                    // A running total.
                    cost_micro_usd: bill.total_cost_usd.map(micro).or(before.cost_micro_usd),
                });
            }
            (None, None) => {}
        }
    }

    /// All of it. Of a session that was resumed, older versions tell the cost as a whole.
    pub fn all(self, resumed: bool) -> Vec<Spent> {
        let open = self.open.after(self.kept.all());
        let cost = |one: &Spent| one.cost_micro_usd.filter(|_| !resumed);
        let older = self.older.map(|one| Spent { cost_micro_usd: cost(&one), ..one });
        let all = self.by_model.into_values().chain(older).chain(open);
        all.filter(|one| one.tokens != Tokens::default() || one.cost_micro_usd > Some(0)).collect()
    }
}

fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
        (one, other) => one.or(other),
    }
}

fn micro(dollars: f64) -> u64 {
    (dollars * 1e6).round() as u64
}

impl Usage {
    pub fn tokens(self) -> Tokens {
        let (cached, written) = (self.cache_read_input_tokens, self.cache_creation_input_tokens);
        tokens(self.input_tokens, (cached, written), self.output_tokens)
    }
}

impl ModelUsage {
    /// A price that it guessed is none.
    fn told_cost(self) -> Option<f64> {
        self.cost_usd.filter(|_| self.cost_basis != Some(Basis::Unknown))
    }

    fn tokens(self) -> Tokens {
        let (cached, written) = (self.cache_read_input_tokens, self.cache_creation_input_tokens);
        tokens(self.input_tokens, (cached, written), self.output_tokens)
    }
}

/// It counts what came out of a cache or went into it apart.
fn tokens(fresh: u64, (cached, written): (u64, u64), output: u64) -> Tokens {
    Tokens { input: fresh.saturating_add(cached).saturating_add(written), cached, written, output }
}
