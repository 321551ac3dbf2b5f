//! What the fake agent is told to do: rules, the first that fits is carried out.
//!
//! As a file a script is JSON:
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
pub struct Script {
    /// Where calls are counted and logged. Without it, `FAKE_AGENT_STATE` says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<PathBuf>,
    pub rules: Vec<Rule>,
}

/// When something is done, and what.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    #[serde(default)]
    pub when: When,
    /// Whether stdin is read to its end first. An agent that does not read cannot look into its prompt.
    #[serde(default = "yes")]
    pub read_prompt: bool,
    pub steps: Vec<Step>,
}

/// What a call must be like. What is not said does not matter.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct When {
    pub role: Option<String>,
    pub reviewer: Option<String>,
    pub phase: Option<String>,
    pub task: Option<String>,
    pub cycle: Option<u32>,
    /// The how manieth call with this role, reviewer and task, from 1.
    pub call: Option<u32>,
    /// Words in the prompt.
    pub prompt: Option<String>,
}

/// One thing to do. In texts and paths `{nonce}`, `{commit}` (of the working directory's `HEAD`), `{base}`,
/// `{role}`, `{reviewer}`, `{phase}`, `{task}`, `{loop}`, `{cycle}`, `{attempt}` and `{call}` are replaced.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// To stdout, as it is.
    Say(String),
    /// To stderr, as it is.
    Complain(String),
    /// Directories are made. Relative paths are below the working directory.
    Write {
        path: String,
        text: String,
    },
    Append {
        path: String,
        text: String,
    },
    Delete(String),
    /// Runs `sh -c`; a failure ends the agent with exit code 96.
    Shell(String),
    /// Commits everything in the working directory.
    Commit(String),
    /// Writes this to the file `SIGNOFF_USAGE_FILE`.
    Usage(Value),
    /// Calls a tool of the server at `SIGNOFF_MCP_URL` with the token it was given; a file `reply` gets the answer as
    /// another line. That the call is refused is no failure.
    Tool {
        name: String,
        arguments: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply: Option<String>,
    },
    /// So many bytes to stdout, in lines.
    Flood(u64),
    /// Waits until there is such a file, a minute at most (exit code 98).
    WaitFor(String),
    /// From here on SIGTERM does nothing.
    IgnoreTerm,
    /// Starts a process in a session of its own that hangs for ever; when the step is over its number is in
    /// `pid_file`.
    Daemon {
        pid_file: String,
        #[serde(default)]
        ignores_term: bool,
    },
    /// Leaves `index.lock` in the git directory of the worktree.
    LeaveIndexLock,
    /// Sets a trap for whoever runs git here next; if it is sprung, there is a file `marker`.
    Plant {
        trap: Trap,
        marker: String,
    },
    /// Never ends by itself.
    Hang,
    /// Dies by this signal.
    Die(i32),
    /// Ends with this code. At the end of all steps: 0.
    Exit(u8),
}

/// What git would run for a repository that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trap {
    /// `core.hooksPath`, with every hook that git knows on the client's side.
    HooksPath,
    /// Files in the git directory's own `hooks`.
    Hooks,
    Fsmonitor,
    /// A clean and a smudge filter for all files.
    Filter,
    /// `diff.external`.
    Diff,
}

impl Script {
    /// A script whose calls are logged in `state`.
    pub fn new(state: impl Into<PathBuf>) -> Self {
        Self { state: Some(state.into()), rules: Vec::new() }
    }

    /// Adds a rule behind those that are there.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Writes the script to a file.
    ///
    /// # Panics
    /// If the disk does not let us.
    pub fn save(&self, path: &Path) {
        let text = serde_json::to_vec_pretty(self).expect("a script is JSON");
        fs::write(path, text).expect("a written script");
    }
}

fn yes() -> bool {
    true
}

/// Conditions, then steps, each in the order they are named.
impl Rule {
    /// For every call.
    pub fn always() -> Self {
        Self { when: When::default(), read_prompt: true, steps: Vec::new() }
    }

    pub fn role(role: &str) -> Self {
        Self { when: When { role: Some(role.to_owned()), ..When::default() }, ..Self::always() }
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

    /// Only the how manieth call with the same role, reviewer and task.
    #[must_use]
    pub fn call(mut self, call: u32) -> Self {
        self.when.call = Some(call);
        self
    }

    /// Only if the prompt has these words.
    #[must_use]
    pub fn asked_for(mut self, words: &str) -> Self {
        self.when.prompt = Some(words.to_owned());
        self
    }

    #[must_use]
    pub fn unread(mut self) -> Self {
        self.read_prompt = false;
        self
    }

    #[must_use]
    pub fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    #[must_use]
    pub fn say(self, text: &str) -> Self {
        self.step(Step::Say(text.to_owned()))
    }

    #[must_use]
    pub fn complain(self, text: &str) -> Self {
        self.step(Step::Complain(text.to_owned()))
    }

    #[must_use]
    pub fn write(self, path: &str, text: &str) -> Self {
        self.step(Step::Write { path: path.to_owned(), text: text.to_owned() })
    }

    #[must_use]
    pub fn append(self, path: &str, text: &str) -> Self {
        self.step(Step::Append { path: path.to_owned(), text: text.to_owned() })
    }

    #[must_use]
    pub fn delete(self, path: &str) -> Self {
        self.step(Step::Delete(path.to_owned()))
    }

    #[must_use]
    pub fn shell(self, script: &str) -> Self {
        self.step(Step::Shell(script.to_owned()))
    }

    #[must_use]
    pub fn commit(self, message: &str) -> Self {
        self.step(Step::Commit(message.to_owned()))
    }

    #[must_use]
    pub fn usage(self, usage: Value) -> Self {
        self.step(Step::Usage(usage))
    }

    #[must_use]
    pub fn tool(self, name: &str, arguments: Value) -> Self {
        self.step(Step::Tool { name: name.to_owned(), arguments, reply: None })
    }

    /// The same, and the answer is kept in a file.
    #[must_use]
    pub fn tool_told(self, name: &str, arguments: Value, reply: &str) -> Self {
        self.step(Step::Tool { name: name.to_owned(), arguments, reply: Some(reply.to_owned()) })
    }

    #[must_use]
    pub fn flood(self, bytes: u64) -> Self {
        self.step(Step::Flood(bytes))
    }

    #[must_use]
    pub fn wait_for(self, path: &str) -> Self {
        self.step(Step::WaitFor(path.to_owned()))
    }

    #[must_use]
    pub fn ignore_term(self) -> Self {
        self.step(Step::IgnoreTerm)
    }

    #[must_use]
    pub fn daemon(self, pid_file: &str) -> Self {
        self.step(Step::Daemon { pid_file: pid_file.to_owned(), ignores_term: false })
    }

    #[must_use]
    pub fn deaf_daemon(self, pid_file: &str) -> Self {
        self.step(Step::Daemon { pid_file: pid_file.to_owned(), ignores_term: true })
    }

    #[must_use]
    pub fn leave_index_lock(self) -> Self {
        self.step(Step::LeaveIndexLock)
    }

    #[must_use]
    pub fn plant(self, trap: Trap, marker: &str) -> Self {
        self.step(Step::Plant { trap, marker: marker.to_owned() })
    }

    #[must_use]
    pub fn hang(self) -> Self {
        self.step(Step::Hang)
    }

    #[must_use]
    pub fn die(self, signal: i32) -> Self {
        self.step(Step::Die(signal))
    }

    #[must_use]
    pub fn exit(self, code: u8) -> Self {
        self.step(Step::Exit(code))
    }
}
