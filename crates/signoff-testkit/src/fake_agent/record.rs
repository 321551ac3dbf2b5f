//! Counts and logs the calls of the scripted agent.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::{AgentFailure, CallContext, FakeAgentExit};
use crate::calls::{CALL_LOG, CallLogEntry, CallStart, prompt_file};

/// A call whose start has been logged.
pub struct CallRecord {
    log: PathBuf,
    number: u32,
}

/// The number of this call among those with the same role, reviewer and task.
pub fn count_call(state: &Path, context: &CallContext) -> io::Result<u32> {
    fs::create_dir_all(state)?;
    let CallContext { role, reviewer, task, .. } = context;
    let name = format!("{role}-{reviewer}-{task}").replace('/', "_");
    take_number(|number| state.join(format!("call-{name}-{number}"))).map(|(number, _)| number)
}

impl CallRecord {
    pub fn start(state: &Path, context: &CallContext, prompt: &str) -> io::Result<Self> {
        let (number, mut kept) = take_number(|number| prompt_file(state, number))?;
        kept.write_all(prompt.as_bytes())?;
        let this = Self { log: state.join(CALL_LOG), number };
        let context = context.clone();
        this.append(&CallLogEntry::Start(CallStart {
            number,
            call: context.call,
            role: context.role,
            reviewer: context.reviewer,
            phase: context.phase,
            cycle: context.cycle,
            task: context.task,
            attempt: context.attempt,
            pid: std::process::id(),
            at_ms: now_ms(),
            prompt_bytes: prompt.len() as u64,
        }))?;
        Ok(this)
    }

    pub fn end(self, end: &Result<FakeAgentExit, AgentFailure>) -> io::Result<()> {
        let status = match end {
            Ok(FakeAgentExit::Exit(code)) | Err((code, _)) => format!("exit {code}"),
            Ok(FakeAgentExit::Signal(signal)) => format!("signal {signal}"),
        };
        self.append(&CallLogEntry::End { number: self.number, at_ms: now_ms(), status })
    }

    /// Appends one line in a single write, so that lines of concurrent agents do not mix.
    fn append(&self, entry: &CallLogEntry) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        OpenOptions::new().create(true).append(true).open(&self.log)?.write_all(&line)
    }
}

/// Creates the file with the first free number.
fn take_number(path: impl Fn(u32) -> PathBuf) -> io::Result<(u32, File)> {
    for number in 1.. {
        match File::create_new(path(number)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return Ok((number, made?)),
        }
    }
    Err(io::Error::other("there are no numbers left"))
}

#[expect(clippy::disallowed_methods, reason = "the fake agent's one door to the clock")]
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
