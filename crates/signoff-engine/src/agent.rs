//! Adapters, one per kind of agent: they build the command line, environment and files of an agent, parse its
//! output, and summarize its result.
//!
//! An adapter starts no process, makes no decision and keeps no state. It ignores unrecognized output.

pub mod acp;
mod bounded;
mod claude;
mod codex;
mod copilot;
pub(crate) mod credentials;
pub(crate) mod error_text;
mod gemini;
mod json_line;
pub(crate) use json_line::record_unparsed;
mod opencode;
mod qwen;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use signoff_core::agent_output::{AgentError, AgentErrorKind, AgentSummary, OutputLine};
use signoff_core::contract::{AnswerBlocks, JoinedAnswer};
pub use signoff_core::sandbox::SandboxBackend;
use signoff_core::settings::{self, AgentKind};
use signoff_core::text::shortened;
use signoff_core::untrusted_config::runs_in_opencode;

use json_line::{JsonParser, JsonStream};

/// What an adapter needs to build an agent's command line.
#[derive(Debug, Clone, Copy)]
pub struct AgentSpec<'a> {
    pub agent: &'a settings::AgentConfig,
    pub model: Option<&'a str>,
    /// Path of signoff itself, for built-in agents.
    pub signoff_program: &'a str,
    pub access: AccessMode,
    /// The directory it works in.
    pub worktree: &'a Path,
    /// The repository that the worktree belongs to.
    pub repository: &'a Path,
    /// The user's checkout, against which a relative program path is resolved.
    pub checkout: &'a Path,
    /// An existing directory for this agent alone, which it may write.
    pub home: &'a Path,
    /// The user's home directory, which may contain a login.
    pub user_home: &'a Path,
    /// Names of the variables set in the inherited environment.
    pub inherited_variables: &'a BTreeSet<String>,
    pub report_endpoint: Option<ReportEndpoint<'a>>,
    /// The session to resume.
    pub resume_session: Option<&'a str>,
    pub sandbox: SandboxBackend,
    /// Whether it runs as root, which some agents refuse without an explicit flag.
    pub is_root: bool,
}

/// Whether an agent may change files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessMode {
    /// It changes the work.
    Write,
    /// It only reads.
    Read,
}

/// The MCP server over HTTP to which an agent reports.
#[derive(Debug, Clone, Copy)]
pub struct ReportEndpoint<'a> {
    pub url: &'a str,
    /// Environment variable with the token. The token itself is in no file and no argument.
    pub variable: &'a str,
}

impl ReportEndpoint<'_> {
    /// The configuration of an agent that inserts the token from its environment.
    fn http_server(&self) -> serde_json::Value {
        let authorization = format!("Bearer ${{{}}}", self.variable);
        serde_json::json!({ "type": "http", "url": self.url, "headers": { "Authorization": authorization } })
    }
}

/// The name of the report server in agents' configuration.
pub const REPORT_SERVER: &str = "signoff";

/// Environment variables to set, or to remove if there is no value.
pub type EnvChanges = Vec<(String, Option<String>)>;

/// A command line. The prompt is written to stdin, which is then closed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandLine {
    pub program: String,
    pub arguments: Vec<String>,
    /// Variables to set, or to remove if there is no value.
    pub environment: EnvChanges,
    /// Files to create before the start.
    pub files: Vec<AgentFile>,
}

/// A file to create for an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentFile {
    /// A file with this text.
    Text { path: PathBuf, text: String },
    /// A copy of another file, if that exists, for logins.
    Copy { path: PathBuf, source: PathBuf },
    /// A link to another file, if that exists, for logins whose renewal invalidates the old one. Renewing a
    /// copy would log the user out.
    Link { path: PathBuf, source: PathBuf },
}

impl AgentSpec<'_> {
    /// The program, from the configuration or the default, and its first arguments.
    fn program(&self, default_program: &str) -> (String, Vec<String>) {
        let mut arguments = self.agent.command.iter().cloned();
        (
            arguments.next().map_or_else(|| default_program.to_owned(), |named| self.resolve_program(&named)),
            arguments.collect(),
        )
    }

    /// Resolves a relative program path against the checkout, because the agent works elsewhere.
    fn resolve_program(&self, program: &str) -> String {
        let is_relative = program.contains('/') && !program.starts_with('/');
        if is_relative { self.checkout.join(program).display().to_string() } else { program.to_owned() }
    }

    /// The command line: configured first arguments, the adapter's, then the user's.
    fn command_line(&self, default_program: &str, arguments: impl IntoIterator<Item = String>) -> CommandLine {
        let (program, first) = self.program(default_program);
        let arguments = first.into_iter().chain(arguments).chain(self.agent.args.iter().cloned());
        CommandLine { program, arguments: arguments.collect(), ..CommandLine::default() }
    }

    /// Whether a variable is set by the environment or the configuration.
    fn has_variable(&self, variable: &str) -> bool {
        self.inherited_variables.contains(variable) || self.agent.env.contains_key(variable)
    }
}

/// How one kind of agent is started and its output parsed.
#[derive(Clone, Copy)]
pub struct AgentAdapter {
    command_line: fn(&AgentSpec<'_>) -> CommandLine,
    output_parser: fn() -> Box<dyn OutputParser>,
    /// Paths below its home that contain its sessions, which a later attempt needs to resume one.
    pub session_paths: &'static [&'static str],
    /// Further files below its home from which its usage is read afterwards.
    pub usage_paths: &'static [&'static str],
    /// Whether stdout is the final message and the exit code the result.
    pub is_plain: bool,
}

impl AgentAdapter {
    /// An agent with plain output.
    fn plain(command_line: fn(&AgentSpec<'_>) -> CommandLine) -> Self {
        let output_parser = || Box::new(PlainParser) as Box<dyn OutputParser>;
        Self { command_line, output_parser, session_paths: &[], usage_paths: &[], is_plain: true }
    }

    /// An agent that prints JSON lines.
    fn json<S: JsonStream + 'static>(
        command_line: fn(&AgentSpec<'_>) -> CommandLine,
        session_paths: &'static [&'static str],
    ) -> Self {
        let output_parser = || Box::new(JsonParser::<S>::default()) as Box<dyn OutputParser>;
        Self { command_line, output_parser, session_paths, usage_paths: &[], is_plain: false }
    }

    pub fn command_line(&self, spec: &AgentSpec<'_>) -> CommandLine {
        (self.command_line)(spec)
    }

    /// Creates a parser for its output.
    pub fn output_parser(&self) -> Box<dyn OutputParser> {
        (self.output_parser)()
    }
}

/// Parses the output of one agent process.
pub trait OutputParser: Send {
    /// Parses a line without its line ending. Returns what to show of it.
    fn parse_line(&mut self, line: &[u8]) -> Vec<OutputLine>;

    /// Returns the result after the process has ended.
    fn finish(&mut self, exit: &AgentExit<'_>) -> AgentResult;
}

/// How an agent's process ended, and what it left.
#[derive(Debug, Clone, Copy)]
pub struct AgentExit<'a> {
    /// The exit code. `None` if a signal or one of our limits ended it.
    pub code: Option<i32>,
    /// The end of stderr, or of the plain text on stdout if stderr is empty.
    pub stderr: &'a [u8],
    /// The agent's own home directory.
    pub home: &'a Path,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    /// Whether it resumed a session, so that its counts may cover the whole session.
    pub resumed: bool,
}

/// The parsed result of an agent's output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentResult {
    /// The final message: everything it said after its last tool use.
    pub message: String,
    /// The other ways to join its blocks, see [`JoinedAnswer::alternatives`].
    pub alternatives: Vec<String>,
    pub summary: AgentSummary,
}

impl AgentResult {
    /// Only an agent that ended well has a final message.
    fn new(answer: AnswerBlocks, summary: AgentSummary) -> Self {
        if summary.error.is_some() {
            return Self { summary, ..Self::default() };
        }
        let JoinedAnswer { text: message, alternatives: others, unreadable } = answer.join();
        let unreadable = summary.unread_line.or(unreadable);
        Self { message, alternatives: others, summary: AgentSummary { unread_line: unreadable, ..summary } }
    }
}

impl AgentExit<'_> {
    /// The error of an agent that ended without a result.
    pub fn missing_result_error(&self) -> AgentError {
        let stderr = strip_colors(&String::from_utf8_lossy(self.stderr));
        let last = error_text::find_error(&stderr);
        let how = match self.code {
            Some(code) => format!("exit code {code}"),
            None => "ended by a signal".to_owned(),
        };
        AgentError::new(AgentErrorKind::NoResult, last.map_or(how.clone(), |last| format!("{how}, {last}")))
    }
}

/// Removes terminal color sequences.
fn strip_colors(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == ';');
        text + rest.strip_prefix('m').unwrap_or(rest)
    })
}

/// The first non-empty line of a text, shortened.
pub(crate) fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    shortened(line, 160)
}

/// These flags with their values, if they have one.
fn flags_with_values<'a>(flags: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> impl Iterator<Item = String> {
    let pairs = flags.into_iter().filter_map(|(flag, value)| Some([flag.to_owned(), value?.to_owned()]));
    pairs.flatten()
}

/// Sets these variables.
fn set_variables<'a>(
    set: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> impl Iterator<Item = (String, Option<String>)> {
    set.into_iter().map(|(name, value)| (name.to_owned(), Some(value.to_owned())))
}

/// Shows every line unchanged. The result is read from the output files.
struct PlainParser;

impl OutputParser for PlainParser {
    fn parse_line(&mut self, line: &[u8]) -> Vec<OutputLine> {
        vec![OutputLine::Text(String::from_utf8_lossy(line).into_owned())]
    }

    fn finish(&mut self, _: &AgentExit<'_>) -> AgentResult {
        AgentResult::default()
    }
}

/// `kind = "command"`: any program.
fn command_agent(spec: &AgentSpec<'_>) -> CommandLine {
    let model = spec.model.map(|model| ("SIGNOFF_MODEL".to_owned(), Some(model.to_owned())));
    CommandLine { environment: model.into_iter().collect(), ..spec.command_line("", []) }
}

/// `kind = "demo"`: the built-in agent, for trying out signoff without a model.
fn demo_agent(spec: &AgentSpec<'_>) -> CommandLine {
    let (program, arguments) = (spec.signoff_program.to_owned(), vec!["__demo".to_owned()]);
    CommandLine { program, arguments, ..CommandLine::default() }
}

/// The parser for the output of an agent; one that shows every line if its kind is not known any more.
pub fn output_parser(kind: Option<AgentKind>) -> Box<dyn OutputParser> {
    kind.and_then(adapter_for).unwrap_or_else(|| AgentAdapter::plain(command_agent)).output_parser()
}

/// Whether an agent executes a file of its working directory, or commands in it, regardless of its options.
pub fn executes_file(agent: &settings::AgentConfig, path: &str) -> bool {
    credentials::effective_kind(agent) == AgentKind::Opencode && runs_in_opencode(path)
}

/// The adapter for a kind of agent. `None` for the project's checks, which are no agent.
pub fn adapter_for(kind: AgentKind) -> Option<AgentAdapter> {
    Some(match kind {
        AgentKind::Command => AgentAdapter::plain(command_agent),
        AgentKind::Demo => AgentAdapter::plain(demo_agent),
        AgentKind::Checks => return None,
        AgentKind::Claude => AgentAdapter::json::<claude::ClaudeStream>(claude::command_line, &claude::SESSION_PATHS),
        AgentKind::Codex => AgentAdapter::json::<codex::CodexStream>(codex::command_line, &codex::SESSION_PATHS),
        AgentKind::Gemini => AgentAdapter::json::<gemini::GeminiStream>(gemini::command_line, &gemini::SESSION_PATHS),
        AgentKind::Qwen => AgentAdapter::json::<qwen::QwenStream>(qwen::command_line, &qwen::SESSION_PATHS),
        AgentKind::Opencode => {
            AgentAdapter::json::<opencode::OpencodeStream>(opencode::command_line, &opencode::SESSION_PATHS)
        }
        AgentKind::Copilot => AgentAdapter {
            usage_paths: &copilot::USAGE_PATHS,
            ..AgentAdapter::json::<copilot::CopilotStream>(copilot::command_line, &copilot::SESSION_PATHS)
        },
        AgentKind::Acp => AgentAdapter::json::<acp::AcpStream>(acp::command_line, &[]),
    })
}
