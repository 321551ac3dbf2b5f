//! `kind = "opencode"`: `opencode run`, which prints a JSON line for each part of its answer.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use signoff_core::agent_output::{AgentError, AgentErrorKind, ModelSpend, OutputLine, TokenCounts};

use super::bounded::{self, KeptOutput};
use super::json_line::{DefaultOnError, JsonStream};
use super::{
    AccessMode, AgentExit, AgentFile, AgentSpec, CommandLine, EnvChanges, REPORT_SERVER, ReportEndpoint, credentials,
    error_text, first_line,
};

pub const SESSION_PATHS: [&str; 3] = [
    ".local/share/opencode/opencode.db",
    ".local/share/opencode/opencode.db-wal",
    ".local/share/opencode/opencode.db-shm",
];

pub fn command_line(spec: &AgentSpec<'_>) -> CommandLine {
    let config = spec.home.join("opencode.json");
    let mut environment = environment(spec);
    environment.push(("OPENCODE_CONFIG".to_owned(), Some(config.display().to_string())));
    let config = AgentFile::Text { path: config, text: config_json(spec) };
    let files = login_files(spec).into_iter().chain([config]).collect();
    CommandLine { environment, files, ..spec.command_line("opencode", arguments(spec)) }
}

fn arguments(spec: &AgentSpec<'_>) -> Vec<String> {
    let mut arguments = vec!["run", "--format", "json"];
    match spec.resume_session {
        Some(session) => arguments.extend(["--session", session]),
        // Without a title it asks a model for one, which is not in the reported usage.
        None => arguments.extend(["--title", "signoff"]),
    }
    if let Some(model) = spec.model {
        arguments.extend(["--model", model]);
    }
    if spec.access == AccessMode::Write {
        // Without a user to answer, permission requests would be refused.
        arguments.push("--auto");
    }
    arguments.into_iter().map(str::to_owned).collect()
}

/// Disables downloads and the repository's configuration. Its own plugins stay enabled, because they contain
/// the logins of subscriptions.
const SWITCHES: [&str; 9] = [
    "OPENCODE_PURE",
    "OPENCODE_DISABLE_AUTOUPDATE",
    "OPENCODE_DISABLE_CLAUDE_CODE",
    "OPENCODE_DISABLE_EXTERNAL_SKILLS",
    "OPENCODE_DISABLE_LSP_DOWNLOAD",
    "OPENCODE_DISABLE_MODELS_FETCH",
    "OPENCODE_DISABLE_PROJECT_CONFIG",
    "OPENCODE_DISABLE_SHARE",
    "OPENCODE_DISABLE_TERMINAL_TITLE",
];

/// Base directories for its files, below a home.
const BASE_DIRS: [(&str, &str); 4] = [
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_STATE_HOME", ".local/state"),
    ("XDG_CACHE_HOME", ".cache"),
];

/// Variables that would override the configuration file.
const OVERRIDING_VARIABLES: [&str; 2] = ["OPENCODE_CONFIG_CONTENT", "OPENCODE_CONFIG_DIR"];

fn environment(spec: &AgentSpec<'_>) -> EnvChanges {
    let home = spec.home.display().to_string();
    let below = |directory: &str| Some(spec.home.join(directory).display().to_string());
    let directories = BASE_DIRS.into_iter().map(|(name, directory)| (name, below(directory)));
    // A writer's tools use the user's home; opencode itself does not.
    let homes = [("OPENCODE_TEST_HOME", true), ("HOME", spec.access == AccessMode::Read)];
    let homes = homes.into_iter().filter(|(_, set)| *set).map(|(name, _)| (name, Some(home.clone())));
    let switches = SWITCHES.into_iter().map(|name| (name, Some("true".to_owned())));
    let permission =
        (spec.access == AccessMode::Read).then(|| ("OPENCODE_PERMISSION", Some(denied_permissions().to_string())));
    let above = OVERRIDING_VARIABLES.into_iter().map(|name| (name, None));
    let all = directories.chain(homes).chain(switches).chain(permission).chain(above);
    all.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Permissions denied to a reader. opencode does not show denied tools to the model.
fn denied_permissions() -> Value {
    const TOOLS: [&str; 9] =
        ["edit", "bash", "task", "webfetch", "websearch", "external_directory", "todowrite", "skill", "question"];
    TOOLS.into_iter().map(|tool| (tool.to_owned(), json!("deny"))).collect::<Map<_, _>>().into()
}

/// The complete configuration: the user's providers and models, and nothing else of the user's.
fn config_json(spec: &AgentSpec<'_>) -> String {
    let mut config = Map::new();
    for name in ["opencode.json", "opencode.jsonc"] {
        let user_config: Map<String, Value> =
            credentials::read_settings(&spec.user_home.join(".config/opencode").join(name));
        config.extend(user_config.into_iter().filter(|(key, _)| USER_KEYS.contains(&key.as_str())));
    }
    let mut config = Value::from(config);
    config["autoupdate"] = json!(false);
    config["share"] = json!("disabled");
    // It would keep a copy of the worktree after each step.
    config["snapshot"] = json!(false);
    if let Some(ReportEndpoint { url, variable }) = spec.report_endpoint {
        config["mcp"] = json!({ REPORT_SERVER: {
            "type": "remote",
            "url": url,
            "headers": { "Authorization": format!("Bearer {{env:{variable}}}") },
            "enabled": true,
            "oauth": false,
        }});
    }
    format!("{config:#}\n")
}

/// Keys copied from the user's configuration.
const USER_KEYS: [&str; 5] = ["provider", "model", "small_model", "enabled_providers", "disabled_providers"];

/// The login, whose renewal invalidates the old one, and the list of models.
fn login_files(spec: &AgentSpec<'_>) -> [AgentFile; 2] {
    let (login, models) = (".local/share/opencode/auth.json", ".cache/opencode/models.json");
    [
        AgentFile::Link { path: spec.home.join(login), source: spec.user_home.join(login) },
        AgentFile::Copy { path: spec.home.join(models), source: spec.user_home.join(models) },
    ]
}

/// Parses the output of `opencode run --format json`. There is no final line: the run succeeded if its last step ended
/// with `stop` and no line is an error.
#[derive(Debug, Default)]
pub struct OpencodeStream {
    /// Why the last step ended. `None` while a step runs.
    finish_reason: Option<String>,
    steps: u32,
    tokens: TokenCounts,
    dollars: f64,
    error: Option<AgentError>,
}

#[derive(Deserialize)]
struct OpencodeLine {
    #[serde(rename = "type")]
    kind: OpencodeEvent,
    #[serde(rename = "sessionID", default)]
    session: String,
    #[serde(default)]
    part: OpencodePart,
    error: DefaultOnError<OpencodeFailure>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum OpencodeEvent {
    StepStart,
    Text,
    Reasoning,
    ToolUse,
    StepFinish,
    Error,
    #[serde(other)]
    Unknown,
}

/// Fields of all kinds of lines.
#[derive(Deserialize, Default)]
struct OpencodePart {
    text: DefaultOnError<Option<String>>,
    tool: DefaultOnError<String>,
    state: DefaultOnError<OpencodeToolState>,
    reason: DefaultOnError<String>,
    tokens: DefaultOnError<StepTokens>,
    cost: DefaultOnError<f64>,
}

#[derive(Deserialize, Default)]
struct OpencodeToolState {
    title: DefaultOnError<String>,
    error: DefaultOnError<String>,
    input: DefaultOnError<OpencodeToolInput>,
}

/// The arguments of a tool that are shown. For an unknown tool, its name. Models pass anything to tools.
#[derive(Deserialize, Default)]
struct OpencodeToolInput {
    tool: DefaultOnError<String>,
    error: DefaultOnError<String>,
    command: DefaultOnError<String>,
    #[serde(rename = "filePath")]
    file: DefaultOnError<String>,
}

#[derive(Deserialize, Default)]
struct StepTokens {
    /// Without cache reads and writes.
    input: DefaultOnError<u64>,
    /// Without reasoning.
    output: DefaultOnError<u64>,
    reasoning: DefaultOnError<u64>,
    cache: DefaultOnError<OpencodeCacheTokens>,
}

#[derive(Deserialize, Default)]
struct OpencodeCacheTokens {
    read: DefaultOnError<u64>,
    write: DefaultOnError<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OpencodeFailure {
    name: String,
    data: OpencodeFailureData,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct OpencodeFailureData {
    message: String,
    status_code: Option<u16>,
    response_headers: BTreeMap<String, DefaultOnError<String>>,
    response_body: String,
    metadata: BTreeMap<String, DefaultOnError<String>>,
}

impl JsonStream for OpencodeStream {
    /// Also the key of their text.
    const MESSAGE_TYPE: &'static str = "text";

    fn parse(&mut self, line: &str, kept: &mut KeptOutput) -> Option<Vec<OutputLine>> {
        let OpencodeLine { kind, session, part, error } = serde_json::from_str(line).ok()?;
        if matches!(kind, OpencodeEvent::Text) && part.text.0.is_none() {
            return None;
        }
        let own = is_own(session, kept);
        let shown = match kind {
            OpencodeEvent::StepStart => {
                self.steps += 1;
                if own {
                    self.finish_reason = None;
                }
                None
            }
            // The text of an unknown line counts, because it is addressed to us.
            OpencodeEvent::Text | OpencodeEvent::Unknown => {
                if let Some(text) = part.text.0.as_deref().filter(|_| own) {
                    kept.message.add(text);
                }
                part.text.0.map(OutputLine::Text)
            }
            OpencodeEvent::Reasoning => None,
            OpencodeEvent::ToolUse => {
                if own {
                    kept.message.clear();
                }
                Some(apply_tool(part.tool.0, part.state.0, kept))
            }
            OpencodeEvent::StepFinish => {
                self.count(&part);
                if own {
                    // opencode prints no line for calls of unknown tools; only this reason shows that one happened.
                    if part.reason.0 == "tool-calls" {
                        kept.message.clear();
                    }
                    self.finish_reason = Some(part.reason.0);
                }
                None
            }
            OpencodeEvent::Error => Some(OutputLine::Error(self.apply_error(error.0))),
        };
        Some(shown.into_iter().collect())
    }

    fn finish(&mut self, exit: &AgentExit<'_>, kept: &mut KeptOutput) -> Option<AgentError> {
        kept.summary.spent = self.spent().into_iter().collect();
        self.error.take().or_else(|| self.missing_end(exit))
    }
}

/// Whether a line belongs to the main session and not to a sub-agent's.
fn is_own(session: String, kept: &mut KeptOutput) -> bool {
    match &kept.summary.session {
        Some(own) => *own == session,
        None => {
            kept.summary.session = (!session.is_empty()).then_some(session);
            true
        }
    }
}

fn apply_tool(tool: String, state: OpencodeToolState, kept: &mut KeptOutput) -> OutputLine {
    let OpencodeToolState { title: DefaultOnError(title), error: DefaultOnError(error), input: DefaultOnError(input) } =
        state;
    let OpencodeToolInput { tool: DefaultOnError(meant), error: DefaultOnError(wrong), command, file } = input;
    if tool == "invalid" {
        return if wrong.contains("unavailable tool") {
            kept.deny(bounded::tool_call(&meant, String::new()))
        } else {
            OutputLine::Tool { name: meant, about: first_line(&wrong) }
        };
    }
    let about = [title, command.0, file.0].iter().find(|text| !text.is_empty()).map(|text| first_line(text));
    let about = about.unwrap_or_default();
    if error.contains("rejected permission") || error.contains("specified a rule") {
        return kept.deny(bounded::tool_call(&tool, about));
    }
    if error.is_empty() && tool.strip_prefix(REPORT_SERVER).is_some_and(|rest| rest.starts_with('_')) {
        kept.summary.reached_report_server = Some(true);
    }
    OutputLine::Tool { name: tool, about }
}

impl OpencodeStream {
    fn count(&mut self, step: &OpencodePart) {
        let StepTokens { input, output, reasoning, cache: DefaultOnError(cache) } = &step.tokens.0;
        self.tokens = self.tokens.plus(TokenCounts {
            input: input.0.saturating_add(cache.read.0).saturating_add(cache.write.0),
            cached: cache.read.0,
            written: cache.write.0,
            output: output.0.saturating_add(reasoning.0),
        });
        self.dollars += step.cost.0.max(0.0);
    }

    fn spent(&self) -> Option<ModelSpend> {
        // The cost is 0 if opencode has no price.
        let micro = (self.dollars * 1e6).round() as u64;
        let cost_micro_usd = (micro > 0).then_some(micro);
        let used = self.tokens != TokenCounts::default();
        used.then_some(ModelSpend { model: None, tokens: self.tokens, cost_micro_usd })
    }

    fn apply_error(&mut self, OpencodeFailure { name, data }: OpencodeFailure) -> String {
        let message = if data.message.is_empty() { name } else { first_line(&data.message) };
        let message = if self.steps == 0 && message.starts_with("Unexpected server error") {
            // The only known cause of this error is an unknown model.
            format!("{message} (before its first step: `opencode models` lists the available models)")
        } else {
            message
        };
        let kind = error_kind(&data, &message);
        self.error.get_or_insert_with(|| AgentError::new(kind, message.clone()));
        message
    }

    fn missing_end(&self, end: &AgentExit<'_>) -> Option<AgentError> {
        match self.finish_reason.as_deref() {
            Some("stop") => None,
            Some("length") => Some(AgentError::new(AgentErrorKind::OwnLimit, "the answer reached the token limit")),
            Some("tool-calls" | "") | None => Some(missing_result_error(end)),
            Some(reason) => Some(AgentError::new(AgentErrorKind::Other, format!("its last step ended with {reason}"))),
        }
    }
}

/// The error of a process without a final step. Only stderr shows an unknown session.
fn missing_result_error(end: &AgentExit<'_>) -> AgentError {
    let error = end.missing_result_error();
    if error.message.contains("Session not found") {
        return AgentError { kind: AgentErrorKind::SessionGone, ..error };
    }
    error
}

fn error_kind(data: &OpencodeFailureData, message: &str) -> AgentErrorKind {
    let seconds = data.response_headers.get("retry-after").and_then(|word| word.0.trim().parse().ok());
    // A broken connection has a code of its own.
    let broken = data.metadata.get("code").is_some_and(|code| !code.0.is_empty());
    let kind = error_text::classify(data.status_code, &format!("{message}\n{}", data.response_body), seconds);
    let unknown = kind == AgentErrorKind::Other && data.status_code.is_none();
    if broken && unknown { AgentErrorKind::InvalidResponse } else { kind }
}
