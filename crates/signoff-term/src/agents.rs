//! The report of `signoff agents`: configured and installed agents, as JSON and as text.

use schemars::JsonSchema;
use serde::Serialize;
use signoff_core::redact::Secrets;
use signoff_core::review::Usage;
use signoff_core::sandbox::SandboxBackend;
use signoff_core::settings::AgentKind;

use crate::fit::truncate_line;
use crate::json::{DoctorCheck, VERSION};

/// `agents --json`: all configured and all installed agents.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AgentsReport {
    #[schemars(extend("const" = 1))]
    pub version: u32,
    /// Whether every configured, named or checked agent passed the checks that ran.
    pub ok: bool,
    /// The sandbox that restricts what agents may write.
    #[serde(rename = "hold")]
    pub sandbox: SandboxBackend,
    pub agents: Vec<AgentRow>,
}

/// One agent.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AgentRow {
    pub name: String,
    pub kind: AgentKind,
    /// False for an agent that is installed but not configured.
    pub configured: bool,
    /// Path of its program; null if it was not found, or if the agent is part of signoff.
    pub program: Option<String>,
    /// Null if unknown.
    pub program_version: Option<String>,
    /// The oldest supported version; null if every version is supported.
    pub least_version: Option<String>,
    pub too_old: bool,
    /// `unknown`: the login is stored where signoff cannot read it, or the agent needs none.
    #[schemars(with = "String", extend("enum" = ["logged_in", "not_logged_in", "unknown", "not_needed"]))]
    pub login: LoginState,
    /// The environment variable that holds the key, or the location of the login.
    pub login_by: Option<String>,
    /// The configured model; null: the agent's default.
    pub model: Option<String>,
    /// Why it cannot be used.
    pub problem: Option<String>,
    /// How to fix the problem.
    pub hint: Option<String>,
    /// Further information.
    pub note: Option<String>,
    /// Result of the check; null without `--check`.
    pub check: Option<AgentCheckReport>,
}

/// Whether an agent is logged in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoginState {
    LoggedIn,
    NotLoggedIn,
    Unknown,
    NotNeeded,
}

/// Result of asking an agent for a one-word answer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AgentCheckReport {
    pub works: bool,
    /// The answer of the agent, or its error message.
    pub message: String,
    /// How to fix the problem.
    pub hint: Option<String>,
    pub duration_ms: u64,
    pub cost_usd: f64,
    /// At least part of the cost is computed from list prices.
    pub cost_is_estimated: bool,
    pub input_tokens: u64,
    pub output_tokens: u64,
}

/// Why an agent did not answer, and how to fix it.
#[derive(Debug)]
pub struct FailedAnswer {
    pub message: String,
    pub hint: Option<String>,
}

impl AgentCheckReport {
    pub fn new(answer: Result<String, FailedAnswer>, usage: Usage, duration_ms: u64) -> Self {
        let (works, message, hint) = match answer {
            Ok(message) => (true, message, None),
            Err(FailedAnswer { message, hint }) => (false, message, hint),
        };
        let Usage { cost_micro_usd, cost_is_estimated, input_tokens, output_tokens, .. } = usage;
        let cost_usd = cost_micro_usd as f64 / 1_000_000.0;
        Self { works, message, hint, duration_ms, cost_usd, cost_is_estimated, input_tokens, output_tokens }
    }

    fn text_lines(&self) -> Vec<String> {
        // Not every agent reports its cost.
        let approx = if self.cost_is_estimated { "~" } else { "" };
        let cost = if self.cost_usd > 0.0 { format!(", {approx}${:.4}", self.cost_usd) } else { String::new() };
        let seconds = self.duration_ms as f64 / 1000.0;
        let (input, output) = (self.input_tokens, self.output_tokens);
        let spent = format!("{seconds:.1} s, {input} tokens in, {output} out{cost}");
        let result = if self.works { "works" } else { "does not work" };
        let first = format!("{result}: {} ({spent})", truncate_line(&self.message, MESSAGE_WIDTH));
        let hint = self.hint.iter().map(|hint| format!("hint: {hint}"));
        [first].into_iter().chain(hint).collect()
    }
}

/// Maximum width of a message from an agent or its program.
const MESSAGE_WIDTH: usize = 300;

impl AgentRow {
    /// Removes these secrets from the messages of programs.
    #[must_use]
    pub fn redacted(self, secrets: &Secrets) -> Self {
        let clean = |text: Option<String>| text.map(|text| secrets.redact_text(&text));
        let check = self.check.map(|check| AgentCheckReport { message: secrets.redact_text(&check.message), ..check });
        Self { problem: clean(self.problem), note: clean(self.note), check, ..self }
    }

    /// Whether the agent passed the checks that ran.
    pub fn works(&self) -> bool {
        self.problem.is_none() && self.check.as_ref().is_none_or(|check| check.works)
    }

    fn mark(&self) -> &'static str {
        let proven = self.check.as_ref().is_some_and(|check| check.works);
        let doubtful = self.login == LoginState::NotLoggedIn || self.note.is_some();
        match (self.works(), doubtful && !proven) {
            (false, _) => "✗",
            (true, true) => "!",
            (true, false) => "✓",
        }
    }

    /// The login state for people.
    pub fn login(&self) -> Option<String> {
        match (self.login, &self.login_by) {
            (LoginState::LoggedIn, Some(by)) if by.starts_with('~') => Some(format!("logged in ({by})")),
            (LoginState::LoggedIn, Some(by)) => Some(format!("logged in (key in {by})")),
            (LoginState::LoggedIn, None) => Some("logged in".to_owned()),
            (LoginState::NotLoggedIn, _) => Some("not logged in".to_owned()),
            (LoginState::Unknown, _) => Some("login unknown".to_owned()),
            (LoginState::NotNeeded, _) => None,
        }
    }

    /// The row as text.
    pub fn text(&self) -> String {
        let kind = self.kind.into_str();
        let kind = (self.name != kind).then(|| format!("kind {kind}"));
        let program = match &self.program {
            Some(program) => Some(truncate_line(program, MESSAGE_WIDTH)),
            None if self.login == LoginState::NotNeeded => Some("part of signoff".to_owned()),
            None => None,
        };
        let model = self.model.as_ref().map(|model| format!("model {}", truncate_line(model, 60)));
        let not_configured = (!self.configured).then(|| "not configured".to_owned());
        let parts = [kind, self.program_version.clone(), program, self.login(), model, not_configured];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let mut lines = vec![format!("{} {}: {}", self.mark(), truncate_line(&self.name, 40), parts.join(", "))];
        lines.extend(self.problem.iter().map(|problem| truncate_line(problem, MESSAGE_WIDTH)));
        lines.extend(self.hint.iter().map(|hint| format!("hint: {hint}")));
        lines.extend(self.note.iter().map(|note| truncate_line(note, MESSAGE_WIDTH)));
        lines.extend(self.check.iter().flat_map(AgentCheckReport::text_lines));
        lines.join("\n    ") + "\n"
    }
}

impl AgentsReport {
    pub fn new(agents: Vec<AgentRow>, ok: bool, sandbox: SandboxBackend) -> Self {
        Self { version: VERSION, ok, sandbox, agents }
    }

    /// The line after the rows; `sandbox` is the result of the sandbox check.
    pub fn text(sandbox: &DoctorCheck) -> String {
        format!("sandbox: {}\n", sandbox.message)
    }
}
