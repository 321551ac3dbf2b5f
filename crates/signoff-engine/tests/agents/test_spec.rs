//! Builds the specs that adapters get, and renders the command lines that they return.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use signoff_core::settings::{self, AgentKind};
use signoff_engine::agent::{self, AccessMode, AgentFile, AgentSpec, CommandLine, ReportEndpoint, SandboxBackend};

/// An agent spec with defaults for the fields that a test does not set.
#[derive(Debug, Clone)]
pub struct TestSpec {
    pub agent: settings::AgentConfig,
    pub model: Option<&'static str>,
    pub duty: AccessMode,
    pub reports: bool,
    pub resumes: Option<&'static str>,
    pub hold: SandboxBackend,
    pub root: bool,
    pub inherits: &'static [&'static str],
    pub person: PathBuf,
}

impl TestSpec {
    pub fn writer(kind: AgentKind) -> Self {
        let agent = settings::AgentConfig {
            name: kind.as_str().to_owned(),
            kind,
            command: Vec::new(),
            args: Vec::new(),
            env: Default::default(),
            model: None,
            timeout: None,
            pass: Vec::new(),
            fallback: None,
            provider: kind.as_str().to_owned(),
            max_agents: None,
        };
        Self {
            agent,
            model: None,
            duty: AccessMode::Write,
            reports: false,
            resumes: None,
            hold: SandboxBackend::None,
            root: false,
            inherits: &[],
            person: PathBuf::from("/home/ann"),
        }
    }

    pub fn reviewer(kind: AgentKind) -> Self {
        Self { duty: AccessMode::Read, reports: true, hold: SandboxBackend::Landlock, ..Self::writer(kind) }
    }

    pub fn line(&self) -> CommandLine {
        let reporting = ReportEndpoint { url: "http://127.0.0.1:4321/mcp", variable: "SIGNOFF_MCP_TOKEN" };
        agent::adapter_for(self.agent.kind).unwrap().command_line(&AgentSpec {
            agent: &self.agent,
            model: self.model,
            signoff_program: "/usr/bin/signoff",
            access: self.duty,
            worktree: Path::new("/work/repo/.signoff/worktrees/t1"),
            repository: Path::new("/work/repo"),
            checkout: Path::new("/work/repo"),
            home: Path::new("/work/attempt/home"),
            user_home: &self.person,
            inherited_variables: &self.inherits.iter().map(|name| (*name).to_owned()).collect(),
            reporting: self.reports.then_some(reporting),
            resume_session: self.resumes,
            sandbox: self.hold,
            is_root: self.root,
        })
    }

    /// Renders the command line: one argument per line, then the environment, then the files.
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
                AgentFile::Text { path, text: contents } => writeln!(text, "{}:\n{contents}", path.display()).unwrap(),
                AgentFile::Link { path, source: of } => {
                    writeln!(text, "{} -> {}", path.display(), of.display()).unwrap();
                }
                AgentFile::Copy { path, source: of } => {
                    writeln!(text, "{} copied from {}", path.display(), of.display()).unwrap()
                }
            }
        }
        text
    }
}
