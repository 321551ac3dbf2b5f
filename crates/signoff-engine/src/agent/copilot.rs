//! `kind = "copilot"`: GitHub Copilot CLI.
//!
//! A folder that it is told to trust may bring hooks and servers of its own, so it never is told so. It reads no instructions
//! of the repository by itself.

mod stream;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use signoff_core::grant::ReportTool;

use super::{Agent, CommandLine, Duty, Hold, Laid, Listener, Order, Reporting, SERVER, set_up};

pub struct Copilot;

/// Its directory below the home.
const SETTINGS: &str = "copilot";

/// Its sessions, below the home: a directory each.
const SESSIONS: &str = "copilot/session-state";

/// Its unpacked program, below the home.
const PACKAGES: &str = "copilot-packages";

/// Where it writes what its session used, below the home.
const USAGE: &str = "copilot-usage.json";

/// What the session had used before this attempt went on with it.
const USED_BEFORE: &str = "copilot-usage-before.json";

impl Agent for Copilot {
    fn command_line(&self, order: &Order<'_>) -> CommandLine {
        let line = order.line("copilot", arguments(order));
        CommandLine { environment: environment(order), files: files(order), ..line }
    }

    fn keeps(&self) -> &'static [&'static str] {
        &[
            SESSIONS,
            "copilot/session-store.db",
            "copilot/session-store.db-wal",
            "copilot/session-store.db-shm",
            USAGE,
        ]
    }

    fn accounts(&self) -> &'static [&'static str] {
        &[USED_BEFORE]
    }

    fn listener(&self) -> Box<dyn Listener> {
        Box::new(stream::Stream::default())
    }
}

fn arguments(order: &Order<'_>) -> Vec<String> {
    let usage = order.home.join(USAGE).display().to_string();
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
    match order.duty {
        Duty::Write => words.push("--allow-all-tools".to_owned()),
        Duty::Read => words.extend(reading(order)),
    }
    if order.reporting.is_some() {
        words.extend(["--additional-mcp-config".to_owned(), format!("@{}", servers_file(order).display())]);
    }
    for (flag, value) in [("--model", order.model), ("--resume", order.resumes)] {
        words.extend(value.into_iter().flat_map(|value| [flag.to_owned(), value.to_owned()]));
    }
    words
}

/// What a reader may use. Tools that it is not offered are not there; what writes is denied besides.
fn reading(order: &Order<'_>) -> Vec<String> {
    let looking = ["view", "grep", "glob"].map(str::to_owned);
    let ours = ReportTool::ALL.map(|tool| format!("{SERVER}-{}", tool.word()));
    let ours = ours.into_iter().filter(|_| order.reporting.is_some());
    let offered = looking.into_iter().chain(ours).map(|tool| format!("--available-tools={tool}"));
    let denied = ["write", "shell", "url"].map(|tool| format!("--deny-tool={tool}"));
    let allowed = order.reporting.map(|_| format!("--allow-tool={SERVER}"));
    offered.chain(denied).chain(allowed).collect()
}

fn environment(order: &Order<'_>) -> Vec<(String, Option<String>)> {
    let home = order.home.join(SETTINGS).display().to_string();
    let packages = order.home.join(PACKAGES).display().to_string();
    let unpacks = (order.hold != Hold::Nobody).then_some(("COPILOT_PKG_CACHE_HOME", packages.as_str()));
    [("COPILOT_HOME", home.as_str()), ("COPILOT_AUTO_UPDATE", "false"), ("NO_COLOR", "1")]
        .into_iter()
        .chain(unpacks)
        .map(|(name, value)| (name.to_owned(), Some(value.to_owned())))
        .collect()
}

fn servers_file(order: &Order<'_>) -> PathBuf {
    order.home.join("copilot-mcp.json")
}

fn files(order: &Order<'_>) -> Vec<Laid> {
    let servers =
        order.reporting.map(|reporting| Laid::Text { path: servers_file(order), text: servers(&reporting) });
    let before =
        order.resumes.map(|_| Laid::Copy { path: order.home.join(USED_BEFORE), of: order.home.join(USAGE) });
    servers.into_iter().chain(login(order)).chain(before).chain(packages(order)).collect()
}

/// It unpacks itself before it starts, once for each version. Who is held may not write where it does so: what the person
/// runs later lies there. So it finds what is unpacked there already, and unpacks the rest for itself.
fn packages(order: &Order<'_>) -> Vec<Laid> {
    let unpacked = order.person.join(".cache/copilot/pkg");
    let systems = if order.hold == Hold::Nobody { Vec::new() } else { inside(&unpacked) };
    let versions = systems.iter().flat_map(|system| inside(system));
    let own = |version: &Path| {
        Some(order.home.join(PACKAGES).join("pkg").join(version.strip_prefix(&unpacked).ok()?))
    };
    versions.filter_map(|of| Some(Laid::Link { path: own(&of)?, of })).collect()
}

/// The directories in a directory, in the order of their names.
fn inside(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut inside: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    inside.sort();
    inside
}

/// The server for reports. It puts the token in itself, out of its environment.
fn servers(reporting: &Reporting<'_>) -> String {
    let authorization = format!("Bearer ${{{}}}", reporting.variable);
    let server = json!({
        "type": "http",
        "url": reporting.url,
        "headers": { "Authorization": authorization },
        "tools": ["*"],
    });
    format!("{:#}\n", json!({ "mcpServers": { SERVER: server } }))
}

/// The person's login, where no keychain holds it. The folders that they trust stand in the same file, and stay there.
fn login(order: &Order<'_>) -> Option<Laid> {
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
    let mut persons: Map<String, Value> = set_up::settings(&order.person.join(".copilot/config.json"));
    persons.retain(|key, _| LOGIN.contains(&key.as_str()));
    let path = order.home.join(SETTINGS).join("config.json");
    (!persons.is_empty()).then(|| Laid::Text { path, text: format!("{:#}\n", Value::from(persons)) })
}
