//! `kind = "opencode"`: `opencode run`, which prints a JSON line for each part of its answer.

mod stream;

use serde_json::{Map, Value, json};

use super::{
    AccessMode, AgentAdapter, AgentFile, AgentSpec, CommandLine, OutputParser, REPORT_SERVER, ReportEndpoint,
    credentials,
};

pub struct OpencodeAdapter;

impl AgentAdapter for OpencodeAdapter {
    fn command_line(&self, spec: &AgentSpec<'_>) -> CommandLine {
        let (program, first) = spec.program("opencode");
        let config = spec.home.join("opencode.json");
        let mut environment = environment(spec);
        environment.push(("OPENCODE_CONFIG".to_owned(), Some(config.display().to_string())));
        let config = AgentFile::Text { path: config, text: config_json(spec) };
        CommandLine {
            program,
            arguments: first.into_iter().chain(arguments(spec)).chain(spec.agent.args.iter().cloned()).collect(),
            environment,
            files: login_files(spec).into_iter().chain([config]).collect(),
        }
    }

    fn session_paths(&self) -> &'static [&'static str] {
        &[
            ".local/share/opencode/opencode.db",
            ".local/share/opencode/opencode.db-wal",
            ".local/share/opencode/opencode.db-shm",
        ]
    }

    fn output_parser(&self) -> Box<dyn OutputParser> {
        Box::new(stream::OpencodeStream::default())
    }
}

fn arguments(spec: &AgentSpec<'_>) -> Vec<String> {
    let mut words = vec!["run", "--format", "json"];
    match spec.resume_session {
        Some(session) => words.extend(["--session", session]),
        // Without a title it asks a model for one, which is not in the reported usage.
        None => words.extend(["--title", "signoff"]),
    }
    if let Some(model) = spec.model {
        words.extend(["--model", model]);
    }
    if spec.access == AccessMode::Write {
        // Without a user to answer, permission requests would be refused.
        words.push("--auto");
    }
    words.into_iter().map(str::to_owned).collect()
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

fn environment(spec: &AgentSpec<'_>) -> Vec<(String, Option<String>)> {
    let home = spec.home.display().to_string();
    let below = |place: &str| Some(spec.home.join(place).display().to_string());
    let places = BASE_DIRS.into_iter().map(|(name, place)| (name, below(place)));
    // A writer's tools use the user's home; opencode itself does not.
    let homes = [("OPENCODE_TEST_HOME", true), ("HOME", spec.access == AccessMode::Read)];
    let homes = homes.into_iter().filter(|(_, set)| *set).map(|(name, _)| (name, Some(home.clone())));
    let switches = SWITCHES.into_iter().map(|name| (name, Some("true".to_owned())));
    let permission =
        (spec.access == AccessMode::Read).then(|| ("OPENCODE_PERMISSION", Some(denied_permissions().to_string())));
    let above = OVERRIDING_VARIABLES.into_iter().map(|name| (name, None));
    let all = places.chain(homes).chain(switches).chain(permission).chain(above);
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
    if let Some(ReportEndpoint { url, variable }) = spec.reporting {
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
