//! Parses an agent's output into its final message and its summary, and stores both in the attempt's directory.
//!
//! Both are rebuilt from the transcript whenever an attempt is finished, so a restarted process gets the same result.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use signoff_core::agent_output::{AgentError, AgentErrorKind, AgentSummary, DeniedTool};
use signoff_core::contract::MAX_BYTES;
use signoff_core::machine::AttemptFailure;
use signoff_core::rate_limit::{self, ExitOutput, RateLimited};
use signoff_core::view::AttemptStart;

use super::finish::{EndedAttempt, exit_failure, failed_end, read_start};
use super::{AttemptEnd, EngineContext, list_first};
use crate::agent::{self, AgentAdapter, AgentExit, AgentResult, OutputParser, error_text};
use crate::atomic_file::{self, WriteMode};
use crate::attempt_spec::AttemptSpec;
use crate::clock;
use crate::error::EngineError;
use crate::process::{AttemptDir, ProcessExit, ProcessResult};

/// Maximum length of a line: no answer may be longer.
const MAX_LINE_BYTES: u64 = 2 * MAX_BYTES as u64;

/// How much of stderr and stdout is searched for errors, in bytes.
const MAX_SEARCHED_TAIL: u64 = 64 * 1024;

/// Parses the output of an agent with structured output.
pub fn parse_output(EndedAttempt { ctx, spec, dir, ended }: EndedAttempt<'_>) -> Result<(), EngineError> {
    let Some(agent) = adapter(ctx, &spec.launch.agent) else { return Ok(()) };
    let result = parse_transcript(&agent, dir, ended, spec.launch.resumes.is_some());
    store_result(ctx, dir, result).map_err(|error| EngineError::io("store the output in", dir.path(), error))
}

/// The adapter of an agent with structured output.
fn adapter(ctx: &EngineContext, agent: &str) -> Option<AgentAdapter> {
    agent::adapter_for(ctx.settings.agent(agent)?.kind).filter(|agent| !agent.is_plain)
}

/// Parses the output of an attempt whose end was not seen. Returns its session.
pub fn parse_lost_output(ctx: &EngineContext, start: &AttemptStart, dir: &AttemptDir) -> Option<String> {
    let agent = adapter(ctx, &start.launch.agent)?;
    let (home, ended_at) = (dir.home(), clock::now());
    let (started_at, resumed) = (start.at, start.launch.resumes.is_some());
    let closing = AgentExit { code: None, stderr: &[], home: &home, started_at, ended_at, resumed };
    let result = read_output(&agent, dir).finish(&closing);
    let session = result.summary.session.clone();
    // Only the usage is lost if this fails.
    store_result(ctx, dir, result).ok();
    session
}

/// Parses the transcript.
pub fn parse_transcript(agent: &AgentAdapter, dir: &AttemptDir, ended: &ProcessResult, resumed: bool) -> AgentResult {
    let mut parser = read_output(agent, dir);
    let code = if let ProcessExit::Code(code) = ended.exit { Some(code) } else { None };
    let stdout = read_end(&dir.stdout(), MAX_SEARCHED_TAIL);
    let is_complete = (stdout.len() as u64) < MAX_SEARCHED_TAIL;
    let stderr = error_text::error_output(read_end(&dir.stderr(), MAX_SEARCHED_TAIL), &stdout, is_complete);
    parser.finish(&AgentExit {
        code,
        stderr: &stderr,
        home: &dir.home(),
        started_at: ended.started_at,
        ended_at: ended.ended_at,
        resumed,
    })
}

/// A parser that has read the agent's stdout.
fn read_output(agent: &AgentAdapter, dir: &AttemptDir) -> Box<dyn OutputParser> {
    let mut parser = agent.output_parser();
    let readable = dir.stdout().metadata().is_ok_and(|file| file.is_file());
    if let Some(file) = readable.then(|| File::open(dir.stdout()).ok()).flatten() {
        // Unreadable output is treated as empty.
        lines(BufReader::new(file), parser.as_mut()).ok();
    }
    parser
}

/// Passes on lines, each in bounded memory.
fn lines(mut reader: impl BufRead, parser: &mut dyn OutputParser) -> io::Result<()> {
    let mut line = Vec::new();
    while reader.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)? > 0 {
        if line.last() == Some(&b'\n') || line.len() < MAX_LINE_BYTES as usize {
            parser.parse_line(line.trim_ascii_end());
        } else {
            // The start of the line shows that there was output.
            parser.parse_line(&line);
            reader.skip_until(b'\n')?;
        }
        line.clear();
    }
    Ok(())
}

/// Stores the result. The supervisor has redacted the output, but files in the agent's home are not redacted yet.
fn store_result(ctx: &EngineContext, dir: &AttemptDir, result: AgentResult) -> io::Result<()> {
    let secrets = ctx.secrets_of(dir);
    let AgentResult { message, alternatives: others, mut summary } = result;
    if let Some(error) = &mut summary.error {
        error.message = secrets.redact_text(&error.message);
    }
    summary.unread_line = summary.unread_line.map(|line| secrets.redact_text(&line));
    for DeniedTool { tool, about } in &mut summary.denied {
        (*tool, *about) = (secrets.redact_text(tool), secrets.redact_text(about));
    }
    for spent in &mut summary.spent {
        spent.model = spent.model.as_deref().map(|model| secrets.redact_text(model));
    }
    let others: Vec<String> = others.iter().map(|other| secrets.redact_text(other)).collect();
    atomic_file::write_json(&dir.message_alternatives(), &others, WriteMode::Plain)?;
    atomic_file::write(&dir.message(), secrets.redact_text(&message).as_bytes(), WriteMode::Plain)?;
    atomic_file::write_json(&dir.summary(), &summary, WriteMode::Plain)
}

/// The agent's summary; `None` if its kind has no structured output.
pub fn agent_summary(dir: &AttemptDir) -> Option<AgentSummary> {
    serde_json::from_slice(&read_start(&dir.summary(), MAX_BYTES as u64)).ok()
}

/// The final message, cut one byte above the maximum size of an answer so that oversized answers are detected.
pub fn message(dir: &AttemptDir) -> Vec<u8> {
    let path = if dir.summary().exists() { dir.message() } else { dir.stdout() };
    read_start(&path, MAX_BYTES as u64 + 1)
}

/// Alternative ways to join the blocks of the final message.
pub fn message_others(dir: &AttemptDir) -> Vec<String> {
    serde_json::from_slice(&read_start(&dir.message_alternatives(), 8 * MAX_LINE_BYTES)).unwrap_or_default()
}

/// The end of an agent that did not succeed: stopped by signoff, else as its summary says, else by its exit code.
pub fn unsuccessful_end(attempt: EndedAttempt<'_>) -> Option<AttemptEnd> {
    let EndedAttempt { spec, dir, ended, .. } = attempt;
    let summary = agent_summary(dir);
    let of_error = |summary: AgentSummary| summary.error.map(|error| end_of_error(spec, error));
    match &ended.exit {
        ProcessExit::Stopped | ProcessExit::Orphaned => Some(AttemptEnd::Stopped),
        ProcessExit::Code(_) | ProcessExit::Signal(_) => summary.map_or_else(|| end_of_exit(attempt), of_error),
        // Use the final message even if the process hung. Other errors may only show that it was cut off.
        ProcessExit::TimedOut | ProcessExit::Silent => match summary.map(of_error) {
            None | Some(Some(AttemptEnd::Event(_))) => end_of_exit(attempt),
            Some(end) => end,
        },
        ProcessExit::OutputLost { .. } | ProcessExit::NotStarted { .. } => end_of_exit(attempt),
    }
}

/// A note about an agent that finished but did not exit.
pub fn hung_note(EndedAttempt { spec, dir, ended, .. }: EndedAttempt<'_>) -> Option<String> {
    let hung = matches!(ended.exit, ProcessExit::TimedOut | ProcessExit::Silent);
    let is_complete = || agent_summary(dir).is_some_and(|summary| summary.error.is_none());
    let agent = &spec.launch.agent;
    (hung && is_complete()).then(|| format!("{agent} finished but did not exit; it was stopped, and its work counts"))
}

fn end_of_error(spec: &AttemptSpec, error: AgentError) -> AttemptEnd {
    if error.kind == AgentErrorKind::SessionGone && spec.launch.resumes.is_some() {
        return AttemptEnd::SessionGone;
    }
    match RateLimited::from_error(error) {
        Ok(limited) => AttemptEnd::RateLimited(limited),
        Err(error) => failed_end(spec, AttemptFailure::Agent(error)),
    }
}

fn end_of_exit(attempt: EndedAttempt<'_>) -> Option<AttemptEnd> {
    let failure = exit_failure(&attempt.ended.exit)?;
    let limited = rate_limited(attempt).map(AttemptEnd::RateLimited);
    Some(limited.unwrap_or_else(|| failed_end(attempt.spec, failure)))
}

/// Maximum number of denied tools in a note.
const MAX_LISTED_TOOLS: usize = 5;

/// A note about tools that a reviewer tried to use and may not.
pub fn denied_tools_note(dir: &AttemptDir, agent_label: &str) -> Option<String> {
    let denied = agent_summary(dir)?.denied;
    let tools: Vec<String> = denied.iter().map(denied_tool).collect();
    (!tools.is_empty()).then(|| format!("{agent_label} was denied: {}", list_first(&tools, MAX_LISTED_TOOLS)))
}

fn denied_tool(DeniedTool { tool, about }: &DeniedTool) -> String {
    let about: String = about.chars().take(80).collect();
    if about.is_empty() { tool.clone() } else { format!("{tool} ({about})") }
}

/// How much of the end of the output is searched, in bytes.
const MAX_RATE_LIMIT_TAIL: u64 = 16 * 1024;

/// Detects a rate limit in the output of an agent without structured output, with the wait that it asked for.
fn rate_limited(EndedAttempt { ctx, spec, dir, ended }: EndedAttempt<'_>) -> Option<RateLimited> {
    let ProcessExit::Code(code) = ended.exit else { return None };
    let kind = ctx.settings.agent(&spec.launch.agent)?.kind;
    if !agent::adapter_for(kind)?.is_plain {
        return None;
    }
    let (stdout, stderr) = (read_end(&dir.stdout(), MAX_RATE_LIMIT_TAIL), read_end(&dir.stderr(), MAX_RATE_LIMIT_TAIL));
    let refused = rate_limit::detect(&ExitOutput { code, stdout: &stdout, stderr: &stderr })?;
    Some(RateLimited { retry_after: retry_after(dir).or(refused.retry_after), error: refused.error })
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RetryHint {
    retry_after_seconds: Option<f64>,
}

/// The wait that the agent wrote to its usage file.
fn retry_after(dir: &AttemptDir) -> Option<Duration> {
    let hint: RetryHint = serde_json::from_slice(&read_start(&dir.usage(), 64 * 1024)).unwrap_or_default();
    Duration::try_from_secs_f64(hint.retry_after_seconds?).ok()
}

/// The last `max_bytes` bytes of a regular file.
pub fn read_end(path: &Path, max_bytes: u64) -> Vec<u8> {
    let mut text = Vec::new();
    let file = path.metadata().ok().filter(|file| file.is_file()).and_then(|_| File::open(path).ok());
    if let Some(mut file) = file {
        let length = file.metadata().map_or(0, |file| file.len());
        if file.seek(SeekFrom::Start(length.saturating_sub(max_bytes))).is_ok() {
            file.take(max_bytes).read_to_end(&mut text).ok();
        }
    }
    text
}
