//! Orders as an adapter gets them, and the command lines that it makes of them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use signoff_core::config::{self, AgentKind};
use signoff_engine::agent::{self, CommandLine, Duty, Hold, Laid, Order, Reporting};

/// An order, in the words that a test needs.
#[derive(Debug, Clone)]
pub struct Ask {
    pub agent: config::Agent,
    pub model: Option<&'static str>,
    pub duty: Duty,
    pub reports: bool,
    pub resumes: Option<&'static str>,
    pub hold: Hold,
    pub root: bool,
    pub inherits: &'static [&'static str],
    pub person: PathBuf,
}

impl Ask {
    pub fn writer(kind: AgentKind) -> Self {
        let agent = config::Agent {
            name: kind.word().to_owned(),
            kind,
            command: Vec::new(),
            args: Vec::new(),
            env: Default::default(),
            model: None,
            timeout: None,
            pass: Vec::new(),
            fallback: None,
            provider: kind.word().to_owned(),
            max_agents: None,
        };
        Self {
            agent,
            model: None,
            duty: Duty::Write,
            reports: false,
            resumes: None,
            hold: Hold::Nobody,
            root: false,
            inherits: &[],
            person: PathBuf::from("/home/ann"),
        }
    }

    pub fn reviewer(kind: AgentKind) -> Self {
        Self { duty: Duty::Read, reports: true, hold: Hold::Landlock, ..Self::writer(kind) }
    }

    pub fn line(&self) -> CommandLine {
        let reporting = Reporting { url: "http://127.0.0.1:4321/mcp", variable: "SIGNOFF_MCP_TOKEN" };
        agent::of(self.agent.kind).unwrap().command_line(&Order {
            agent: &self.agent,
            model: self.model,
            program: "/usr/bin/signoff",
            duty: self.duty,
            worktree: Path::new("/work/repo/.signoff/worktrees/t1"),
            repository: Path::new("/work/repo"),
            checkout: Path::new("/work/repo"),
            home: Path::new("/work/attempt/home"),
            person: &self.person,
            inherits: &self.inherits.iter().map(|name| (*name).to_owned()).collect(),
            reporting: self.reports.then_some(reporting),
            resumes: self.resumes,
            hold: self.hold,
            root: self.root,
        })
    }

    /// The command line as people would read it: a word a line, then the environment, then the files.
    pub fn shown(&self) -> String {
        let CommandLine { program, arguments, environment, files } = self.line();
        let mut text = format!("{program}\n");
        for argument in arguments {
            writeln!(text, "  {argument}").unwrap();
        }
        for (name, value) in environment {
            match value {
                Some(value) => writeln!(text, "{name}={value}").unwrap(),
                None => writeln!(text, "without {name}").unwrap(),
            }
        }
        for file in files {
            match file {
                Laid::Text { path, text: contents } => {
                    writeln!(text, "{}:\n{contents}", path.display()).unwrap()
                }
                Laid::Link { path, of } => {
                    writeln!(text, "{} -> {}", path.display(), of.display()).unwrap();
                }
                Laid::Copy { path, of } => {
                    writeln!(text, "{} copied from {}", path.display(), of.display()).unwrap()
                }
            }
        }
        text
    }
}
