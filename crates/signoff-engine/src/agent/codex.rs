//! `kind = "codex"`: Codex, as `codex exec --json`.
//!
//! Nothing of the repository and nothing of the person's own settings becomes its configuration: the repository is not
//! trusted, and it has a directory of its own, in which only the login is the person's. So it does not read `AGENTS.md` by
//! itself either.

mod end;
mod rollout;
mod stream;

use toml::{Table, Value};

use super::{Agent, CommandLine, Duty, Hold, Laid, Listener, Order, Reporting, SERVER};

pub struct Codex;

/// Its directory below the home.
const SETTINGS: &str = "codex";

impl Agent for Codex {
    fn command_line(&self, order: &Order<'_>) -> CommandLine {
        let (program, first) = order.program("codex");
        let settings = order.home.join(SETTINGS);
        CommandLine {
            program,
            arguments: first.into_iter().chain(arguments(order)).collect(),
            environment: vec![("CODEX_HOME".to_owned(), Some(settings.display().to_string()))],
            files: vec![Laid::Link {
                path: settings.join("auth.json"),
                of: order.person.join(".codex").join("auth.json"),
            }],
        }
    }

    fn keeps(&self) -> &'static [&'static str] {
        &["codex/sessions"]
    }

    fn listener(&self) -> Box<dyn Listener> {
        Box::new(stream::Stream::default())
    }
}

fn arguments(order: &Order<'_>) -> Vec<String> {
    let mut words = vec!["exec", "--json"];
    words.extend(order.resumes.map(|_| "resume"));
    words.push("--ignore-rules");
    words.extend(order.model.iter().flat_map(|model| ["-m", model]));
    let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    for (key, value) in settings(order) {
        words.extend(["-c".to_owned(), format!("{key}={value}")]);
    }
    words.extend(order.agent.args.iter().cloned());
    words.extend(order.resumes.map(str::to_owned));
    words.push("-".to_owned());
    words
}

/// What it is to know on top of its defaults. A key that a version does not know is passed over by it.
fn settings(order: &Order<'_>) -> Vec<(String, Value)> {
    let mut all = vec![
        ("sandbox_mode".to_owned(), sandbox(order).into()),
        ("projects".to_owned(), untrusted(order)),
        ("project_doc_max_bytes".to_owned(), 0.into()),
        ("skills.include_instructions".to_owned(), false.into()),
        // Keys and tokens are for it, not for what it runs.
        ("shell_environment_policy.ignore_default_excludes".to_owned(), false.into()),
        ("analytics.enabled".to_owned(), false.into()),
    ];
    // A snapshot writes the environment to a file, keys included; without a bound a lost network is waited for for ever;
    // what agents of its own use is counted by nobody.
    for feature in
        ["apps", "hooks", "multi_agent", "plugins", "shell_snapshot", "unbounded_connection_retries"]
    {
        all.push((format!("features.{feature}"), false.into()));
    }
    all.extend(order.reporting.map(|reporting| (format!("mcp_servers.{SERVER}"), server(&reporting))));
    all
}

/// Its own sandbox makes the repository's git directory read-only, so a writer could not commit; within ours of Landlock
/// it cannot be set up, and every command would fail without a word.
fn sandbox(order: &Order<'_>) -> &'static str {
    match (order.duty, order.hold) {
        (Duty::Write, _) | (Duty::Read, Hold::Landlock) => "danger-full-access",
        (Duty::Read, Hold::Nobody | Hold::Bubblewrap) => "read-only",
    }
}

/// Left to itself it trusts a repository that it may write to, and runs what stands in its `.codex`.
fn untrusted(order: &Order<'_>) -> Value {
    let untrusted = Table::from_iter([("trust_level".to_owned(), Value::from("untrusted"))]);
    let place = |path: &std::path::Path| (path.display().to_string(), Value::from(untrusted.clone()));
    Table::from_iter([place(order.worktree), place(order.repository)]).into()
}

/// The server for reports: it must be there, its tools are declared, and nobody is asked before they are used.
fn server(reporting: &Reporting<'_>) -> Value {
    let hidden = vec![Value::from("deferred"), Value::from("code_mode")];
    let server = [
        ("url", reporting.url.into()),
        ("bearer_token_env_var", reporting.variable.into()),
        ("default_tools_approval_mode", "approve".into()),
        ("required", true.into()),
        ("startup_timeout_sec", 10.into()),
        ("omit_tools_from", Value::Array(hidden)),
    ];
    Table::from_iter(server.map(|(key, value): (&str, Value)| (key.to_owned(), value))).into()
}
