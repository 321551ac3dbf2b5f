//! Runs one step of a script.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use super::{AgentFailure, CallContext, FakeAgentExit, WAIT_TIMED_OUT, daemon, git, hang, step_failed};
use crate::agent_script::ScriptStep;
use crate::mcp::{McpClient, McpReply};

/// Polling interval and maximum number of polls.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
const MAX_POLLS: u32 = 30_000;

/// Runs a step. Returns how the call ends, if this step ends it.
pub fn run_step(step: &ScriptStep, context: &CallContext) -> Result<Option<FakeAgentExit>, AgentFailure> {
    match step {
        ScriptStep::Say(text) => print(io::stdout(), &context.fill(text)?)?,
        ScriptStep::Complain(text) => print(io::stderr(), &context.fill(text)?)?,
        ScriptStep::Write { path, text } => write(&context.fill(path)?, &context.fill(text)?, false)?,
        ScriptStep::Append { path, text } => write(&context.fill(path)?, &context.fill(text)?, true)?,
        ScriptStep::Delete(path) => delete(Path::new(&context.fill(path)?)).map_err(step_failed)?,
        ScriptStep::Shell(script) => print(io::stdout(), &git::run("sh", &["-c", &context.fill(script)?])?)?,
        ScriptStep::Commit(message) => git::commit(&context.fill(message)?)?,
        ScriptStep::Usage(usage) => write(&context.usage_file, &usage.to_string(), false)?,
        ScriptStep::Tool { name, arguments, reply } => {
            let arguments = context.fill(&arguments.to_string())?;
            let reply_text = call_tool(name, &arguments, context)?;
            if let Some(reply) = reply {
                write(&context.fill(reply)?, &format!("{reply_text}\n"), true)?;
            }
        }
        ScriptStep::Flood(bytes) => flood(*bytes).map_err(step_failed)?,
        ScriptStep::WaitFor(path) => wait_for(Path::new(&context.fill(path)?))?,
        ScriptStep::IgnoreTerm => daemon::ignore_term()?,
        ScriptStep::Daemon { pid_file, ignores_term } => {
            daemon::start(Path::new(&context.fill(pid_file)?), *ignores_term)?;
        }
        ScriptStep::LeaveIndexLock => git::leave_index_lock()?,
        ScriptStep::Plant { trap, marker } => git::plant(*trap, Path::new(&context.fill(marker)?))?,
        ScriptStep::Hang => hang(),
        ScriptStep::Die(signal) => return Ok(Some(FakeAgentExit::Signal(*signal))),
        ScriptStep::Exit(code) => return Ok(Some(FakeAgentExit::Exit(*code))),
    }
    Ok(None)
}

fn print(mut to: impl Write, text: &str) -> Result<(), AgentFailure> {
    to.write_all(text.as_bytes()).and_then(|()| to.flush()).map_err(step_failed)
}

fn write(path: &str, text: &str, append: bool) -> Result<(), AgentFailure> {
    let path = Path::new(path);
    let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| {
        let mut file = OpenOptions::new().create(true).write(true).append(append).truncate(!append).open(path)?;
        file.write_all(text.as_bytes())
    });
    written.map_err(|error| step_failed(io::Error::other(format!("{}: {error}", path.display()))))
}

fn delete(path: &Path) -> io::Result<()> {
    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

fn call_tool(name: &str, arguments: &str, context: &CallContext) -> Result<McpReply, AgentFailure> {
    let arguments = serde_json::from_str(arguments).map_err(io::Error::from).map_err(step_failed)?;
    let client = McpClient::new(&context.mcp_url).with_token(&context.mcp_token);
    client.call(name, &arguments).map_err(step_failed)
}

fn flood(bytes: u64) -> io::Result<()> {
    let lines = [b"x".repeat(79), b"\n".to_vec()].concat().repeat(1024);
    let mut left = bytes;
    let mut stdout = io::stdout().lock();
    while left > 0 {
        let part = usize::try_from(left).unwrap_or(usize::MAX).min(lines.len());
        stdout.write_all(lines.get(..part).unwrap_or_default())?;
        left -= part as u64;
    }
    stdout.flush()
}

/// Waits until the file exists.
pub fn wait_for(path: &Path) -> Result<(), AgentFailure> {
    for _ in 0..MAX_POLLS {
        if path.exists() {
            return Ok(());
        }
        std::thread::park_timeout(POLL_INTERVAL);
    }
    Err((WAIT_TIMED_OUT, format!("timed out waiting for {}", path.display())))
}
