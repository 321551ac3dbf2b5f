//! `kind = "gemini"`: Gemini CLI.
//!
//! Its settings and tool rules are written into its own home. `--skip-trust` lets it work in the worktree
//! without using the settings there. The corresponding environment variable would make it use them.

mod stream;

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use signoff_core::agent_output::{ModelSpend, TokenCounts};

pub use stream::GeminiStream;

use super::credentials::{self, GuardedVariable};
use super::{AccessMode, AgentFile, AgentSpec, CommandLine, EnvChanges, REPORT_SERVER, ReportEndpoint, set_variables};
use crate::agent::bounded::AnswerTokens;
use crate::agent::{AgentExit, flags_with_values, json_line};

/// Directory of its sessions.
const SESSIONS: &str = ".gemini/tmp";

pub const SESSION_PATHS: [&str; 2] = [SESSIONS, ".gemini/projects.json"];

/// Files with its logins.
const LOGIN_FILES: [&str; 3] = ["oauth_creds.json", "google_accounts.json", "gemini-credentials.json"];

/// Variables that are always set. Gemini CLI reads a `.gemini/.env` of the repository regardless of its settings.
const GUARDED: [GuardedVariable; 39] = [
    ("GEMINI_API_KEY", ""),
    ("GOOGLE_API_KEY", ""),
    ("GOOGLE_GEMINI_BASE_URL", ""),
    ("GOOGLE_VERTEX_BASE_URL", ""),
    ("GOOGLE_GENAI_USE_VERTEXAI", ""),
    ("GOOGLE_GENAI_USE_GCA", ""),
    ("GOOGLE_GENAI_API_VERSION", ""),
    ("GOOGLE_CLOUD_PROJECT", ""),
    ("GOOGLE_CLOUD_PROJECT_ID", ""),
    ("GOOGLE_CLOUD_LOCATION", ""),
    ("GOOGLE_CLOUD_ACCESS_TOKEN", ""),
    ("GOOGLE_APPLICATION_CREDENTIALS", ""),
    // An empty value would be used as an address.
    ("CODE_ASSIST_ENDPOINT", "https://cloudcode-pa.googleapis.com"),
    ("CODE_ASSIST_API_VERSION", ""),
    ("GEMINI_API_KEY_AUTH_MECHANISM", ""),
    ("GEMINI_CLI_CUSTOM_HEADERS", ""),
    ("GEMINI_CLI_SYSTEM_SETTINGS_PATH", ""),
    ("GEMINI_CLI_SYSTEM_DEFAULTS_PATH", ""),
    ("GEMINI_MODEL", ""),
    ("GEMINI_SYSTEM_MD", ""),
    ("GEMINI_WRITE_SYSTEM_MD", ""),
    ("GEMINI_SANDBOX", ""),
    ("GEMINI_SANDBOX_PROXY_COMMAND", ""),
    ("GEMINI_TELEMETRY_ENABLED", "false"),
    ("GEMINI_CLI_IDE_SERVER_STDIO_COMMAND", ""),
    ("HTTPS_PROXY", ""),
    ("https_proxy", ""),
    ("HTTP_PROXY", ""),
    ("http_proxy", ""),
    ("NODE_OPTIONS", ""),
    ("NODE_TLS_REJECT_UNAUTHORIZED", ""),
    ("NODE_EXTRA_CA_CERTS", ""),
    ("LD_PRELOAD", ""),
    ("BASH_ENV", ""),
    ("ENV", ""),
    ("LD_AUDIT", ""),
    ("LD_LIBRARY_PATH", ""),
    ("GIT_CONFIG_COUNT", "0"),
    // An empty value would be used as a command.
    ("GIT_SSH_COMMAND", "ssh"),
];

/// Tool rules for a reader, besides the tools of our server. The most important denial is `exit_plan_mode`:
/// without a user to ask, Gemini CLI grants it and then denies nothing any more.
pub(super) const READ_ONLY_RULES: &str = r#"[[rule]]
toolName = ["read_file", "read_many_files", "list_directory", "glob", "grep_search", "update_topic"]
decision = "allow"
priority = 900

[[rule]]
mcpName = "signoff"
toolName = "*"
decision = "allow"
priority = 900

[[rule]]
toolName = ["exit_plan_mode", "enter_plan_mode", "write_file", "replace", "run_shell_command", "invoke_agent", "activate_skill", "save_memory", "ask_user", "google_web_search", "web_fetch"]
decision = "deny"
priority = 950
denyMessage = "You may only read here."
"#;

/// Denies every other tool, including those of future versions.
const DENY_OTHERS_RULE: &str = r#"
[[rule]]
toolName = "*"
decision = "deny"
priority = 1
denyMessage = "You may only read here."
"#;

pub fn command_line(spec: &AgentSpec<'_>) -> CommandLine {
    let rules = rules_path(spec);
    let mut arguments = vec!["-e".to_owned(), "none".to_owned()];
    match spec.access {
        AccessMode::Write => arguments.extend(["--approval-mode", "yolo"].map(str::to_owned)),
        AccessMode::Read => {
            arguments.extend(["--policy".to_owned(), rules.display().to_string()]);
            arguments.extend(["--approval-mode", "plan"].map(str::to_owned));
        }
    }
    arguments.extend(["--skip-trust", "-o", "stream-json"].map(str::to_owned));
    arguments.extend(flags_with_values([("-m", spec.model), ("--resume", spec.resume_session)]));
    CommandLine { environment: environment(spec), files: files(spec, rules), ..spec.command_line("gemini", arguments) }
}

/// Path of the tool rules for a reader.
pub(super) fn rules_path(spec: &AgentSpec<'_>) -> PathBuf {
    config_dir(spec).join("signoff.toml")
}

/// Its configuration directory in its home.
fn config_dir(spec: &AgentSpec<'_>) -> PathBuf {
    spec.home.join(".gemini")
}

fn environment(spec: &AgentSpec<'_>) -> EnvChanges {
    let home = spec.home.display().to_string();
    let own = [
        ("GEMINI_CLI_HOME", home.as_str()),
        // Saves a process, which would also not pass on signals.
        ("GEMINI_CLI_NO_RELAUNCH", "true"),
        ("GEMINI_CLI_TRUST_WORKSPACE", ""),
        ("NO_COLOR", "1"),
    ];
    let guarded = credentials::guarded_values(spec, &GUARDED, &user_variables(spec));
    set_variables(own).chain(guarded).collect()
}

/// The user's own variables, from the file that Gemini CLI would read.
fn user_variables(spec: &AgentSpec<'_>) -> BTreeMap<String, String> {
    let first = spec.user_home.join(".gemini/.env");
    credentials::read_env_file(&if first.is_file() { first } else { spec.user_home.join(".env") })
}

fn files(spec: &AgentSpec<'_>, rules: PathBuf) -> Vec<AgentFile> {
    let (directory, theirs) = (config_dir(spec), spec.user_home.join(".gemini"));
    let text = format!("{:#}\n", settings(spec));
    let settings = AgentFile::Text { path: directory.join("settings.json"), text };
    let rules = AgentFile::Text { path: rules, text: [READ_ONLY_RULES, DENY_OTHERS_RULE].concat() };
    let logins = LOGIN_FILES.map(|name| AgentFile::Copy { path: directory.join(name), source: theirs.join(name) });
    let read = (spec.access == AccessMode::Read).then_some(rules);
    [settings].into_iter().chain(read).chain(logins).collect()
}

fn settings(spec: &AgentSpec<'_>) -> Value {
    let mut settings = json!({
        "privacy": { "usageStatisticsEnabled": false },
        "telemetry": { "enabled": false },
        "general": {
            "enableAutoUpdate": false,
            "enableAutoUpdateNotification": false,
            // One retry for short failures. Signoff handles longer waits.
            "maxAttempts": 2,
        },
        // Do not run anything from the repository.
        "hooksConfig": { "enabled": false },
        "skills": { "enabled": false },
        "experimental": { "enableAgents": false },
        "advanced": { "ignoreLocalEnv": true },
        // Otherwise every `@word` in the prompt is searched for in all files, and the first match is read.
        "context": { "fileFiltering": { "enableRecursiveFileSearch": false } },
    });
    if let Some(auth) = auth_settings(spec) {
        settings["security"] = json!({ "auth": auth });
    }
    if let Some(report_endpoint) = spec.report_endpoint {
        settings["mcpServers"] = servers_config(&report_endpoint);
    }
    settings
}

/// Configuration of the report server. Gemini CLI inserts the token from its environment.
pub fn servers_config(report_endpoint: &ReportEndpoint<'_>) -> Value {
    json!({ REPORT_SERVER: {
        "httpUrl": report_endpoint.url,
        "headers": { "Authorization": format!("Bearer ${}", report_endpoint.variable) },
        "trust": true,
        "timeout": 30_000,
    }})
}

/// The part of the user's settings that contains the login method, also in Qwen Code.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct LoginSettings {
    pub auth: Option<Value>,
}

impl LoginSettings {
    /// The login method: a key configured for this agent in the variable `key`, then the user's choice, then an existing
    /// key.
    pub fn method(&self, spec: &AgentSpec<'_>, key: &str, by_key: &str, has_key: bool) -> Option<Value> {
        let by_key = json!({ "selectedType": by_key });
        if spec.agent.env.contains_key(key) {
            return Some(by_key);
        }
        let chosen = self.auth.clone().filter(|auth| auth.get("selectedType").is_some());
        chosen.or(has_key.then_some(by_key))
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct GeminiSettings {
    security: LoginSettings,
}

/// The login method. Gemini CLI would not use an existing key by itself if an endpoint is set too.
fn auth_settings(spec: &AgentSpec<'_>) -> Option<Value> {
    let key = "GEMINI_API_KEY";
    let user_settings: GeminiSettings = credentials::read_settings(&spec.user_home.join(".gemini/settings.json"));
    let elsewhere = ["GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"].iter().any(|name| spec.has_variable(name));
    let has_key = spec.has_variable(key) || user_variables(spec).contains_key(key);
    user_settings.security.method(spec, key, "gemini-api-key", has_key && !elsewhere)
}

#[derive(Deserialize)]
struct GeminiChatLine {
    id: String,
    timestamp: Timestamp,
    model: Option<String>,
    tokens: GeminiChatTokens,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct GeminiChatTokens {
    input: u64,
    output: u64,
    cached: u64,
    /// Including reasoning.
    total: u64,
}

/// The usage of this attempt from `PROJECT/chats/SESSION.jsonl` and the files of sub-agents beside or below it.
/// An answer is repeated after its tool calls.
pub fn read_chat_usage(exit: &AgentExit<'_>) -> Vec<ModelSpend> {
    let mut answers = AnswerTokens::default();
    for path in json_line::jsonl_files(&exit.home.join(SESSIONS), 4) {
        json_line::for_each_line(&path, |line| {
            record(&mut answers, line, exit.started_at);
        });
    }
    answers.add_to(Vec::new())
}

/// Records a line. Returns `None` if it contains nothing of interest.
fn record(answers: &mut AnswerTokens, line: &str, since: Timestamp) -> Option<()> {
    let GeminiChatLine { id, timestamp, model, tokens } = serde_json::from_str(line).ok()?;
    let GeminiChatTokens { input, output, cached, total } = tokens;
    if timestamp >= since {
        let output = total.saturating_sub(input).max(output);
        answers.record(&id, model.as_deref(), TokenCounts { input, cached, written: 0, output });
    }
    Some(())
}
