//! Translators between signoff and one kind of agent each: a job becomes a command line with its environment and
//! files, what it writes becomes what people are shown, its end becomes what it came to.
//!
//! An adapter starts nothing, decides nothing and keeps nothing. What it does not know it passes over.

mod about;
pub mod acp;
mod api_error;
mod bounded;
mod claude;
mod codex;
mod command;
mod copilot;
pub(crate) mod credentials;
mod demo;
mod gemini;
pub(crate) mod last_words;
mod line;
pub(crate) use line::note_unread;
mod opencode;
mod plain;
mod qwen;
mod refusal;
mod session_file;
pub(crate) mod set_up;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use signoff_core::config::{self, AgentKind};
use signoff_core::contract::{Blocks, SplitAnswer};
use signoff_core::heard::{Heard, Said, Trouble, TroubleKind};
pub use signoff_core::hold::Hold;
use signoff_core::steering::runs_in_opencode;

/// What an agent is asked for, as far as its command line depends on it.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    pub agent: &'a config::Agent,
    pub model: Option<&'a str>,
    /// signoff itself, for agents that are part of it.
    pub program: &'a str,
    pub duty: Duty,
    /// Where it works.
    pub worktree: &'a Path,
    /// The repository that the worktree belongs to.
    pub repository: &'a Path,
    /// Where the person is at work: what a program is looked up from that is named by a relative path.
    pub checkout: &'a Path,
    /// A directory of its own, which is there: it may write below it, and nobody else reads it.
    pub home: &'a Path,
    /// The home of the person, who may be logged in there.
    pub person: &'a Path,
    /// The names of the variables that are set in what it inherits.
    pub inherits: &'a BTreeSet<String>,
    pub reporting: Option<Reporting<'a>>,
    /// The session that it goes on with.
    pub resumes: Option<&'a str>,
    pub hold: Hold,
    /// Whether it runs as root, which some agents refuse unless they are told that they may.
    pub root: bool,
}

/// What an agent may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    /// It changes the work.
    Write,
    /// It only looks.
    Read,
}

/// Where an agent reports with a tool: a server that speaks MCP over HTTP.
#[derive(Debug, Clone, Copy)]
pub struct Reporting<'a> {
    pub url: &'a str,
    /// The variable of its environment that holds the token. The token itself is in no file and no argument.
    pub variable: &'a str,
}

/// The name under which agents know the server they report to.
pub const SERVER: &str = "signoff";

/// A command line. The prompt comes on stdin, which is closed behind it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandLine {
    pub program: String,
    pub arguments: Vec<String>,
    /// Set, or taken away where there is no value.
    pub environment: Vec<(String, Option<String>)>,
    /// What must be there before it starts.
    pub files: Vec<Laid>,
}

/// A file that an agent finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Laid {
    Text {
        path: PathBuf,
        text: String,
    },
    /// The same as another, if that is there: logins.
    Copy {
        path: PathBuf,
        of: PathBuf,
    },
    /// Another under a second name, if that is there: logins that are used up when they are renewed, so that whoever renews
    /// a copy logs the person out.
    Link {
        path: PathBuf,
        of: PathBuf,
    },
}

impl Order<'_> {
    /// The program, which is the configuration's or has its usual name, and its first arguments.
    fn program(&self, usual: &str) -> (String, Vec<String>) {
        let mut words = self.agent.command.iter().cloned();
        (words.next().map_or_else(|| usual.to_owned(), |named| self.found(&named)), words.collect())
    }

    /// A program that is named by a path is the checkout's, also while the work is done elsewhere.
    fn found(&self, program: &str) -> String {
        let is_relative = program.contains('/') && !program.starts_with('/');
        if is_relative { self.checkout.join(program).display().to_string() } else { program.to_owned() }
    }

    /// The program with what it is told: its own arguments first, the person's last.
    fn line(&self, usual: &str, arguments: impl IntoIterator<Item = String>) -> CommandLine {
        let (program, first) = self.program(usual);
        let arguments = first.into_iter().chain(arguments).chain(self.agent.args.iter().cloned());
        CommandLine { program, arguments: arguments.collect(), ..CommandLine::default() }
    }

    /// Whether a variable has a value that its adapter does not give it.
    fn finds(&self, variable: &str) -> bool {
        self.inherits.contains(variable) || self.agent.env.contains_key(variable)
    }
}

/// One kind of agent.
pub trait Agent: Send + Sync {
    fn command_line(&self, order: &Order<'_>) -> CommandLine;

    /// Where below its home it keeps its sessions: what another attempt needs to go on with one of them.
    fn keeps(&self) -> &'static [&'static str] {
        &[]
    }

    /// The files below its home that its account is read from when it has ended, besides those.
    fn accounts(&self) -> &'static [&'static str] {
        &[]
    }

    /// Who takes in what it says.
    fn listener(&self) -> Box<dyn Listener>;

    /// Whether stdout is the final message and the exit code tells how it ended.
    fn is_plain(&self) -> bool {
        false
    }
}

/// Takes in what one agent says, from its first line to its end.
pub trait Listener: Send {
    /// Takes in a line, without its end; what people are shown of it.
    fn line(&mut self, line: &[u8]) -> Vec<Said>;

    /// What all of it came to.
    fn ended(&mut self, end: &Closing<'_>) -> Account;
}

/// How an agent's process ended, and what it left.
#[derive(Debug, Clone, Copy)]
pub struct Closing<'a> {
    /// Its exit code; none if a signal or a bound of ours ended it.
    pub code: Option<i32>,
    /// The last that it wrote to stderr; to stdout, as plain text, if it wrote nothing there.
    pub stderr: &'a [u8],
    /// The directory of its own that it was given.
    pub home: &'a Path,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    /// Whether it went on in a session: what it counts may be all of that.
    pub resumed: bool,
}

/// What an agent's output came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Account {
    /// The final message: everything it said after its last tool use.
    pub message: String,
    /// The other ways to join its blocks, see [`SplitAnswer::others`].
    pub others: Vec<String>,
    pub heard: Heard,
}

impl Account {
    /// Only an agent that ended well has a final message.
    fn new(answer: Blocks, heard: Heard) -> Self {
        if heard.trouble.is_some() {
            return Self { heard, ..Self::default() };
        }
        let SplitAnswer { text: message, others, unreadable } = answer.join();
        let unreadable = heard.unreadable.or(unreadable);
        Self { message, others, heard: Heard { unreadable, ..heard } }
    }
}

impl Closing<'_> {
    /// The trouble of an agent that ended without saying how.
    pub fn without_a_word(&self) -> Trouble {
        let stderr = uncoloured(&String::from_utf8_lossy(self.stderr));
        let last = last_words::telling(&stderr);
        let how = match self.code {
            Some(code) => format!("exit code {code}"),
            None => "ended by a signal".to_owned(),
        };
        Trouble::new(TroubleKind::NoEnd, last.map_or(how.clone(), |last| format!("{how}, {last}")))
    }
}

/// Text without what makes terminals colour it.
fn uncoloured(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == ';');
        text + rest.strip_prefix('m').unwrap_or(rest)
    })
}

/// As much of a text as one takes in at a glance: its first line, or the beginning of it.
pub(crate) fn glance(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    clip(line, 160)
}

/// A text, or the beginning of it.
fn clip(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A listener that shows what was written as it is.
pub fn verbatim() -> Box<dyn Listener> {
    Box::new(plain::Plain)
}

/// Whether an agent runs a file of the directory that it works in, or what the file says, whatever it is told.
pub fn runs(agent: &config::Agent, path: &str) -> bool {
    credentials::kind_of(agent) == AgentKind::Opencode && runs_in_opencode(path)
}

/// The translator for a kind of agent; none for the project's checks, which nobody is asked for.
pub fn of(kind: AgentKind) -> Option<Box<dyn Agent>> {
    match kind {
        AgentKind::Command => Some(Box::new(command::Command)),
        AgentKind::Demo => Some(Box::new(demo::Demo)),
        AgentKind::Checks => None,
        AgentKind::Claude => Some(Box::new(claude::Claude)),
        AgentKind::Codex => Some(Box::new(codex::Codex)),
        AgentKind::Gemini => Some(Box::new(gemini::Gemini)),
        AgentKind::Qwen => Some(Box::new(qwen::Qwen)),
        AgentKind::Opencode => Some(Box::new(opencode::Opencode)),
        AgentKind::Copilot => Some(Box::new(copilot::Copilot)),
        AgentKind::Acp => Some(Box::new(acp::Acp)),
    }
}
