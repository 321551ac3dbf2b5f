//! `kind = "claude"`: Claude Code, as `claude -p` with a JSON object a line.
//!
//! Nothing of the repository and nothing of the person's own settings becomes its configuration: it has a directory of its
//! own, and only the login is the person's. So it does not read `CLAUDE.md` by itself either.

mod end;
mod session;
mod spent;
mod stream;

use super::{Agent, CommandLine, Duty, Laid, Listener, Order, Reporting, SERVER};

/// Where it keeps its sessions.
const SESSIONS: &str = "claude/projects";

pub struct Claude;

impl Agent for Claude {
    fn command_line(&self, order: &Order<'_>) -> CommandLine {
        let line = order.line("claude", arguments(order));
        CommandLine { environment: environment(order), files: files(order), ..line }
    }

    fn keeps(&self) -> &'static [&'static str] {
        &[SESSIONS]
    }

    fn listener(&self) -> Box<dyn Listener> {
        Box::new(stream::Stream::default())
    }
}

fn arguments(order: &Order<'_>) -> Vec<String> {
    let mut words = vec!["-p", "--output-format", "stream-json", "--verbose"];
    // The repository's hooks, servers and helpers would run without a question.
    words.extend(["--setting-sources", "user", "--strict-mcp-config"]);
    match order.duty {
        Duty::Write => words.push("--dangerously-skip-permissions"),
        // Of the shell, only what it knows to read.
        Duty::Read => {
            words.extend(["--tools", "Read,Grep,Glob,Bash", "--permission-mode", "dontAsk"]);
        }
    }
    let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    let mut add = |name: &str, value: String| words.extend([name.to_owned(), value]);
    if order.reporting.is_some() {
        add("--mcp-config", servers_file(order).display().to_string());
        add("--allowedTools", format!("mcp__{SERVER}"));
    }
    if let Some(model) = order.model {
        add("--model", model.to_owned());
    }
    if let Some(session) = order.resumes {
        add("--resume", session.to_owned());
    }
    words
}

fn environment(order: &Order<'_>) -> Vec<(String, Option<String>)> {
    let settings = order.home.join(SETTINGS).display().to_string();
    let login = login(order);
    let set = [
        ("CLAUDE_CONFIG_DIR", settings.as_str()),
        ("CLAUDE_SECURESTORAGE_CONFIG_DIR", login.as_str()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1"),
        // What goes on in the background outlives the answer.
        ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1"),
        // A broken answer is asked for again as a whole, and paid for twice, without a word.
        ("CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK", "1"),
        // A tool that must be searched for is not found.
        ("ENABLE_TOOL_SEARCH", "false"),
        ("MCP_TIMEOUT", "10000"),
    ];
    // Whoever starts signoff from within Claude Code hands these on.
    let away = ["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"];
    let promise = (order.root && order.duty == Duty::Write).then_some(("IS_SANDBOX", "1"));
    let set = set.into_iter().chain(promise).map(|(name, value)| (name.to_owned(), Some(value.to_owned())));
    set.chain(away.map(|name| (name.to_owned(), None))).collect()
}

/// Its directory below the home.
const SETTINGS: &str = "claude";

fn servers_file(order: &Order<'_>) -> std::path::PathBuf {
    order.home.join("mcp.json")
}

/// Where the person's login is kept. A copy of it would not do: a login is used up when it is renewed, and whoever renews a
/// copy logs the person out.
fn login(order: &Order<'_>) -> String {
    // The keychain knows it without a path.
    if cfg!(target_os = "macos") { String::new() } else { order.person.join(".claude").display().to_string() }
}

fn files(order: &Order<'_>) -> Vec<Laid> {
    let servers = |reporting| Laid::Text { path: servers_file(order), text: servers(&reporting) };
    order.reporting.map(servers).into_iter().collect()
}

/// The server for reports. It puts the token in itself, out of its environment.
fn servers(reporting: &Reporting<'_>) -> String {
    let authorization = format!("Bearer ${{{}}}", reporting.variable);
    let server = serde_json::json!({
        "type": "http",
        "url": reporting.url,
        "headers": { "Authorization": authorization },
    });
    serde_json::json!({ "mcpServers": { SERVER: server } }).to_string()
}
