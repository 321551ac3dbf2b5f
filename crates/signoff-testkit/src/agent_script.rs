//! The script of the fake agent: a list of rules, of which the first match is run.
//!
//! A script file is JSON:
//!
//! ```json
//! {
//!   "state": "/where/calls/are/logged",
//!   "rules": [
//!     { "when": { "role": "implement" }, "steps": [{ "write": { "path": "a.txt", "text": "hello\n" } }] },
//!     { "when": { "role": "review", "call": 1 }, "steps": [{ "say": "Verdict: {nonce}\n" }, { "exit": 0 }] },
//!     { "when": {}, "read_prompt": false, "steps": ["hang"] }
//!   ]
//! }
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Rules for all calls of one test.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentScript {
    /// The directory of the call log. Defaults to `FAKE_AGENT_STATE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<PathBuf>,
    pub rules: Vec<ScriptRule>,
}

/// A condition and the steps to run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptRule {
    #[serde(default)]
    pub when: ScriptCondition,
    /// Whether to read the prompt from stdin first. Otherwise the rule cannot depend on the prompt.
    #[serde(default = "default_true")]
    pub read_prompt: bool,
    pub steps: Vec<ScriptStep>,
}

/// The condition of a rule. Unset fields match everything.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptCondition {
    pub role: Option<String>,
    pub reviewer: Option<String>,
    pub phase: Option<String>,
    pub task: Option<String>,
    pub cycle: Option<u32>,
    /// The number of the call with this role, reviewer and task, from 1.
    pub call: Option<u32>,
    /// A substring of the prompt.
    pub prompt: Option<String>,
}

/// One step. In texts and paths `{nonce}`, `{commit}` (the working directory's `HEAD`), `{base}`, `{role}`,
/// `{reviewer}`, `{phase}`, `{task}`, `{loop}`, `{cycle}`, `{attempt}` and `{call}` are replaced.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ScriptStep {
    /// Prints to stdout.
    Say(String),
    /// Prints to stderr.
    Complain(String),
    /// Writes a file and creates its directories. Relative paths are below the working directory.
    Write {
        path: String,
        text: String,
    },
    Append {
        path: String,
        text: String,
    },
    Delete(String),
    /// Runs `sh -c`. A failure ends the agent with exit code 96.
    Shell(String),
    /// Commits everything in the working directory.
    Commit(String),
    /// Writes this to the file `SIGNOFF_USAGE_FILE`.
    Usage(Value),
    /// Calls a tool of the server at `SIGNOFF_MCP_URL` with the agent's token, and appends the response to the file
    /// `reply`. A refused call is not a failure.
    Tool {
        name: String,
        arguments: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply: Option<String>,
    },
    /// Prints this number of bytes to stdout, in lines.
    Flood(u64),
    /// Waits for a file, at most one minute (exit code 98).
    WaitFor(String),
    /// Ignores SIGTERM from now on.
    IgnoreTerm,
    /// Starts a process in its own session that never exits. Its pid is in `pid_file` when the step is over.
    Daemon {
        pid_file: String,
        #[serde(default)]
        ignores_term: bool,
    },
    /// Leaves `index.lock` in the git directory of the worktree.
    LeaveIndexLock,
    /// Plants a program that the next git process here would run; it creates the file `marker`.
    Plant {
        trap: GitTrap,
        marker: String,
    },
    /// Never ends.
    Hang,
    /// Kills itself with this signal.
    Die(i32),
    /// Exits with this code. Without it, the code after the last step is 0.
    Exit(u8),
}

/// Repository settings that make git run a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GitTrap {
    /// `core.hooksPath`, with every client-side hook.
    HooksPath,
    /// Hooks in the git directory's own `hooks`.
    Hooks,
    Fsmonitor,
    /// A clean and a smudge filter for all files.
    Filter,
    /// `diff.external`.
    Diff,
}

impl AgentScript {
    /// A script whose calls are logged in `state`.
    pub fn new(state: impl Into<PathBuf>) -> Self {
        Self { state: Some(state.into()), rules: Vec::new() }
    }

    /// Appends a rule.
    #[must_use]
    pub fn rule(mut self, rule: ScriptRule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Writes the script to a file.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn save(&self, path: &Path) {
        let text = serde_json::to_vec_pretty(self).expect("a script is JSON");
        fs::write(path, text).expect("a written script");
    }
}

fn default_true() -> bool {
    true
}

/// Builder methods: conditions first, then steps in order.
impl ScriptRule {
    /// A rule for every call.
    pub fn always() -> Self {
        Self { when: ScriptCondition::default(), read_prompt: true, steps: Vec::new() }
    }

    pub fn role(role: &str) -> Self {
        Self { when: ScriptCondition { role: Some(role.to_owned()), ..ScriptCondition::default() }, ..Self::always() }
    }

    #[must_use]
    pub fn reviewer(mut self, name: &str) -> Self {
        self.when.reviewer = Some(name.to_owned());
        self
    }

    #[must_use]
    pub fn phase(mut self, phase: &str) -> Self {
        self.when.phase = Some(phase.to_owned());
        self
    }

    #[must_use]
    pub fn task(mut self, task: &str) -> Self {
        self.when.task = Some(task.to_owned());
        self
    }

    #[must_use]
    pub fn cycle(mut self, cycle: u32) -> Self {
        self.when.cycle = Some(cycle);
        self
    }

    /// Matches only the call with this number among those with the same role, reviewer and task.
    #[must_use]
    pub fn call(mut self, call: u32) -> Self {
        self.when.call = Some(call);
        self
    }

    /// Matches only if the prompt contains this text.
    #[must_use]
    pub fn prompt_contains(mut self, words: &str) -> Self {
        self.when.prompt = Some(words.to_owned());
        self
    }

    #[must_use]
    pub fn without_reading_prompt(mut self) -> Self {
        self.read_prompt = false;
        self
    }

    #[must_use]
    pub fn step(mut self, step: ScriptStep) -> Self {
        self.steps.push(step);
        self
    }

    #[must_use]
    pub fn say(self, text: &str) -> Self {
        self.step(ScriptStep::Say(text.to_owned()))
    }

    #[must_use]
    pub fn complain(self, text: &str) -> Self {
        self.step(ScriptStep::Complain(text.to_owned()))
    }

    #[must_use]
    pub fn write(self, path: &str, text: &str) -> Self {
        self.step(ScriptStep::Write { path: path.to_owned(), text: text.to_owned() })
    }

    #[must_use]
    pub fn append(self, path: &str, text: &str) -> Self {
        self.step(ScriptStep::Append { path: path.to_owned(), text: text.to_owned() })
    }

    #[must_use]
    pub fn delete(self, path: &str) -> Self {
        self.step(ScriptStep::Delete(path.to_owned()))
    }

    #[must_use]
    pub fn shell(self, script: &str) -> Self {
        self.step(ScriptStep::Shell(script.to_owned()))
    }

    #[must_use]
    pub fn commit(self, message: &str) -> Self {
        self.step(ScriptStep::Commit(message.to_owned()))
    }

    #[must_use]
    pub fn usage(self, usage: Value) -> Self {
        self.step(ScriptStep::Usage(usage))
    }

    #[must_use]
    pub fn tool(self, name: &str, arguments: Value) -> Self {
        self.step(ScriptStep::Tool { name: name.to_owned(), arguments, reply: None })
    }

    /// Calls a tool and stores the response in a file.
    #[must_use]
    pub fn tool_with_reply(self, name: &str, arguments: Value, reply: &str) -> Self {
        self.step(ScriptStep::Tool { name: name.to_owned(), arguments, reply: Some(reply.to_owned()) })
    }

    #[must_use]
    pub fn flood(self, bytes: u64) -> Self {
        self.step(ScriptStep::Flood(bytes))
    }

    #[must_use]
    pub fn wait_for(self, path: &str) -> Self {
        self.step(ScriptStep::WaitFor(path.to_owned()))
    }

    #[must_use]
    pub fn ignore_term(self) -> Self {
        self.step(ScriptStep::IgnoreTerm)
    }

    #[must_use]
    pub fn daemon(self, pid_file: &str) -> Self {
        self.step(ScriptStep::Daemon { pid_file: pid_file.to_owned(), ignores_term: false })
    }

    #[must_use]
    pub fn term_ignoring_daemon(self, pid_file: &str) -> Self {
        self.step(ScriptStep::Daemon { pid_file: pid_file.to_owned(), ignores_term: true })
    }

    #[must_use]
    pub fn leave_index_lock(self) -> Self {
        self.step(ScriptStep::LeaveIndexLock)
    }

    #[must_use]
    pub fn plant(self, trap: GitTrap, marker: &str) -> Self {
        self.step(ScriptStep::Plant { trap, marker: marker.to_owned() })
    }

    #[must_use]
    pub fn hang(self) -> Self {
        self.step(ScriptStep::Hang)
    }

    #[must_use]
    pub fn die(self, signal: i32) -> Self {
        self.step(ScriptStep::Die(signal))
    }

    #[must_use]
    pub fn exit(self, code: u8) -> Self {
        self.step(ScriptStep::Exit(code))
    }
}
