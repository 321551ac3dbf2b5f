//! `kind = "opencode"`: `opencode run`, which prints a JSON line for each part of its answer.

mod stream;

use serde_json::{Map, Value, json};

use super::{Agent, CommandLine, Duty, Laid, Listener, Order, Reporting, SERVER, set_up};

pub struct Opencode;

impl Agent for Opencode {
    fn command_line(&self, order: &Order<'_>) -> CommandLine {
        let (program, first) = order.program("opencode");
        let config = order.home.join("opencode.json");
        let mut environment = environment(order);
        environment.push(("OPENCODE_CONFIG".to_owned(), Some(config.display().to_string())));
        let config = Laid::Text { path: config, text: config_of(order) };
        CommandLine {
            program,
            arguments: first
                .into_iter()
                .chain(arguments(order))
                .chain(order.agent.args.iter().cloned())
                .collect(),
            environment,
            files: logins(order).into_iter().chain([config]).collect(),
        }
    }

    fn keeps(&self) -> &'static [&'static str] {
        &[
            ".local/share/opencode/opencode.db",
            ".local/share/opencode/opencode.db-wal",
            ".local/share/opencode/opencode.db-shm",
        ]
    }

    fn listener(&self) -> Box<dyn Listener> {
        Box::new(stream::Stream::default())
    }
}

fn arguments(order: &Order<'_>) -> Vec<String> {
    let mut words = vec!["run", "--format", "json"];
    match order.resumes {
        Some(session) => words.extend(["--session", session]),
        // Without one it asks a model for a title, which is in no account.
        None => words.extend(["--title", "signoff"]),
    }
    if let Some(model) = order.model {
        words.extend(["--model", model]);
    }
    if order.duty == Duty::Write {
        // Nobody is there to be asked, and what is asked would be refused.
        words.push("--auto");
    }
    words.into_iter().map(str::to_owned).collect()
}

/// Nothing is fetched, and no file of the repository is configuration. Its own plugins stay: they hold the logins of
/// subscriptions.
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

/// Where it keeps what it writes, below a home.
const PLACES: [(&str, &str); 4] = [
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_STATE_HOME", ".local/state"),
    ("XDG_CACHE_HOME", ".cache"),
];

/// What would count more than the file that it is given.
const ABOVE: [&str; 2] = ["OPENCODE_CONFIG_CONTENT", "OPENCODE_CONFIG_DIR"];

fn environment(order: &Order<'_>) -> Vec<(String, Option<String>)> {
    let home = order.home.display().to_string();
    let below = |place: &str| Some(order.home.join(place).display().to_string());
    let places = PLACES.into_iter().map(|(name, place)| (name, below(place)));
    // A writer's tools find the person's home where it was; it does not look there itself.
    let homes = [("OPENCODE_TEST_HOME", true), ("HOME", order.duty == Duty::Read)];
    let homes = homes.into_iter().filter(|(_, set)| *set).map(|(name, _)| (name, Some(home.clone())));
    let switches = SWITCHES.into_iter().map(|name| (name, Some("true".to_owned())));
    let permission = (order.duty == Duty::Read).then(|| ("OPENCODE_PERMISSION", Some(denied().to_string())));
    let above = ABOVE.into_iter().map(|name| (name, None));
    let all = places.chain(homes).chain(switches).chain(permission).chain(above);
    all.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// What a reader has no business with. Tools that are denied are not even shown to the model.
fn denied() -> Value {
    const TOOLS: [&str; 9] = [
        "edit",
        "bash",
        "task",
        "webfetch",
        "websearch",
        "external_directory",
        "todowrite",
        "skill",
        "question",
    ];
    TOOLS.into_iter().map(|tool| (tool.to_owned(), json!("deny"))).collect::<Map<_, _>>().into()
}

/// Its whole configuration: which providers and models the person has, and nothing else of theirs.
fn config_of(order: &Order<'_>) -> String {
    let mut config = Map::new();
    for name in ["opencode.json", "opencode.jsonc"] {
        let persons: Map<String, Value> = set_up::settings(&order.person.join(".config/opencode").join(name));
        config.extend(persons.into_iter().filter(|(key, _)| PERSONS.contains(&key.as_str())));
    }
    let mut config = Value::from(config);
    config["autoupdate"] = json!(false);
    config["share"] = json!("disabled");
    // It would keep a copy of the worktree after each step.
    config["snapshot"] = json!(false);
    if let Some(Reporting { url, variable }) = order.reporting {
        config["mcp"] = json!({ SERVER: {
            "type": "remote",
            "url": url,
            "headers": { "Authorization": format!("Bearer {{env:{variable}}}") },
            "enabled": true,
            "oauth": false,
        }});
    }
    format!("{config:#}\n")
}

/// What of the person's configuration is theirs to choose.
const PERSONS: [&str; 5] = ["provider", "model", "small_model", "enabled_providers", "disabled_providers"];

/// The login, which is used up when it is renewed, and the list of models.
fn logins(order: &Order<'_>) -> [Laid; 2] {
    let (login, models) = (".local/share/opencode/auth.json", ".cache/opencode/models.json");
    [
        Laid::Link { path: order.home.join(login), of: order.person.join(login) },
        Laid::Copy { path: order.home.join(models), of: order.person.join(models) },
    ]
}
