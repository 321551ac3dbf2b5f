//! `kind = "qwen"`: Qwen Code.
//!
//! Its settings are written as system settings, which override the user's and the repository's. Otherwise
//! hooks, servers and texts of the repository would be used.

mod stream;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use signoff_core::agent_output::{ModelSpend, TokenCounts};

pub use stream::QwenStream;

use super::credentials::{self, GuardedVariable};
use super::gemini::{LoginSettings, servers_config};
use super::{AccessMode, AgentFile, AgentSpec, CommandLine, EnvChanges, REPORT_SERVER, set_variables};
use crate::agent::json_line::DefaultOnError;
use crate::agent::{AgentExit, bounded, flags_with_values, json_line};

pub const SESSION_PATHS: [&str; 1] = [".qwen/projects"];

/// Variables that are always set, to a neutral value. Qwen Code reads unset or empty variables from a
/// `.qwen/.env` or `.env` of the repository.
const GUARDED: [GuardedVariable; 11] = [
    ("OPENAI_BASE_URL", "https://api.openai.com/v1"),
    ("ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
    ("NODE_TLS_REJECT_UNAUTHORIZED", "1"),
    ("QWEN_TLS_INSECURE", "0"),
    ("QWEN_SYSTEM_MD", "0"),
    ("QWEN_WRITE_SYSTEM_MD", "0"),
    ("QWEN_SANDBOX", "false"),
    ("QWEN_TELEMETRY_ENABLED", "false"),
    ("QWEN_CODE_UNATTENDED_RETRY", "false"),
    ("GIT_CONFIG_COUNT", "0"),
    ("GIT_SSH_COMMAND", "ssh"),
];

/// Tools denied to readers besides those its plan mode denies: they start other work, write, or run later.
const DENIED_TO_READERS: &str = "write_file edit notebook_edit run_shell_command monitor agent send_message skill \
     enter_worktree exit_worktree record_artifact report_findings loop_wakeup update_goal cron_create cron_delete \
     task_stop save_memory exit_plan_mode ask_user_question web_fetch web_search";

pub fn command_line(spec: &AgentSpec<'_>) -> CommandLine {
    let mode = match spec.access {
        AccessMode::Write => "yolo",
        AccessMode::Read => "plan",
    };
    let arguments = ["-o", "stream-json", "--approval-mode", mode].map(str::to_owned).into_iter();
    let chosen = flags_with_values([("-m", spec.model), ("--resume", spec.resume_session)]);
    let user_settings: QwenUserSettings = credentials::read_settings(&spec.user_home.join(".qwen/settings.json"));
    CommandLine {
        environment: environment(spec, &user_settings),
        files: files(spec, &user_settings),
        ..spec.command_line("qwen", arguments.chain(chosen))
    }
}

/// Its configuration directory in its home.
fn config_dir(spec: &AgentSpec<'_>) -> std::path::PathBuf {
    spec.home.join(".qwen")
}

fn environment(spec: &AgentSpec<'_>, user_settings: &QwenUserSettings) -> EnvChanges {
    let directory = config_dir(spec);
    let (own_home, rules) = (directory.display().to_string(), directory.join("system.json"));
    let own = [
        ("QWEN_HOME", own_home.as_str()),
        ("QWEN_CODE_SYSTEM_SETTINGS_PATH", &rules.display().to_string()),
        ("QWEN_CODE_NO_RELAUNCH", "true"),
        ("QWEN_CODE_SUPPRESS_YOLO_WARNING", "1"),
        ("NO_COLOR", "1"),
    ];
    let model = spec.model.map(|model| ("OPENAI_MODEL", model));
    let guarded = credentials::guarded_values(spec, &GUARDED, &user_settings.variables(spec));
    set_variables(own.into_iter().chain(model)).chain(guarded).collect()
}

fn files(spec: &AgentSpec<'_>, user_settings: &QwenUserSettings) -> Vec<AgentFile> {
    let (own, user_dir) = (config_dir(spec), spec.user_home.join(".qwen"));
    let text = format!("{:#}\n", settings(spec, user_settings));
    let settings = AgentFile::Text { path: own.join("system.json"), text };
    let login = "oauth_creds.json";
    let login = AgentFile::Link { path: own.join(login), source: user_dir.join(login) };
    let variables = AgentFile::Copy { path: own.join(".env"), source: user_dir.join(".env") };
    vec![settings, login, variables]
}

fn settings(spec: &AgentSpec<'_>, user_settings: &QwenUserSettings) -> Value {
    let mut settings = json!({
        "privacy": { "usageStatisticsEnabled": false },
        "telemetry": { "enabled": false },
        "general": { "enableAutoUpdate": false },
        // It already retries seven times. Ten times as many, with minutes in between, is signoff's decision.
        "model": { "generationConfig": { "maxRetries": 0 } },
        // The model does not find a tool that it has to search for.
        "tools": { "toolSearch": { "enabled": false } },
        // These would send additional requests to the model.
        "memory": { "enableManagedAutoMemory": false, "enableManagedAutoDream": false, "enableAutoSkill": false },
        // Do not run anything from the repository.
        "disableAllHooks": true,
        "skills": { "disabledLevels": ["project", "user", "extension", "bundled"] },
        "mcp": { "allowed": [REPORT_SERVER] },
        "context": {
            "fileName": ["SIGNOFF-NONE.md"],
            // Otherwise every `@word` in the prompt is searched for in all files, and the first match is read.
            "fileFiltering": { "enableRecursiveFileSearch": false },
        },
        // No messages to other sessions.
        "agents": { "crossSessionMessaging": false },
    });
    if let Some(auth) = user_settings.auth(spec) {
        settings["security"] = json!({ "auth": auth });
    }
    for (name, value) in [("modelProviders", &user_settings.model_providers), ("env", &user_settings.env)] {
        if let Some(value) = value {
            settings[name] = value.clone();
        }
    }
    if spec.access == AccessMode::Read {
        settings["permissions"] = json!({ "deny": DENIED_TO_READERS.split_whitespace().collect::<Vec<_>>() });
    }
    if let Some(report_endpoint) = spec.report_endpoint {
        settings["mcpServers"] = servers_config(&report_endpoint);
    }
    settings
}

/// The part of the user's settings that contains the login.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct QwenUserSettings {
    security: LoginSettings,
    model_providers: Option<Value>,
    env: Option<Value>,
}

impl QwenUserSettings {
    fn auth(&self, spec: &AgentSpec<'_>) -> Option<Value> {
        let key = "OPENAI_API_KEY";
        let has_key = spec.has_variable(key) || self.variables(spec).contains_key(key);
        self.security.method(spec, key, "openai", has_key)
    }

    /// The variables that Qwen Code would find in the user's home and settings.
    fn variables(&self, spec: &AgentSpec<'_>) -> BTreeMap<String, String> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let address = self.security.auth.as_ref().and_then(|auth| auth.get("baseUrl")).and_then(text);
        let mut all: BTreeMap<String, String> =
            address.map(|address| ("OPENAI_BASE_URL".to_owned(), address)).into_iter().collect();
        let env = self.env.as_ref().and_then(Value::as_object).into_iter().flatten();
        all.extend(env.filter_map(|(name, value)| Some((name.clone(), text(value)?))));
        all.extend(credentials::read_env_file(&spec.user_home.join(".env")));
        all.extend(credentials::read_env_file(&spec.user_home.join(".qwen/.env")));
        all
    }
}

#[derive(Deserialize)]
struct QwenChatLine {
    timestamp: Timestamp,
    subtype: Option<String>,
    #[serde(rename = "systemPayload")]
    payload: DefaultOnError<Option<QwenPayload>>,
}

#[derive(Deserialize)]
struct QwenPayload {
    #[serde(rename = "uiEvent")]
    event: QwenEvent,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct QwenEvent {
    #[serde(rename = "event.name")]
    name: String,
    model: Option<String>,
    input_token_count: u64,
    output_token_count: u64,
    cached_content_token_count: u64,
}

/// The usage of this attempt in a session, from `PROJECT/chats/SESSION.jsonl`. There is one project, named after its
/// path. Empty if the usage is unknown.
pub fn read_chat_usage(exit: &AgentExit<'_>, session: &str) -> Vec<ModelSpend> {
    let mut spent = Vec::new();
    let mut files = json_line::jsonl_files(&exit.home.join(SESSION_PATHS[0]), 3);
    files.retain(|path| path.file_stem().is_some_and(|name| name == session));
    for path in files {
        json_line::for_each_line(&path, |line| {
            let Some(event) = parse_answer(line, exit.started_at) else { return };
            let (input, cached) = (event.input_token_count, event.cached_content_token_count);
            let tokens = TokenCounts { input, cached, written: 0, output: event.output_token_count };
            bounded::add_tokens(&mut spent, event.model.as_deref(), tokens);
        });
    }
    spent
}

/// The event of an answer.
fn parse_answer(line: &str, since: Timestamp) -> Option<QwenEvent> {
    let line: QwenChatLine = serde_json::from_str(line).ok()?;
    let QwenPayload { event } = line.payload.0.filter(|_| line.subtype.as_deref() == Some("ui_telemetry"))?;
    (line.timestamp >= since && event.name == "qwen-code.api_response").then_some(event)
}
