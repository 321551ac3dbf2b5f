//! `kind = "copilot"`: GitHub Copilot CLI.
//!
//! A trusted folder may bring its own hooks and servers, so no folder is trusted. Copilot does not read the
//! repository's instructions by itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use signoff_core::agent_output::{AgentError, AgentErrorKind, ModelSpend, OutputLine, TokenCounts};
use signoff_core::report_token::ReportTool;

use super::bounded::{KeptOutput, summarize_arguments};
use super::json_line::{DefaultOnError, JsonStream};
use super::{
    AccessMode, AgentExit, AgentFile, AgentSpec, CommandLine, EnvChanges, REPORT_SERVER, ReportEndpoint,
    SandboxBackend, credentials, error_text, first_line, flags_with_values, set_variables,
};
use crate::attempt::read_start;

/// Its configuration directory below the home.
const CONFIG_DIR: &str = "copilot";

/// Its sessions below the home, one directory each.
const SESSIONS: &str = "copilot/session-state";

/// Its unpacked program below the home.
const PACKAGES: &str = "copilot-packages";

/// File below the home with the usage of its session.
const USAGE_FILE: &str = "copilot-usage.json";

/// Copy of that file from before this attempt resumed the session.
const USAGE_BEFORE_FILE: &str = "copilot-usage-before.json";

pub const SESSION_PATHS: [&str; 5] =
    [SESSIONS, "copilot/session-store.db", "copilot/session-store.db-wal", "copilot/session-store.db-shm", USAGE_FILE];

pub const USAGE_PATHS: [&str; 1] = [USAGE_BEFORE_FILE];

pub fn command_line(spec: &AgentSpec<'_>) -> CommandLine {
    let line = spec.command_line("copilot", arguments(spec));
    CommandLine { environment: environment(spec), files: files(spec), ..line }
}

fn arguments(spec: &AgentSpec<'_>) -> Vec<String> {
    let usage = spec.home.join(USAGE_FILE).display().to_string();
    let mut arguments: Vec<String> = [
        "--output-format",
        "json",
        "--no-ask-user",
        "--no-custom-instructions",
        "--disable-builtin-mcps",
        "--disable-client-telemetry",
        "--usage-output-file",
        &usage,
    ]
    .map(str::to_owned)
    .into();
    match spec.access {
        AccessMode::Write => arguments.push("--allow-all-tools".to_owned()),
        AccessMode::Read => arguments.extend(read_only_args(spec)),
    }
    if spec.report_endpoint.is_some() {
        arguments.extend(["--additional-mcp-config".to_owned(), format!("@{}", servers_file(spec).display())]);
    }
    arguments.extend(flags_with_values([("--model", spec.model), ("--resume", spec.resume_session)]));
    arguments
}

/// Restricts a reader: only these tools are available, and writing is denied as well.
fn read_only_args(spec: &AgentSpec<'_>) -> Vec<String> {
    let read_tools = ["view", "grep", "glob"].map(str::to_owned);
    let ours = ReportTool::ALL.iter().map(|tool| format!("{REPORT_SERVER}-{}", tool.into_str()));
    let ours = ours.filter(|_| spec.report_endpoint.is_some());
    let offered = read_tools.into_iter().chain(ours).map(|tool| format!("--available-tools={tool}"));
    let denied = ["write", "shell", "url"].map(|tool| format!("--deny-tool={tool}"));
    let allowed = spec.report_endpoint.map(|_| format!("--allow-tool={REPORT_SERVER}"));
    offered.chain(denied).chain(allowed).collect()
}

fn environment(spec: &AgentSpec<'_>) -> EnvChanges {
    let home = spec.home.join(CONFIG_DIR).display().to_string();
    let packages = spec.home.join(PACKAGES).display().to_string();
    let unpacks = (spec.sandbox != SandboxBackend::None).then_some(("COPILOT_PKG_CACHE_HOME", packages.as_str()));
    let own = [("COPILOT_HOME", home.as_str()), ("COPILOT_AUTO_UPDATE", "false"), ("NO_COLOR", "1")];
    set_variables(own.into_iter().chain(unpacks)).collect()
}

fn servers_file(spec: &AgentSpec<'_>) -> PathBuf {
    spec.home.join("copilot-mcp.json")
}

fn files(spec: &AgentSpec<'_>) -> Vec<AgentFile> {
    let servers = spec
        .report_endpoint
        .map(|report_endpoint| AgentFile::Text { path: servers_file(spec), text: servers_json(&report_endpoint) });
    let before = spec
        .resume_session
        .map(|_| AgentFile::Copy { path: spec.home.join(USAGE_BEFORE_FILE), source: spec.home.join(USAGE_FILE) });
    servers.into_iter().chain(login(spec)).chain(before).chain(package_links(spec)).collect()
}

/// Copilot unpacks itself before it starts, once per version. A sandboxed agent may not write to the user's
/// cache, because the user runs programs from there. So links to the unpacked versions are created, and others
/// are unpacked in the agent's home.
fn package_links(spec: &AgentSpec<'_>) -> Vec<AgentFile> {
    let unpacked = spec.user_home.join(".cache/copilot/pkg");
    let systems = if spec.sandbox == SandboxBackend::None { Vec::new() } else { subdirectories(&unpacked) };
    let versions = systems.iter().flat_map(|system| subdirectories(system));
    let own = |version: &Path| Some(spec.home.join(PACKAGES).join("pkg").join(version.strip_prefix(&unpacked).ok()?));
    versions.filter_map(|of| Some(AgentFile::Link { path: own(&of)?, source: of })).collect()
}

/// The subdirectories of a directory, sorted by name.
fn subdirectories(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut inside: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    inside.sort();
    inside
}

/// Configuration of the report server. Copilot inserts the token from its environment.
fn servers_json(report_endpoint: &ReportEndpoint<'_>) -> String {
    let mut server = report_endpoint.http_server();
    server["tools"] = json!(["*"]);
    format!("{:#}\n", json!({ "mcpServers": { REPORT_SERVER: server } }))
}

/// The user's login, if no keychain contains it. The trusted folders in the same file are not copied.
fn login(spec: &AgentSpec<'_>) -> Option<AgentFile> {
    const LOGIN: [&str; 8] = [
        "copilotTokens",
        "copilot_tokens",
        "lastLoggedInUser",
        "last_logged_in_user",
        "loggedInUsers",
        "logged_in_users",
        "storeTokenPlaintext",
        "store_token_plaintext",
    ];
    let mut user_config: Map<String, Value> = credentials::read_settings(&spec.user_home.join(".copilot/config.json"));
    user_config.retain(|key, _| LOGIN.contains(&key.as_str()));
    let path = spec.home.join(CONFIG_DIR).join("config.json");
    (!user_config.is_empty()).then(|| AgentFile::Text { path, text: format!("{:#}\n", Value::from(user_config)) })
}

/// Parses the output of `copilot --output-format json`, and its usage file. The final line contains exit code 0 even if
/// the answer was aborted; an earlier line shows that.
#[derive(Debug, Default)]
pub struct CopilotStream {
    error: Option<AgentError>,
    /// The exit code in its final line.
    final_code: Option<i64>,
}

#[derive(Deserialize)]
struct CopilotLine<'a> {
    #[serde(rename = "type")]
    kind: CopilotEvent,
    #[serde(default, borrow)]
    data: CopilotData<'a>,
    #[serde(rename = "sessionId")]
    session: Option<String>,
    #[serde(rename = "exitCode")]
    code: Option<i64>,
}

#[derive(Deserialize)]
enum CopilotEvent {
    #[serde(rename = "assistant.message")]
    Message,
    #[serde(rename = "assistant.turn_retry")]
    Retry,
    #[serde(rename = "tool.execution_start")]
    ToolStart,
    #[serde(rename = "tool.execution_complete")]
    ToolEnd,
    #[serde(rename = "session.mcp_server_status_changed")]
    Server,
    #[serde(rename = "session.error")]
    Error,
    #[serde(rename = "abort")]
    Abort,
    #[serde(rename = "result")]
    Result,
    #[serde(other)]
    Unknown,
}

/// Fields of all kinds of lines.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct CopilotData<'a> {
    content: DefaultOnError<Option<String>>,
    tool_requests: DefaultOnError<Vec<IgnoredAny>>,
    tool_call_id: DefaultOnError<String>,
    tool_name: DefaultOnError<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    error: DefaultOnError<CopilotFailure>,
    server_name: DefaultOnError<String>,
    status: DefaultOnError<String>,
    reason: DefaultOnError<String>,
    error_type: DefaultOnError<String>,
    message: DefaultOnError<String>,
    status_code: DefaultOnError<Option<u16>>,
}

/// A string for a server, an object for a tool.
#[derive(Deserialize, Default)]
#[serde(default)]
struct CopilotFailure {
    code: String,
}

impl JsonStream for CopilotStream {
    const MESSAGE_TYPE: &'static str = "assistant.message";

    fn parse(&mut self, line: &str, kept: &mut KeptOutput) -> Option<Vec<OutputLine>> {
        let CopilotLine { kind, data, session, code } = serde_json::from_str(line).ok()?;
        let shown = match kind {
            CopilotEvent::Message => apply_message(data.content.0?, !data.tool_requests.0.is_empty(), kept),
            CopilotEvent::Retry => Some(OutputLine::Waiting { reason: data.reason.0, delay: None }),
            CopilotEvent::ToolStart => {
                Some(kept.begin_tool(&data.tool_call_id.0, data.tool_name.0, summarize_arguments(data.arguments)))
            }
            CopilotEvent::ToolEnd => {
                kept.message.clear();
                let tool = kept.calls.end(&data.tool_call_id.0).filter(|_| data.error.0.code == "denied");
                tool.map(|tool| kept.deny(tool))
            }
            CopilotEvent::Server => {
                apply_server_status(&data, kept);
                None
            }
            CopilotEvent::Error => Some(OutputLine::Error(self.apply_error(&data))),
            CopilotEvent::Abort => {
                self.error.get_or_insert_with(|| AgentError::new(AgentErrorKind::Other, "the answer was aborted"));
                None
            }
            CopilotEvent::Result => {
                kept.summary.session = session;
                self.final_code = code;
                None
            }
            CopilotEvent::Unknown => None,
        };
        Some(shown.into_iter().collect())
    }

    fn finish(&mut self, exit: &AgentExit<'_>, kept: &mut KeptOutput) -> Option<AgentError> {
        let session = &mut kept.summary.session;
        *session = session.take().or_else(|| find_session(exit.home));
        kept.summary.spent = read_usage(exit.home);
        self.error.take().or_else(|| self.missing_end(exit))
    }
}

/// Text in a message that also calls tools counts as text before the tool use.
fn apply_message(text: String, calls_tools: bool, kept: &mut KeptOutput) -> Option<OutputLine> {
    if calls_tools {
        kept.message.clear();
    } else {
        kept.message.add(&text);
    }
    (!text.is_empty()).then_some(OutputLine::Text(text))
}

fn apply_server_status(CopilotData { server_name, status, .. }: &CopilotData<'_>, kept: &mut KeptOutput) {
    if server_name.0 == REPORT_SERVER {
        match status.0.as_str() {
            "connected" => kept.summary.reached_report_server = Some(true),
            "failed" | "needs-auth" => kept.summary.reached_report_server = Some(false),
            _ => {}
        }
    }
}

impl CopilotStream {
    fn apply_error(&mut self, CopilotData { error_type, message, status_code, .. }: &CopilotData<'_>) -> String {
        let kind = match (error_type.0.as_str(), error_text::classify(status_code.0, &message.0, None)) {
            ("authentication", _) => AgentErrorKind::NotLoggedIn,
            (_, AgentErrorKind::Other) if status_code.0.is_none() && is_broken(&message.0) => {
                AgentErrorKind::InvalidResponse
            }
            (_, kind) => kind,
        };
        let message = join_lines(&message.0);
        self.error.get_or_insert_with(|| AgentError::new(kind, &message));
        message
    }

    fn missing_end(&self, end: &AgentExit<'_>) -> Option<AgentError> {
        match self.final_code {
            Some(0) if end.code == Some(0) => None,
            Some(0) | None => Some(missing_result_error(end)),
            Some(code) => Some(AgentError::new(AgentErrorKind::Other, format!("exit code {code}"))),
        }
    }
}

/// The error of a process without a result. Only stderr shows a missing login or an unknown flag.
fn missing_result_error(end: &AgentExit<'_>) -> AgentError {
    let stderr = String::from_utf8_lossy(end.stderr);
    let first = first_line(&stderr);
    if first.starts_with("Error: No session") {
        return AgentError::new(AgentErrorKind::SessionGone, first);
    }
    if first.contains("unknown option") {
        return AgentError::new(AgentErrorKind::Version, first);
    }
    if error_text::classify(None, &first, None) == AgentErrorKind::NotLoggedIn {
        return AgentError::new(AgentErrorKind::NotLoggedIn, first);
    }
    end.missing_result_error()
}

fn is_broken(message: &str) -> bool {
    ["error decoding response body", "Failed to parse", "HTTP request"].iter().any(|phrase| message.contains(phrase))
}

/// Joins all lines.
fn join_lines(message: &str) -> String {
    message.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

/// The only session in the agent's new home, if the output did not name one.
fn find_session(home: &Path) -> Option<String> {
    let mut sessions = fs::read_dir(home.join(SESSIONS)).ok()?.flatten();
    let session = sessions.next()?.file_name().into_string().ok()?;
    sessions.next().is_none().then_some(session)
}

/// Maximum size of the usage file.
const MAX_USAGE_FILE: u64 = 1024 * 1024;

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct CopilotUsageFile {
    model_metrics: BTreeMap<String, CopilotModel>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CopilotModel {
    usage: CopilotUsage,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct CopilotUsage {
    /// Including cache reads.
    input_tokens: u64,
    output_tokens: u64,
    cache_read_tokens: u64,
    cache_write_tokens: u64,
}

impl CopilotUsage {
    fn tokens(&self) -> TokenCounts {
        TokenCounts {
            input: self.input_tokens,
            cached: self.cache_read_tokens,
            written: self.cache_write_tokens,
            output: self.output_tokens,
        }
    }
}

/// The usage of this attempt. Copilot's file counts the whole session and contains no cost.
fn read_usage(home: &Path) -> Vec<ModelSpend> {
    let before = read_usage_file(&home.join(USAGE_BEFORE_FILE));
    let spent = |(model, CopilotModel { usage }): (String, CopilotModel)| {
        let before = before.get(&model).map(|model| model.usage.tokens()).unwrap_or_default();
        ModelSpend { model: Some(model), tokens: usage.tokens().minus(before), cost_micro_usd: None }
    };
    read_usage_file(&home.join(USAGE_FILE)).into_iter().map(spent).collect()
}

fn read_usage_file(file: &Path) -> BTreeMap<String, CopilotModel> {
    let used: CopilotUsageFile = serde_json::from_slice(&read_start(file, MAX_USAGE_FILE)).unwrap_or_default();
    used.model_metrics
}
