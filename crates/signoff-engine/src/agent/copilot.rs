//! `kind = "copilot"`: GitHub Copilot CLI.
//!
//! A trusted folder may bring its own hooks and servers, so no folder is trusted. Copilot does not read the
//! repository's instructions by itself.

mod stream;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use signoff_core::report_token::ReportTool;

use super::{
    AccessMode, AgentAdapter, AgentFile, AgentSpec, CommandLine, OutputParser, REPORT_SERVER, ReportEndpoint,
    SandboxBackend, credentials,
};

pub struct CopilotAdapter;

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

impl AgentAdapter for CopilotAdapter {
    fn command_line(&self, spec: &AgentSpec<'_>) -> CommandLine {
        let line = spec.command_line("copilot", arguments(spec));
        CommandLine { environment: environment(spec), files: files(spec), ..line }
    }

    fn session_paths(&self) -> &'static [&'static str] {
        &[
            SESSIONS,
            "copilot/session-store.db",
            "copilot/session-store.db-wal",
            "copilot/session-store.db-shm",
            USAGE_FILE,
        ]
    }

    fn usage_paths(&self) -> &'static [&'static str] {
        &[USAGE_BEFORE_FILE]
    }

    fn output_parser(&self) -> Box<dyn OutputParser> {
        Box::new(stream::CopilotStream::default())
    }
}

fn arguments(spec: &AgentSpec<'_>) -> Vec<String> {
    let usage = spec.home.join(USAGE_FILE).display().to_string();
    let mut words: Vec<String> = [
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
        AccessMode::Write => words.push("--allow-all-tools".to_owned()),
        AccessMode::Read => words.extend(read_only_args(spec)),
    }
    if spec.reporting.is_some() {
        words.extend(["--additional-mcp-config".to_owned(), format!("@{}", servers_file(spec).display())]);
    }
    for (flag, value) in [("--model", spec.model), ("--resume", spec.resume_session)] {
        words.extend(value.into_iter().flat_map(|value| [flag.to_owned(), value.to_owned()]));
    }
    words
}

/// Restricts a reader: only these tools are available, and writing is denied as well.
fn read_only_args(spec: &AgentSpec<'_>) -> Vec<String> {
    let looking = ["view", "grep", "glob"].map(str::to_owned);
    let ours = ReportTool::ALL.map(|tool| format!("{REPORT_SERVER}-{}", tool.as_str()));
    let ours = ours.into_iter().filter(|_| spec.reporting.is_some());
    let offered = looking.into_iter().chain(ours).map(|tool| format!("--available-tools={tool}"));
    let denied = ["write", "shell", "url"].map(|tool| format!("--deny-tool={tool}"));
    let allowed = spec.reporting.map(|_| format!("--allow-tool={REPORT_SERVER}"));
    offered.chain(denied).chain(allowed).collect()
}

fn environment(spec: &AgentSpec<'_>) -> Vec<(String, Option<String>)> {
    let home = spec.home.join(CONFIG_DIR).display().to_string();
    let packages = spec.home.join(PACKAGES).display().to_string();
    let unpacks = (spec.sandbox != SandboxBackend::None).then_some(("COPILOT_PKG_CACHE_HOME", packages.as_str()));
    [("COPILOT_HOME", home.as_str()), ("COPILOT_AUTO_UPDATE", "false"), ("NO_COLOR", "1")]
        .into_iter()
        .chain(unpacks)
        .map(|(name, value)| (name.to_owned(), Some(value.to_owned())))
        .collect()
}

fn servers_file(spec: &AgentSpec<'_>) -> PathBuf {
    spec.home.join("copilot-mcp.json")
}

fn files(spec: &AgentSpec<'_>) -> Vec<AgentFile> {
    let servers =
        spec.reporting.map(|reporting| AgentFile::Text { path: servers_file(spec), text: servers_json(&reporting) });
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
fn servers_json(reporting: &ReportEndpoint<'_>) -> String {
    let authorization = format!("Bearer ${{{}}}", reporting.variable);
    let server = json!({
        "type": "http",
        "url": reporting.url,
        "headers": { "Authorization": authorization },
        "tools": ["*"],
    });
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
