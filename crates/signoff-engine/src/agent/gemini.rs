//! `kind = "gemini"`: Gemini CLI.
//!
//! Its settings and the rules for its tools are laid into the home it is given. `--skip-trust` lets it work in the
//! worktree without taking the settings there for its own; the variable that says the same would let it run them.

mod chat;
mod stream;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};

use super::set_up::{self, Guarded};
use super::{Agent, CommandLine, Duty, Laid, Listener, Order, Reporting, SERVER};

pub struct Gemini;

/// Where it keeps its sessions.
const SESSIONS: &str = ".gemini/tmp";

/// Files in its directory by which it is logged in.
const LOGINS: [&str; 3] = ["oauth_creds.json", "google_accounts.json", "gemini-credentials.json"];

/// A `.gemini/.env` in the repository is read whatever the settings say.
const GUARDED: [Guarded; 39] = [
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
    // Nothing would be taken for an address.
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
    // Nothing would be taken for a command.
    ("GIT_SSH_COMMAND", "ssh"),
];

/// What a reader may use, beside the tools of our server, and what not: above all `exit_plan_mode`, which is granted when
/// nobody is there to ask, and then nothing is denied any more.
pub(super) const READING: &str = r#"[[rule]]
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

/// Everything else is denied, so that a tool of tomorrow is too.
const NOTHING_ELSE: &str = r#"
[[rule]]
toolName = "*"
decision = "deny"
priority = 1
denyMessage = "You may only read here."
"#;

impl Agent for Gemini {
    fn command_line(&self, order: &Order<'_>) -> CommandLine {
        let (program, mut arguments) = order.program("gemini");
        let rules = rules(order);
        let mut say = |words: &[&str]| arguments.extend(words.iter().map(|word| (*word).to_owned()));
        say(&["-e", "none"]);
        match order.duty {
            Duty::Write => say(&["--approval-mode", "yolo"]),
            Duty::Read => say(&["--policy", &rules.display().to_string(), "--approval-mode", "plan"]),
        }
        say(&["--skip-trust", "-o", "stream-json"]);
        for (flag, value) in [("-m", order.model), ("--resume", order.resumes)] {
            if let Some(value) = value {
                say(&[flag, value]);
            }
        }
        arguments.extend(order.agent.args.iter().cloned());
        CommandLine { program, arguments, environment: environment(order), files: files(order, rules) }
    }

    fn keeps(&self) -> &'static [&'static str] {
        &[SESSIONS, ".gemini/projects.json"]
    }

    fn listener(&self) -> Box<dyn Listener> {
        Box::new(stream::Stream::default())
    }
}

/// The rules for a reader's tools.
pub(super) fn rules(order: &Order<'_>) -> PathBuf {
    directory(order).join("signoff.toml")
}

/// Its own directory in the home that it is given.
fn directory(order: &Order<'_>) -> PathBuf {
    order.home.join(".gemini")
}

fn environment(order: &Order<'_>) -> Vec<(String, Option<String>)> {
    let home = order.home.display().to_string();
    let own = [
        ("GEMINI_CLI_HOME", home.as_str()),
        // One process less, which would also keep signals to itself.
        ("GEMINI_CLI_NO_RELAUNCH", "true"),
        ("GEMINI_CLI_TRUST_WORKSPACE", ""),
        ("NO_COLOR", "1"),
    ];
    let own = own.map(|(name, value)| (name.to_owned(), Some(value.to_owned())));
    let guarded = set_up::guard(order, &GUARDED, &persons(order));
    own.into_iter().chain(guarded).collect()
}

/// The person's own variables, where it would look for them.
fn persons(order: &Order<'_>) -> BTreeMap<String, String> {
    let first = order.person.join(".gemini/.env");
    set_up::variables(&if first.is_file() { first } else { order.person.join(".env") })
}

fn files(order: &Order<'_>, rules: PathBuf) -> Vec<Laid> {
    let (directory, theirs) = (directory(order), order.person.join(".gemini"));
    let text = format!("{:#}\n", settings(order));
    let settings = Laid::Text { path: directory.join("settings.json"), text };
    let rules = Laid::Text { path: rules, text: [READING, NOTHING_ELSE].concat() };
    let logins = LOGINS.map(|name| Laid::Copy { path: directory.join(name), of: theirs.join(name) });
    let read = (order.duty == Duty::Read).then_some(rules);
    [settings].into_iter().chain(read).chain(logins).collect()
}

fn settings(order: &Order<'_>) -> Value {
    let mut settings = json!({
        "privacy": { "usageStatisticsEnabled": false },
        "telemetry": { "enabled": false },
        "general": {
            "enableAutoUpdate": false,
            "enableAutoUpdateNotification": false,
            // Once more, for what is over at once. Longer waits are ours.
            "maxAttempts": 2,
        },
        // None of what the repository brings is run.
        "hooksConfig": { "enabled": false },
        "skills": { "enabled": false },
        "experimental": { "enableAgents": false },
        "advanced": { "ignoreLocalEnv": true },
        // Otherwise any `@word` of the prompt is looked for in all files, and the first that fits is read.
        "context": { "fileFiltering": { "enableRecursiveFileSearch": false } },
    });
    if let Some(auth) = auth(order) {
        settings["security"] = json!({ "auth": auth });
    }
    if let Some(reporting) = order.reporting {
        settings["mcpServers"] = servers(&reporting);
    }
    settings
}

/// The server for reports. It puts the token in itself, out of its environment.
pub fn servers(reporting: &Reporting<'_>) -> Value {
    json!({ SERVER: {
        "httpUrl": reporting.url,
        "headers": { "Authorization": format!("Bearer ${}", reporting.variable) },
        "trust": true,
        "timeout": 30_000,
    }})
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Settings {
    security: Security,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Security {
    auth: Option<Value>,
}

/// How it is to log in. A key that it is given for this work comes first, then what the person chose; then a key that is
/// there, which it would not use by itself if an address is there too.
fn auth(order: &Order<'_>) -> Option<Value> {
    let key = "GEMINI_API_KEY";
    let by_key = Some(json!({ "selectedType": "gemini-api-key" }));
    if order.agent.env.contains_key(key) {
        return by_key;
    }
    let chosen: Settings = set_up::settings(&order.person.join(".gemini/settings.json"));
    let chosen = chosen.security.auth.filter(|auth| auth.get("selectedType").is_some());
    let elsewhere =
        ["GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"].iter().any(|name| order.finds(name));
    let has_key = order.finds(key) || persons(order).contains_key(key);
    chosen.or_else(|| by_key.filter(|_| has_key && !elsewhere))
}
