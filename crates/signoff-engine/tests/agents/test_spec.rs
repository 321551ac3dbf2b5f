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
    pub access: AccessMode,
    pub reports: bool,
    pub resumes: Option<&'static str>,
    pub sandbox: SandboxBackend,
    pub root: bool,
    pub inherits: &'static [&'static str],
    pub user_home: PathBuf,
}

impl TestSpec {
    pub fn writer(kind: AgentKind) -> Self {
        let agent = settings::AgentConfig {
            name: kind.into_str().to_owned(),
            kind,
            command: Vec::new(),
            args: Vec::new(),
            env: Default::default(),
            model: None,
            timeout: None,
            pass: Vec::new(),
            fallback: None,
            provider: kind.into_str().to_owned(),
            max_agents: None,
        };
        Self {
            agent,
            model: None,
            access: AccessMode::Write,
            reports: false,
            resumes: None,
            sandbox: SandboxBackend::None,
            root: false,
            inherits: &[],
            user_home: PathBuf::from("/home/ann"),
        }
    }

    pub fn reviewer(kind: AgentKind) -> Self {
        Self { access: AccessMode::Read, reports: true, sandbox: SandboxBackend::Landlock, ..Self::writer(kind) }
    }

    pub fn line(&self) -> CommandLine {
        let report_endpoint = ReportEndpoint { url: "http://127.0.0.1:4321/mcp", variable: "SIGNOFF_MCP_TOKEN" };
        agent::adapter_for(self.agent.kind).unwrap().command_line(&AgentSpec {
            agent: &self.agent,
            model: self.model,
            signoff_program: "/usr/bin/signoff",
            access: self.access,
            worktree: Path::new("/work/repo/.signoff/worktrees/t1"),
            repository: Path::new("/work/repo"),
            checkout: Path::new("/work/repo"),
            home: Path::new("/work/attempt/home"),
            user_home: &self.user_home,
            inherited_variables: &self.inherits.iter().map(|name| (*name).to_owned()).collect(),
            report_endpoint: self.reports.then_some(report_endpoint),
            resume_session: self.resumes,
            sandbox: self.sandbox,
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
                AgentFile::Link { path, source } => {
                    writeln!(text, "{} -> {}", path.display(), source.display()).unwrap();
                }
                AgentFile::Copy { path, source } => {
                    writeln!(text, "{} copied from {}", path.display(), source.display()).unwrap()
                }
            }
        }
        text
    }
}
