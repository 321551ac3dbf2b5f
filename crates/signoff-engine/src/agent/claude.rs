//! `kind = "claude"`: Claude Code, run as `claude -p` with JSON lines as output.
//!
//! Neither the repository's nor the user's settings are used: Claude Code gets its own configuration directory,
//! and only the login is the user's. So it does not read `CLAUDE.md` by itself either.

mod outcome;
mod stream;

pub use stream::ClaudeStream;

use super::{
    AccessMode, AgentFile, AgentSpec, CommandLine, EnvChanges, REPORT_SERVER, ReportEndpoint, flags_with_values,
    set_variables,
};

/// Directory of its sessions.
const SESSIONS: &str = "claude/projects";

pub const SESSION_PATHS: [&str; 1] = [SESSIONS];

pub fn command_line(spec: &AgentSpec<'_>) -> CommandLine {
    let line = spec.command_line("claude", arguments(spec));
    CommandLine { environment: environment(spec), files: files(spec), ..line }
}

fn arguments(spec: &AgentSpec<'_>) -> Vec<String> {
    let mut arguments = vec!["-p", "--output-format", "stream-json", "--verbose"];
    // The repository's hooks, servers and helpers would run without asking.
    arguments.extend(["--setting-sources", "user", "--strict-mcp-config"]);
    match spec.access {
        AccessMode::Write => arguments.push("--dangerously-skip-permissions"),
        // Of shell commands, it allows only those on its read-only list.
        AccessMode::Read => {
            arguments.extend(["--tools", "Read,Grep,Glob,Bash", "--permission-mode", "dontAsk"]);
        }
    }
    let mut arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
    if spec.report_endpoint.is_some() {
        arguments.extend(["--mcp-config".to_owned(), servers_file(spec).display().to_string()]);
        arguments.extend(["--allowedTools".to_owned(), format!("mcp__{REPORT_SERVER}")]);
    }
    arguments.extend(flags_with_values([("--model", spec.model), ("--resume", spec.resume_session)]));
    arguments
}

fn environment(spec: &AgentSpec<'_>) -> EnvChanges {
    let settings = spec.home.join(CONFIG_DIR).display().to_string();
    let login = login_dir(spec);
    let set = [
        ("CLAUDE_CONFIG_DIR", settings.as_str()),
        ("CLAUDE_SECURESTORAGE_CONFIG_DIR", login.as_str()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1"),
        // Background tasks outlive the answer.
        ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1"),
        // A broken answer would be requested again as a whole without notice, and cost twice.
        ("CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK", "1"),
        // The model does not find a tool that it has to search for.
        ("ENABLE_TOOL_SEARCH", "false"),
        ("MCP_TIMEOUT", "10000"),
    ];
    // Set if signoff was started from within Claude Code.
    let removed = ["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"];
    let promise = (spec.is_root && spec.access == AccessMode::Write).then_some(("IS_SANDBOX", "1"));
    set_variables(set.into_iter().chain(promise)).chain(removed.map(|name| (name.to_owned(), None))).collect()
}

/// Its configuration directory below the home.
const CONFIG_DIR: &str = "claude";

fn servers_file(spec: &AgentSpec<'_>) -> std::path::PathBuf {
    spec.home.join("mcp.json")
}

/// The directory of the user's login. A copy does not work: renewing a login invalidates the old one and would
/// log the user out.
fn login_dir(spec: &AgentSpec<'_>) -> String {
    // The keychain needs no path.
    if cfg!(target_os = "macos") { String::new() } else { spec.user_home.join(".claude").display().to_string() }
}

fn files(spec: &AgentSpec<'_>) -> Vec<AgentFile> {
    let servers = |report_endpoint| AgentFile::Text { path: servers_file(spec), text: servers_json(&report_endpoint) };
    spec.report_endpoint.map(servers).into_iter().collect()
}

/// Configuration of the report server. Claude Code inserts the token from its environment.
fn servers_json(report_endpoint: &ReportEndpoint<'_>) -> String {
    serde_json::json!({ "mcpServers": { REPORT_SERVER: report_endpoint.http_server() } }).to_string()
}
