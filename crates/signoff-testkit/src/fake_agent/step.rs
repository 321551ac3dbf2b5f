//! Carries out one step of a script.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use super::{Context, End, Failure, WAITED, daemon, failed, git, hang};
use crate::mcp::{Client, Reply};
use crate::script::Step;

/// How often a file is looked for, and how many times.
const PAUSE: Duration = Duration::from_millis(2);
const LOOKS: u32 = 30_000;

/// Does it; how the call ends if this was its last step.
pub fn carry_out(step: &Step, context: &Context) -> Result<Option<End>, Failure> {
    match step {
        Step::Say(text) => print(io::stdout(), &context.fill(text)?)?,
        Step::Complain(text) => print(io::stderr(), &context.fill(text)?)?,
        Step::Write { path, text } => write(&context.fill(path)?, &context.fill(text)?, false)?,
        Step::Append { path, text } => write(&context.fill(path)?, &context.fill(text)?, true)?,
        Step::Delete(path) => delete(Path::new(&context.fill(path)?)).map_err(failed)?,
        Step::Shell(script) => print(io::stdout(), &git::run("sh", &["-c", &context.fill(script)?])?)?,
        Step::Commit(message) => git::commit(&context.fill(message)?)?,
        Step::Usage(usage) => write(&context.usage_file, &usage.to_string(), false)?,
        Step::Tool { name, arguments, reply } => {
            let arguments = context.fill(&arguments.to_string())?;
            let told = call_tool(name, &arguments, context)?;
            if let Some(reply) = reply {
                write(&context.fill(reply)?, &format!("{told}\n"), true)?;
            }
        }
        Step::Flood(bytes) => flood(*bytes).map_err(failed)?,
        Step::WaitFor(path) => wait_for(Path::new(&context.fill(path)?))?,
        Step::IgnoreTerm => daemon::ignore_term()?,
        Step::Daemon { pid_file, ignores_term } => {
            daemon::start(Path::new(&context.fill(pid_file)?), *ignores_term)?;
        }
        Step::LeaveIndexLock => git::leave_index_lock()?,
        Step::Plant { trap, marker } => git::plant(*trap, Path::new(&context.fill(marker)?))?,
        Step::Hang => hang(),
        Step::Die(signal) => return Ok(Some(End::Signal(*signal))),
        Step::Exit(code) => return Ok(Some(End::Exit(*code))),
    }
    Ok(None)
}

fn print(mut to: impl Write, text: &str) -> Result<(), Failure> {
    to.write_all(text.as_bytes()).and_then(|()| to.flush()).map_err(failed)
}

fn write(path: &str, text: &str, append: bool) -> Result<(), Failure> {
    let path = Path::new(path);
    let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| {
        let mut file =
            OpenOptions::new().create(true).write(true).append(append).truncate(!append).open(path)?;
        file.write_all(text.as_bytes())
    });
    written.map_err(|error| failed(io::Error::other(format!("{}: {error}", path.display()))))
}

fn delete(path: &Path) -> io::Result<()> {
    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

fn call_tool(name: &str, arguments: &str, context: &Context) -> Result<Reply, Failure> {
    let arguments = serde_json::from_str(arguments).map_err(io::Error::from).map_err(failed)?;
    let client = Client::new(&context.mcp_url).with_token(&context.mcp_token);
    client.call(name, &arguments).map_err(failed)
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

/// Waits until the file is there.
pub fn wait_for(path: &Path) -> Result<(), Failure> {
    for _ in 0..LOOKS {
        if path.exists() {
            return Ok(());
        }
        std::thread::park_timeout(PAUSE);
    }
    Err((WAITED, format!("{} did not come", path.display())))
}
