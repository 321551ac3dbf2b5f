//! Parses Claude Code's `result` line, or the error output if there is none, and its token usage.
//!
//! Every result contains the usage per model since the previous result, which adds up to that of this process.
//! The totals beside it include earlier processes of a resumed session and exclude sub-agents.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use signoff_core::agent_output::{AgentError, AgentErrorKind, ModelSpend, TokenCounts};

use super::SESSIONS;
use crate::agent::AgentExit;
use crate::agent::bounded::AnswerTokens;
use crate::agent::error_text::{kind_by_status, kind_of_phrase};
use crate::agent::json_line::{self, DefaultOnError};

/// The last error of the provider.
#[derive(Debug, Default)]
pub struct ClaudeProviderError {
    /// Claude Code's name of the error.
    pub error_name: Option<String>,
    /// The wait the provider asked for.
    pub retry_after: Option<Duration>,
    /// When the subscription's limit resets, in seconds since 1970.
    pub resets_at: Option<i64>,
}

/// A `result` line. Fields besides the result itself may be missing or invalid.
#[derive(Debug, Deserialize)]
pub struct ClaudeOutcome {
    subtype: String,
    is_error: bool,
    result: Option<String>,
    #[serde(default)]
    errors: Vec<String>,
    terminal_reason: Option<String>,
    api_error_status: Option<u16>,
    pub session_id: Option<String>,
    pub permission_denials: DefaultOnError<Vec<ClaudeDenial>>,
    /// The usage by model since the previous result.
    pub model_usage_since_last_result: DefaultOnError<Option<BTreeMap<String, ClaudeUsage>>>,
    pub usage: DefaultOnError<Option<ClaudeUsage>>,
    pub total_cost_usd: DefaultOnError<Option<f64>>,
}

/// A denied tool call.
#[derive(Debug, Deserialize)]
pub struct ClaudeDenial {
    pub tool_name: String,
    pub tool_use_id: String,
    pub tool_input: Option<Box<RawValue>>,
}

impl ClaudeOutcome {
    /// The final message, or `None` after an error.
    pub fn message(&self) -> Option<&str> {
        self.result.as_deref().filter(|_| self.is_success())
    }

    fn is_success(&self) -> bool {
        !self.is_error && self.subtype == "success"
    }

    pub fn error(&self, provider_error: &ClaudeProviderError, exit: &AgentExit<'_>) -> Option<AgentError> {
        if self.is_success() {
            return None;
        }
        let text = self.error_text();
        Some(AgentError::new(self.error_kind(&text, provider_error, exit), &text))
    }

    /// The error text, without diagnostics that are meant for Claude Code's developers.
    fn error_text(&self) -> String {
        let Self { result, errors, terminal_reason, .. } = self;
        let errors: Vec<&str> =
            errors.iter().map(String::as_str).filter(|error| !error.starts_with("[ede_diagnostic]")).collect();
        let candidates = result.clone().into_iter().chain([errors.join("; ")]).chain(terminal_reason.clone());
        candidates.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
    }

    fn error_kind(&self, text: &str, provider_error: &ClaudeProviderError, exit: &AgentExit<'_>) -> AgentErrorKind {
        match (self.subtype.as_str(), self.terminal_reason.as_deref()) {
            ("error_max_turns" | "error_max_budget_usd", _) => return AgentErrorKind::OwnLimit,
            (_, Some("prompt_too_long")) => return AgentErrorKind::PromptTooLong,
            _ => {}
        }
        let limited = || AgentErrorKind::RateLimited { seconds: provider_error.wait_seconds(text, exit) };
        match provider_error.error_name.as_deref() {
            Some("rate_limit") => return limited(),
            None if text.contains("limit reached") => return limited(),
            Some("authentication_failed") => return AgentErrorKind::NotLoggedIn,
            Some("billing_error") => return AgentErrorKind::OutOfCredit,
            Some("model_not_found") => return AgentErrorKind::ModelUnavailable,
            Some("overloaded") => return AgentErrorKind::Overloaded,
            _ => {}
        }
        let status = self.api_error_status.or_else(|| parse_status(text));
        match (status.and_then(kind_by_status), provider_error.error_name.as_deref()) {
            (Some(AgentErrorKind::RateLimited { .. }), _) => limited(),
            (Some(kind), _) => kind,
            // Without a status there was no response, or no readable one.
            (None, Some("server_error" | "unknown")) if status.is_none() => AgentErrorKind::InvalidResponse,
            (None, _) => kind_by_phrase(text).unwrap_or(AgentErrorKind::Other),
        }
    }
}

impl ClaudeProviderError {
    /// The wait, if it is known.
    fn wait_seconds(&self, text: &str, exit: &AgentExit<'_>) -> Option<u64> {
        let resets_at = self.resets_at.or_else(|| parse_reset(text));
        let until = resets_at.map(|at| at.saturating_sub(exit.ended_at.as_second()).max(0));
        let until = until.and_then(|seconds| u64::try_from(seconds).ok());
        until.or_else(|| self.retry_after.map(|delay| delay.as_secs()))
    }
}

/// Parses older versions' `usage limit reached|1794810000`.
fn parse_reset(text: &str) -> Option<i64> {
    text.split_once("limit reached|")?.1.trim().parse().ok()
}

/// Parses older versions' `API Error: 529 …`.
fn parse_status(text: &str) -> Option<u16> {
    let rest = text.strip_prefix("API Error: ")?;
    rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

/// Beginnings of errors in older versions, which have only a text.
const BEGINNINGS: [(AgentErrorKind, &[&str]); 4] = [
    (AgentErrorKind::SessionGone, &["No conversation found with session ID"]),
    (AgentErrorKind::NotLoggedIn, &["Invalid API key", "Not logged in"]),
    (AgentErrorKind::OutOfCredit, &["Credit balance is too low"]),
    (AgentErrorKind::PromptTooLong, &["Prompt is too long"]),
];

fn kind_by_phrase(text: &str) -> Option<AgentErrorKind> {
    let known = BEGINNINGS.iter().find(|(_, group)| group.iter().any(|start| text.starts_with(start)));
    let too_long = || text.contains("context window limit").then_some(AgentErrorKind::PromptTooLong);
    let no_model =
        || (text.contains("model") && text.contains("not supported")).then_some(AgentErrorKind::ModelUnavailable);
    known.map(|(kind, _)| *kind).or_else(too_long).or_else(no_model)
}

/// Phrases in stderr about a process that did not start.
const START_ERRORS: [(AgentErrorKind, &[&str]); 4] = [
    (AgentErrorKind::Version, &["error: unknown option", "error: option"]),
    (AgentErrorKind::SessionGone, &["No conversation found with session ID"]),
    (AgentErrorKind::PromptTooLong, &["stdin input exceeds"]),
    (AgentErrorKind::ReportServer, &["Invalid MCP configuration"]),
];

/// The error of a process without a result. If it did not start, stderr contains the reason.
pub fn missing_result_error(exit: &AgentExit<'_>) -> AgentError {
    let kind = kind_of_phrase(&String::from_utf8_lossy(exit.stderr), &START_ERRORS);
    AgentError { kind: kind.unwrap_or(AgentErrorKind::NoResult), ..exit.missing_result_error() }
}

/// Usage of this process so far.
#[derive(Debug, Default)]
pub struct ClaudeUsageLedger {
    /// The model at the start.
    pub model: Option<String>,
    by_model: BTreeMap<String, ModelSpend>,
    /// Usage reported by older versions, which have only totals.
    totals: Option<ModelSpend>,
    /// Messages since the last result, whose final usage is only known from the next result.
    since_result: AnswerTokens,
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
    /// Claude Code has no prices for the model and used those of another one.
    Unknown,
    #[serde(other)]
    Known,
}

impl ClaudeUsageLedger {
    /// Records the start of a message. Each of its parts repeats it.
    pub fn record_message(&mut self, id: &str, model: Option<&str>, usage: ClaudeUsage) {
        self.since_result.record(id, model, usage.tokens());
    }

    /// Records a message from a session file. The stream contains only the usage at its start.
    pub fn record_from_file(&mut self, id: &str, model: &str, usage: ClaudeUsage) {
        let billed = !self.by_model.is_empty() || self.totals.is_some();
        if !billed {
            self.from_files.record(id, Some(model), usage.tokens());
            self.since_result.remove(id);
        } else if self.since_result.is_recent(id) {
            self.since_result.record(id, Some(model), usage.tokens());
        }
    }

    pub fn record_result(&mut self, outcome: &ClaudeOutcome) {
        self.since_result = AnswerTokens::default();
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
        let open = self.since_result.add_to(self.from_files.add_to(Vec::new()));
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
