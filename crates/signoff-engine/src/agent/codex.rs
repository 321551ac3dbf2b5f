//! `kind = "codex"`: Codex, run as `codex exec --json`.
//!
//! Neither the repository's nor the user's settings are used: the repository is not trusted, and Codex gets its
//! own home with only the user's login. So it does not read `AGENTS.md` by itself either.

mod rollout;
mod stream;

pub use stream::CodexStream;

use toml::{Table, Value};

use super::{AccessMode, AgentFile, AgentSpec, CommandLine, REPORT_SERVER, ReportEndpoint, SandboxBackend};

/// Its configuration directory below the home.
const CONFIG_DIR: &str = "codex";

pub const SESSION_PATHS: [&str; 1] = ["codex/sessions"];

pub fn command_line(spec: &AgentSpec<'_>) -> CommandLine {
    let (program, first) = spec.program("codex");
    let settings = spec.home.join(CONFIG_DIR);
    let login = settings.join("auth.json");
    CommandLine {
        program,
        arguments: first.into_iter().chain(arguments(spec)).collect(),
        environment: vec![("CODEX_HOME".to_owned(), Some(settings.display().to_string()))],
        files: vec![AgentFile::Link { path: login, source: spec.user_home.join(".codex/auth.json") }],
    }
}

fn arguments(spec: &AgentSpec<'_>) -> Vec<String> {
    let mut arguments = vec!["exec", "--json"];
    arguments.extend(spec.resume_session.map(|_| "resume"));
    arguments.push("--ignore-rules");
    arguments.extend(spec.model.iter().flat_map(|model| ["-m", model]));
    let mut arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
    for (key, value) in settings(spec) {
        arguments.extend(["-c".to_owned(), format!("{key}={value}")]);
    }
    arguments.extend(spec.agent.args.iter().cloned());
    arguments.extend(spec.resume_session.map(str::to_owned));
    arguments.push("-".to_owned());
    arguments
}

/// Settings besides its defaults. Codex ignores keys that its version does not support.
fn settings(spec: &AgentSpec<'_>) -> Vec<(String, Value)> {
    let mut all = vec![
        ("sandbox_mode".to_owned(), sandbox_mode(spec).into()),
        ("projects".to_owned(), untrusted_projects(spec)),
        ("project_doc_max_bytes".to_owned(), 0.into()),
        ("skills.include_instructions".to_owned(), false.into()),
        // The commands it runs get no keys and tokens.
        ("shell_environment_policy.ignore_default_excludes".to_owned(), false.into()),
        ("analytics.enabled".to_owned(), false.into()),
    ];
    // A shell snapshot writes the environment, including keys, to a file. Unbounded retries wait for ever for a
    // lost network. The usage of sub-agents is not counted.
    for feature in ["apps", "hooks", "multi_agent", "plugins", "shell_snapshot", "unbounded_connection_retries"] {
        all.push((format!("features.{feature}"), false.into()));
    }
    all.extend(
        spec.report_endpoint
            .map(|report_endpoint| (format!("mcp_servers.{REPORT_SERVER}"), report_server(&report_endpoint))),
    );
    all
}

/// Its own sandbox makes the repository's git directory read-only, so a writer could not commit. Inside our
/// Landlock sandbox it cannot be set up, and every command would fail silently.
fn sandbox_mode(spec: &AgentSpec<'_>) -> &'static str {
    match (spec.access, spec.sandbox) {
        (AccessMode::Write, _) | (AccessMode::Read, SandboxBackend::Landlock) => "danger-full-access",
        (AccessMode::Read, SandboxBackend::None | SandboxBackend::Bubblewrap) => "read-only",
    }
}

/// By default Codex trusts a repository that it may write to, and runs what its `.codex` contains.
fn untrusted_projects(spec: &AgentSpec<'_>) -> Value {
    let untrusted = Table::from_iter([("trust_level".to_owned(), Value::from("untrusted"))]);
    let project = |path: &std::path::Path| (path.display().to_string(), Value::from(untrusted.clone()));
    Table::from_iter([project(spec.worktree), project(spec.repository)]).into()
}

/// The report server: required, with its tools always declared and approved.
fn report_server(report_endpoint: &ReportEndpoint<'_>) -> Value {
    let hidden = vec![Value::from("deferred"), Value::from("code_mode")];
    let server = [
        ("url", report_endpoint.url.into()),
        ("bearer_token_env_var", report_endpoint.variable.into()),
        ("default_tools_approval_mode", "approve".into()),
        ("required", true.into()),
        ("startup_timeout_sec", 10.into()),
        ("omit_tools_from", Value::Array(hidden)),
    ];
    Table::from_iter(server.map(|(key, value): (&str, Value)| (key.to_owned(), value))).into()
}
