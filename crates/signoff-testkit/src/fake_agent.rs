//! The scripted agent's implementation.

mod daemon;
mod git;
mod program;
mod record;
mod step;

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::agent_script::{AgentScript, ScriptCondition, ScriptRule};
use record::CallRecord;

pub use program::program;

/// How a call ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FakeAgentExit {
    Exit(u8),
    Signal(i32),
}

/// The exit code and message of a failed call.
type AgentFailure = (u8, String);

const NO_RULE: u8 = 95;
const STEP_FAILED: u8 = 96;
const NO_SCRIPT: u8 = 97;
const WAIT_TIMED_OUT: u8 = 98;

/// The environment of one call.
#[derive(Debug, Clone, Default)]
struct CallContext {
    role: String,
    reviewer: String,
    phase: String,
    task: String,
    cycle: String,
    attempt: String,
    nonce: String,
    base: String,
    usage_file: String,
    loop_id: String,
    mcp_url: String,
    mcp_token: String,
    /// The number among the calls with the same role, reviewer and task, from 1.
    call: u32,
}

/// The main function of the fake agent.
pub fn run(arguments: &[String]) -> ExitCode {
    let end = match arguments {
        [daemon, pid_file, deaf] if daemon == daemon::DAEMON_ARGUMENT => {
            daemon::run_daemon(Path::new(pid_file), deaf == "deaf")
        }
        [script] => run_script(Path::new(script)),
        _ => Err((NO_SCRIPT, "usage: fake_agent SCRIPT".to_owned())),
    };
    match end {
        Ok(FakeAgentExit::Exit(code)) => ExitCode::from(code),
        Ok(FakeAgentExit::Signal(signal)) => kill_self(signal),
        Err((code, message)) => {
            eprintln!("fake_agent: {message}");
            ExitCode::from(code)
        }
    }
}

/// Runs the rule that matches this call, and logs its start and end.
fn run_script(script: &Path) -> Result<FakeAgentExit, AgentFailure> {
    let script: AgentScript = fs::read(script)
        .map_err(|error| error.to_string())
        .and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string()))
        .map_err(|error| (NO_SCRIPT, format!("{}: {error}", script.display())))?;
    let state = script.state.clone().or_else(|| Some(variable("FAKE_AGENT_STATE")?.into()));
    let state: PathBuf = state.ok_or_else(|| (NO_SCRIPT, "no state directory".to_owned()))?;
    let mut context = CallContext::from_env();
    context.call = record::count_call(&state, &context).map_err(step_failed)?;
    let unread =
        script.rules.iter().find(|rule| rule.when.matches_context(&context)).is_some_and(|rule| !rule.read_prompt);
    let prompt = if unread { String::new() } else { read_prompt().map_err(step_failed)? };
    let record = CallRecord::start(&state, &context, &prompt).map_err(step_failed)?;
    let end = match script.rules.iter().find(|rule| rule.when.matches(&context, &prompt)) {
        Some(rule) => run_rule(rule, &context),
        None => Err((NO_RULE, format!("no rule for {context:?}"))),
    };
    record.end(&end).map_err(step_failed)?;
    end
}

fn run_rule(rule: &ScriptRule, context: &CallContext) -> Result<FakeAgentExit, AgentFailure> {
    for step in &rule.steps {
        if let Some(end) = step::run_step(step, context)? {
            return Ok(end);
        }
    }
    Ok(FakeAgentExit::Exit(0))
}

fn read_prompt() -> io::Result<String> {
    let mut prompt = Vec::new();
    io::stdin().lock().read_to_end(&mut prompt)?;
    Ok(String::from_utf8_lossy(&prompt).into_owned())
}

fn step_failed(error: io::Error) -> AgentFailure {
    (STEP_FAILED, error.to_string())
}

fn kill_self(signal: i32) -> ExitCode {
    if let Some(signal) = rustix::process::Signal::from_named_raw(signal) {
        rustix::process::kill_process(rustix::process::getpid(), signal).ok();
    }
    // Only a signal that does not kill returns.
    hang()
}

fn hang() -> ! {
    loop {
        std::thread::park();
    }
}

#[expect(clippy::disallowed_methods, reason = "the fake agent's one door to the environment")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl CallContext {
    fn from_env() -> Self {
        let read = |name: &str| variable(name).unwrap_or_default();
        Self {
            role: read("SIGNOFF_ROLE"),
            reviewer: read("SIGNOFF_REVIEWER"),
            phase: read("SIGNOFF_PHASE"),
            task: read("SIGNOFF_TASK_ID"),
            cycle: read("SIGNOFF_CYCLE"),
            attempt: read("SIGNOFF_ATTEMPT"),
            nonce: read("SIGNOFF_NONCE"),
            base: read("SIGNOFF_BASE"),
            usage_file: read("SIGNOFF_USAGE_FILE"),
            loop_id: read("SIGNOFF_LOOP_ID"),
            mcp_url: read("SIGNOFF_MCP_URL"),
            mcp_token: read("SIGNOFF_MCP_TOKEN"),
            call: 0,
        }
    }

    /// Replaces the placeholders of a text.
    fn fill(&self, text: &str) -> Result<String, AgentFailure> {
        let call = self.call.to_string();
        let mut filled = text.to_owned();
        for (name, value) in [
            ("{role}", &self.role),
            ("{reviewer}", &self.reviewer),
            ("{phase}", &self.phase),
            ("{task}", &self.task),
            ("{loop}", &self.loop_id),
            ("{cycle}", &self.cycle),
            ("{attempt}", &self.attempt),
            ("{nonce}", &self.nonce),
            ("{base}", &self.base),
            ("{call}", &call),
        ] {
            filled = filled.replace(name, value);
        }
        if filled.contains("{commit}") {
            filled = filled.replace("{commit}", &git::git(&["rev-parse", "HEAD"])?);
        }
        Ok(filled)
    }
}

impl ScriptCondition {
    fn matches(&self, context: &CallContext, prompt: &str) -> bool {
        self.matches_context(context) && self.prompt.as_ref().is_none_or(|words| prompt.contains(words))
    }

    /// Whether everything but the prompt matches.
    fn matches_context(&self, context: &CallContext) -> bool {
        let same = |wanted: &Option<String>, is: &str| wanted.as_ref().is_none_or(|wanted| wanted == is);
        same(&self.role, &context.role)
            && same(&self.reviewer, &context.reviewer)
            && same(&self.phase, &context.phase)
            && same(&self.task, &context.task)
            && same(&self.cycle.map(|cycle| cycle.to_string()), &context.cycle)
            && self.call.is_none_or(|call| call == context.call)
    }
}
