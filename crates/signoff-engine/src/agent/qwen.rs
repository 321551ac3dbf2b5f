//! `kind = "qwen"`: Qwen Code.
//!
//! Its settings are laid as those of the system, which come before the person's and the repository's: what a repository
//! brings along (hooks, servers, texts) would be taken otherwise.

mod chat;
mod stream;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};

use super::gemini::servers;
use super::set_up::{self, Guarded};
use super::{Agent, CommandLine, Duty, Laid, Listener, Order, SERVER};

pub struct Qwen;

/// Variables of a `.qwen/.env` or `.env` in the repository are taken where there is none, or an empty one: so each of these
/// has a value that is as good as none.
const GUARDED: [Guarded; 11] = [
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

/// Taken away from those who only read, beside what its plan mode takes: it starts work elsewhere, writes, or comes back
/// later.
const WRITING: [&str; 22] = [
    "write_file",
    "edit",
    "notebook_edit",
    "run_shell_command",
    "monitor",
    "agent",
    "send_message",
    "skill",
    "enter_worktree",
    "exit_worktree",
    "record_artifact",
    "report_findings",
    "loop_wakeup",
    "update_goal",
    "cron_create",
    "cron_delete",
    "task_stop",
    "save_memory",
    "exit_plan_mode",
    "ask_user_question",
    "web_fetch",
    "web_search",
];

impl Agent for Qwen {
    fn command_line(&self, order: &Order<'_>) -> CommandLine {
        let (program, mut arguments) = order.program("qwen");
        let mode = match order.duty {
            Duty::Write => "yolo",
            Duty::Read => "plan",
        };
        let mut say = |words: &[&str]| arguments.extend(words.iter().map(|word| (*word).to_owned()));
        say(&["-o", "stream-json", "--approval-mode", mode]);
        for (flag, value) in [("-m", order.model), ("--resume", order.resumes)] {
            if let Some(value) = value {
                say(&[flag, value]);
            }
        }
        arguments.extend(order.agent.args.iter().cloned());
        let theirs: Theirs = set_up::settings(&order.person.join(".qwen/settings.json"));
        let environment = environment(order, &theirs);
        CommandLine { program, arguments, environment, files: files(order, &theirs) }
    }

    fn keeps(&self) -> &'static [&'static str] {
        &[".qwen/projects"]
    }

    fn listener(&self) -> Box<dyn Listener> {
        Box::new(stream::Stream::default())
    }
}

/// Its own directory in the home that it is given.
fn directory(order: &Order<'_>) -> PathBuf {
    order.home.join(".qwen")
}

fn environment(order: &Order<'_>, theirs: &Theirs) -> Vec<(String, Option<String>)> {
    let directory = directory(order);
    let (own_home, rules) = (directory.display().to_string(), directory.join("system.json"));
    let own = [
        ("QWEN_HOME", own_home.as_str()),
        ("QWEN_CODE_SYSTEM_SETTINGS_PATH", &rules.display().to_string()),
        ("QWEN_CODE_NO_RELAUNCH", "true"),
        ("QWEN_CODE_SUPPRESS_YOLO_WARNING", "1"),
        ("NO_COLOR", "1"),
    ]
    .map(|(name, value)| (name.to_owned(), Some(value.to_owned())));
    let model = order.model.map(|model| ("OPENAI_MODEL".to_owned(), Some(model.to_owned())));
    let guarded = set_up::guard(order, &GUARDED, &theirs.variables(order));
    own.into_iter().chain(model).chain(guarded).collect()
}

fn files(order: &Order<'_>, theirs: &Theirs) -> Vec<Laid> {
    let (own, person) = (directory(order), order.person.join(".qwen"));
    let text = format!("{:#}\n", settings(order, theirs));
    let settings = Laid::Text { path: own.join("system.json"), text };
    let login = "oauth_creds.json";
    let login = Laid::Link { path: own.join(login), of: person.join(login) };
    let variables = Laid::Copy { path: own.join(".env"), of: person.join(".env") };
    vec![settings, login, variables]
}

fn settings(order: &Order<'_>, theirs: &Theirs) -> Value {
    let mut settings = json!({
        "privacy": { "usageStatisticsEnabled": false },
        "telemetry": { "enabled": false },
        "general": { "enableAutoUpdate": false },
        // Refusals are asked about seven times as it is. Ten times that, with minutes in between, is ours to decide.
        "model": { "generationConfig": { "maxRetries": 0 } },
        // A tool that must be searched for first is not found.
        "tools": { "toolSearch": { "enabled": false } },
        // It would ask its model more than it was asked.
        "memory": { "enableManagedAutoMemory": false, "enableManagedAutoDream": false, "enableAutoSkill": false },
        // None of what the repository brings is run.
        "disableAllHooks": true,
        "skills": { "disabledLevels": ["project", "user", "extension", "bundled"] },
        "mcp": { "allowed": [SERVER] },
        "context": {
            "fileName": ["SIGNOFF-NONE.md"],
            // Otherwise any `@word` of the prompt is looked for in all files, and the first that fits is read.
            "fileFiltering": { "enableRecursiveFileSearch": false },
        },
        // Those who work beside it are none of its business.
        "agents": { "crossSessionMessaging": false },
    });
    if let Some(auth) = theirs.auth(order) {
        settings["security"] = json!({ "auth": auth });
    }
    for (name, value) in [("modelProviders", &theirs.model_providers), ("env", &theirs.env)] {
        if let Some(value) = value {
            settings[name] = value.clone();
        }
    }
    if order.duty == Duty::Read {
        settings["permissions"] = json!({ "deny": WRITING });
    }
    if let Some(reporting) = order.reporting {
        settings["mcpServers"] = servers(&reporting);
    }
    settings
}

/// What of the person's settings says who they are to its provider.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Theirs {
    security: Security,
    model_providers: Option<Value>,
    env: Option<Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Security {
    auth: Option<Value>,
}

impl Theirs {
    /// How it is to log in: by the key it is given for this work, as the person chose, or by a key that is there.
    fn auth(&self, order: &Order<'_>) -> Option<Value> {
        let key = "OPENAI_API_KEY";
        let by_key = Some(json!({ "selectedType": "openai" }));
        if order.agent.env.contains_key(key) {
            return by_key;
        }
        let has_key = order.finds(key) || self.variables(order).contains_key(key);
        let chosen = self.security.auth.clone().filter(|auth| auth.get("selectedType").is_some());
        chosen.or_else(|| by_key.filter(|_| has_key))
    }

    /// The variables that it would find in the person's home and settings.
    fn variables(&self, order: &Order<'_>) -> BTreeMap<String, String> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let address = self.security.auth.as_ref().and_then(|auth| auth.get("baseUrl")).and_then(text);
        let mut all: BTreeMap<String, String> =
            address.map(|address| ("OPENAI_BASE_URL".to_owned(), address)).into_iter().collect();
        let env = self.env.as_ref().and_then(Value::as_object).into_iter().flatten();
        all.extend(env.filter_map(|(name, value)| Some((name.clone(), text(value)?))));
        all.extend(set_up::variables(&order.person.join(".env")));
        all.extend(set_up::variables(&order.person.join(".qwen/.env")));
        all
    }
}
