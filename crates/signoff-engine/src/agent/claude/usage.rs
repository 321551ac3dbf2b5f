//! Claude Code's reported token usage.
//!
//! Every result contains the usage per model since the previous result, which adds up to that of this process.
//! The totals beside it include earlier processes of a resumed session and exclude sub-agents.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use signoff_core::agent_output::{ModelSpend, TokenCounts};

use super::SESSIONS;
use super::outcome::ClaudeOutcome;
use crate::agent::bounded::AnswerTokens;
use crate::agent::{AgentExit, json_line};

/// Usage of this process so far.
#[derive(Debug, Default)]
pub struct ClaudeUsageLedger {
    /// The model at the start.
    pub model: Option<String>,
    by_model: BTreeMap<String, ModelSpend>,
    /// Usage reported by older versions, which have only totals.
    totals: Option<ModelSpend>,
    /// Messages since the last result, whose final usage is only known from the next result.
    unbilled: AnswerTokens,
    /// Usage from session files, if there was no result.
    from_files: AnswerTokens,
}

/// Token counts of one or several messages, with the cost if they are those of a model.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub struct ClaudeUsage {
    #[serde(alias = "inputTokens")]
    input_tokens: u64,
    #[serde(alias = "cacheCreationInputTokens")]
    cache_creation_input_tokens: u64,
    #[serde(alias = "cacheReadInputTokens")]
    cache_read_input_tokens: u64,
    #[serde(alias = "outputTokens")]
    output_tokens: u64,
    #[serde(rename = "costUSD")]
    cost_usd: Option<f64>,
    /// The prices behind `cost_usd`.
    #[serde(rename = "costBasis")]
    cost_basis: Option<PriceBasis>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PriceBasis {
    /// Claude Code does not know the model and used the prices of another one.
    Unknown,
    #[serde(other)]
    Known,
}

impl ClaudeUsageLedger {
    /// Records the start of a message. Each of its parts repeats it.
    pub fn record_message(&mut self, id: &str, model: Option<&str>, usage: ClaudeUsage) {
        self.unbilled.record(id, model, usage.tokens());
    }

    /// Records a message from a session file. The stream contains only the usage at its start.
    pub fn record_from_file(&mut self, id: &str, model: &str, usage: ClaudeUsage) {
        let billed = !self.by_model.is_empty() || self.totals.is_some();
        if !billed {
            self.from_files.record(id, Some(model), usage.tokens());
            self.unbilled.remove(id);
        } else if self.unbilled.is_recent(id) {
            self.unbilled.record(id, Some(model), usage.tokens());
        }
    }

    pub fn record_bill(&mut self, outcome: &ClaudeOutcome) {
        self.unbilled = AnswerTokens::default();
        if let Some(models) = &outcome.model_usage_since_last_result.0 {
            for (model, usage) in models {
                let spent = self.by_model.entry(model.clone()).or_default();
                spent.model = Some(model.clone());
                spent.tokens = spent.tokens.plus(usage.tokens());
                let cost = usage.known_cost().map(micro_usd);
                spent.cost_micro_usd = [spent.cost_micro_usd, cost].into_iter().flatten().reduce(u64::saturating_add);
            }
        } else if let Some(usage) = outcome.usage.0 {
            let before = self.totals.take().unwrap_or_default();
            self.totals = Some(ModelSpend {
                model: self.model.clone(),
                tokens: before.tokens.plus(usage.tokens()),
                // A running total.
                cost_micro_usd: outcome.total_cost_usd.0.map(micro_usd).or(before.cost_micro_usd),
            });
        }
    }

    /// The usage of this process. Older versions report the cost of the whole session after a resume, so it is
    /// omitted.
    pub fn into_usage(self, resumed: bool) -> Vec<ModelSpend> {
        let open = self.unbilled.add_to(self.from_files.into_totals());
        let cost = |one: &ModelSpend| one.cost_micro_usd.filter(|_| !resumed);
        let older = self.totals.map(|one| ModelSpend { cost_micro_usd: cost(&one), ..one });
        let all = self.by_model.into_values().chain(older).chain(open);
        all.filter(|one| one.tokens != TokenCounts::default() || one.cost_micro_usd > Some(0)).collect()
    }
}

fn micro_usd(dollars: f64) -> u64 {
    (dollars * 1e6).round() as u64
}

impl ClaudeUsage {
    /// Claude Code counts cache reads and writes separately from other input.
    pub fn tokens(self) -> TokenCounts {
        let (cached, written) = (self.cache_read_input_tokens, self.cache_creation_input_tokens);
        let input = self.input_tokens.saturating_add(cached).saturating_add(written);
        TokenCounts { input, cached, written, output: self.output_tokens }
    }

    /// The cost, unless it was guessed.
    fn known_cost(self) -> Option<f64> {
        self.cost_usd.filter(|_| self.cost_basis != Some(PriceBasis::Unknown))
    }
}

#[derive(Deserialize)]
struct ClaudeSessionLine<'a> {
    timestamp: Timestamp,
    r#type: &'a str,
    #[serde(borrow)]
    message: ClaudeSessionMessage<'a>,
}

#[derive(Deserialize)]
struct ClaudeSessionMessage<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    model: Cow<'a, str>,
    usage: ClaudeUsage,
}

/// Reads the usage of this attempt from `PROJECT/SESSION.jsonl` and, for each sub-agent,
/// `PROJECT/SESSION/subagents/AGENT.jsonl`.
pub fn read_session_usage(exit: &AgentExit<'_>, ledger: &mut ClaudeUsageLedger) {
    for path in json_line::jsonl_files(&exit.home.join(SESSIONS), 4) {
        json_line::for_each_line(&path, |line| {
            if let Some(ClaudeSessionMessage { id, model, usage }) = parse_answer(line, exit.started_at) {
                ledger.record_from_file(&id, &model, usage);
            }
        });
    }
}

fn parse_answer(line: &str, since: Timestamp) -> Option<ClaudeSessionMessage<'_>> {
    let ClaudeSessionLine { timestamp, r#type, message } = serde_json::from_str(line).ok()?;
    (timestamp >= since && r#type == "assistant").then_some(message)
}
