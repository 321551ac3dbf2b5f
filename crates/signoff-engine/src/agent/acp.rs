//! `kind = "acp"`: any agent that implements the Agent Client Protocol. `signoff __acp` runs the protocol and
//! prints the lines of [`AcpLine`], which are parsed here.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::Path;

use serde::{Deserialize, Serialize};
use signoff_core::agent_output::{AgentError, AgentErrorKind, ModelSpend, OutputLine, TokenCounts};

use super::bounded::{self, KeptOutput};
use super::json_line::JsonStream;
use super::{
    AccessMode, AgentExit, AgentFile, AgentSpec, CommandLine, ReportEndpoint, error_text, first_line,
    flags_with_values, gemini, opencode,
};

/// The hidden subcommand that runs the protocol.
pub const ACP_SUBCOMMAND: &str = "__acp";

/// Exit code of that subcommand if the agent printed nothing and exited with 0 or not at all.
pub const EXIT_SILENT: u8 = 3;

pub fn command_line(spec: &AgentSpec<'_>) -> CommandLine {
    let (program, first) = spec.program("");
    let CommandLine { arguments, environment, files, .. } = known_setup(&program, spec);
    // The arguments of a known agent select the model.
    let flags = flags(&AgentSpec { model: spec.model.filter(|_| arguments.is_empty()), ..*spec });
    let own_arguments = [ACP_SUBCOMMAND.to_owned()].into_iter().chain(flags).chain(["--".to_owned()]);
    let agent = [program].into_iter().chain(first).chain(arguments);
    CommandLine {
        program: spec.signoff_program.to_owned(),
        arguments: own_arguments.chain(agent).chain(spec.agent.args.iter().cloned()).collect(),
        environment,
        files,
    }
}

/// Flags of `__acp`. The token stays in its variable.
fn flags(spec: &AgentSpec<'_>) -> Vec<String> {
    let mut flags = Vec::new();
    if spec.access == AccessMode::Read {
        flags.push("--read".to_owned());
    }
    if let Some(ReportEndpoint { url, variable }) = spec.report_endpoint {
        flags.extend(["--report".to_owned(), url.to_owned(), variable.to_owned()]);
    }
    flags.extend(flags_with_values([("--resume", spec.resume_session), ("--model", spec.model)]));
    flags
}

/// Setup for agents known by name. The protocol cannot restrict an agent that does not ask for permission, so
/// the files and variables of the agent's own adapter are used here too. The report server is passed by the
/// protocol.
fn known_setup(program: &str, spec: &AgentSpec<'_>) -> CommandLine {
    let spec = &AgentSpec { report_endpoint: None, ..*spec };
    match Path::new(program).file_name().and_then(OsStr::to_str) {
        Some("opencode") => CommandLine { arguments: Vec::new(), ..opencode::command_line(spec) },
        Some("gemini") => {
            let CommandLine { environment, files, .. } = gemini::command_line(spec);
            let files = files.into_iter().map(|file| without_final_rule(file, spec)).collect();
            CommandLine { arguments: gemini_args(spec), environment, files, ..CommandLine::default() }
        }
        Some(_) | None => CommandLine::default(),
    }
}

/// The rules without the final one, which would deny our own tool. The agent asks about everything else and is
/// refused.
fn without_final_rule(file: AgentFile, spec: &AgentSpec<'_>) -> AgentFile {
    match file {
        AgentFile::Text { path, .. } if path == gemini::rules_path(spec) => {
            AgentFile::Text { path, text: gemini::READ_ONLY_RULES.to_owned() }
        }
        AgentFile::Text { .. } | AgentFile::Copy { .. } | AgentFile::Link { .. } => file,
    }
}

/// Gemini's plan mode calls none of our tools, so only the rules restrict a reader.
fn gemini_args(spec: &AgentSpec<'_>) -> Vec<String> {
    let mut arguments = vec!["--skip-trust".to_owned(), "-e".to_owned(), "none".to_owned()];
    if spec.access == AccessMode::Read {
        arguments.extend(["--policy".to_owned(), gemini::rules_path(spec).display().to_string()]);
    }
    arguments.extend(flags_with_values([("-m", spec.model)]));
    arguments
}

/// State of the parser.
#[derive(Debug, Default)]
pub struct AcpStream {
    error: Option<AgentError>,
    /// Total cost.
    dollars: Option<f64>,
    ended: bool,
    /// Set if the handshake failed, with the agent's first output.
    handshake_failure: Option<Option<String>>,
}

impl JsonStream for AcpStream {
    const MESSAGE_TYPE: &'static str = "text";

    fn parse(&mut self, line: &str, kept: &mut KeptOutput) -> Option<Vec<OutputLine>> {
        Some(self.apply(serde_json::from_str(line).ok()?, kept).into_iter().collect())
    }

    fn finish(&mut self, exit: &AgentExit<'_>, kept: &mut KeptOutput) -> Option<AgentError> {
        if !self.ended {
            let unspoken = self.handshake_failure.take();
            self.error.get_or_insert_with(|| match unspoken {
                Some(output) => handshake_error(output, exit),
                None => exit.missing_result_error(),
            });
        }
        assign_cost(self.dollars, &mut kept.summary.spent);
        self.error.take()
    }
}

impl AcpStream {
    fn apply(&mut self, line: AcpLine, kept: &mut KeptOutput) -> Option<OutputLine> {
        match line {
            AcpLine::Session { id } => kept.summary.session = Some(id),
            AcpLine::Text { text, begins } => {
                if begins {
                    kept.message.end_block();
                }
                kept.message.push(&text);
                let shown = text.trim_end();
                return (!shown.is_empty()).then(|| OutputLine::Text(shown.to_owned()));
            }
            AcpLine::Tool { name, about } => {
                kept.message.clear();
                return Some(OutputLine::Tool { name, about });
            }
            AcpLine::Denied { tool, about } => {
                kept.message.clear();
                return Some(kept.deny(bounded::tool_call(&tool, first_line(&about))));
            }
            AcpLine::Usage { model, input, cached, written, output } => {
                kept.add_tokens(model.as_deref(), TokenCounts { input, cached, written, output });
            }
            AcpLine::Cost { usd } => self.dollars = Some(usd),
            AcpLine::Reports { found } => kept.summary.reached_report_server = Some(found),
            AcpLine::Error { code, message } => {
                let kind = error_kind(code, &message);
                let message = error_text::parse_response(&message).map_or_else(|| message.clone(), Cow::into_owned);
                self.error.get_or_insert_with(|| AgentError::new(kind, first_line(&message)));
                return Some(OutputLine::Error(message));
            }
            AcpLine::HandshakeFailed { output } => self.handshake_failure = Some(output),
            AcpLine::End { reason } => {
                self.ended = true;
                self.end(&reason);
            }
            // Unreadable lines are reported before the lines preceding them are parsed, so a tool call does not
            // clear this.
            AcpLine::Unread { line } => {
                kept.summary.unread_line.get_or_insert(line);
            }
            AcpLine::Unknown => {}
        }
        None
    }

    fn end(&mut self, reason: &str) {
        let (kind, message) = match reason {
            "end_turn" => return,
            "max_tokens" => (AgentErrorKind::OwnLimit, "the answer reached the token limit".to_owned()),
            "max_turn_requests" => (AgentErrorKind::OwnLimit, "it reached the limit of model requests".to_owned()),
            "refusal" => (AgentErrorKind::Other, "it refused".to_owned()),
            reason => (AgentErrorKind::Other, format!("it stopped: {reason}")),
        };
        self.error.get_or_insert_with(|| AgentError::new(kind, message));
    }
}

/// The cost is reported for all models together.
fn assign_cost(dollars: Option<f64>, spent: &mut Vec<ModelSpend>) {
    let micro = dollars.map(|dollars| (dollars * 1e6).round() as u64).filter(|micro| *micro > 0);
    match (micro, spent.as_mut_slice()) {
        (Some(_), [one]) => one.cost_micro_usd = micro,
        (Some(_), _) => spent.push(ModelSpend { cost_micro_usd: micro, ..ModelSpend::default() }),
        (None, _) => {}
    }
}

/// A failed handshake. An agent that exits with an error before its first output may work next time.
fn handshake_error(output: Option<String>, end: &AgentExit<'_>) -> AgentError {
    match (output, end.code) {
        (Some(output), _) => AgentError::new(AgentErrorKind::Protocol, first_line(&output)),
        (None, Some(code)) if code != i32::from(EXIT_SILENT) => end.missing_result_error(),
        (None, Some(_) | None) => {
            let stderr = String::from_utf8_lossy(end.stderr);
            let output = error_text::find_error(&stderr).unwrap_or_else(|| "it printed nothing".to_owned());
            AgentError::new(AgentErrorKind::Protocol, first_line(&output))
        }
    }
}

/// Some agents use their provider's HTTP status as the error code.
fn error_kind(code: Option<i32>, message: &str) -> AgentErrorKind {
    const LOGIN_NEEDED: i32 = -32000;
    // The provider's answer broke off, although the status says otherwise.
    const BROKE_OFF: &str = "terminated";
    if message == BROKE_OFF {
        return AgentErrorKind::InvalidResponse;
    }
    let status = code.and_then(|code| u16::try_from(code).ok()).filter(|code| (400..600).contains(code));
    if code == Some(LOGIN_NEEDED) { AgentErrorKind::NotLoggedIn } else { error_text::classify(status, message, None) }
}

/// One line of output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AcpLine {
    /// The session that was started or resumed.
    Session { id: String },
    /// A part of a message. The next part continues it unless it begins a new one.
    Text { text: String, begins: bool },
    /// A tool call.
    Tool { name: String, about: String },
    /// A tool call that was denied.
    Denied { tool: String, about: String },
    /// Tokens used by a model.
    Usage { model: Option<String>, input: u64, cached: u64, written: u64, output: u64 },
    /// Total cost so far, in dollars.
    Cost { usd: f64 },
    /// Whether the agent can use the report server.
    Reports { found: bool },
    /// The error that the agent ended with.
    Error { code: Option<i32>, message: String },
    /// The agent did not complete the handshake. Contains its first output, if any.
    #[serde(rename = "unspoken")]
    HandshakeFailed {
        #[serde(rename = "said")]
        output: Option<String>,
    },
    /// The beginning of a line that may be part of a message and could not be parsed.
    Unread { line: String },
    /// The protocol's stop reason.
    End { reason: String },
    /// A line of another version of signoff.
    #[serde(other)]
    Unknown,
}
