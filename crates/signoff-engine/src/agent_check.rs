//! Checks that an agent works: asks it for one word, read-only and in an empty repository. This shows whether
//! its program, its login and its model work together before a task depends on it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use signoff_core::contract::MAX_BYTES;
use signoff_core::machine::AttemptFailure;
use signoff_core::review::Usage;
use signoff_core::sandbox::SandboxBackend;
use signoff_core::settings::{AgentConfig, Settings};

use crate::agent::{self, AccessMode, AgentSpec};
use crate::attempt::{
    UsagePricing, agent_check_environment, agent_environment, channel_secrets, exit_failure, inherited,
    parse_transcript, read_start, reported_usage, write_files,
};
use crate::error::EngineError;
use crate::git::{Git, Repository};
use crate::process::{
    AttemptDir, ProcessExit, ProcessLaunch, ProcessLimits, ProcessResult, RunningAttempt, SupervisorLauncher,
    create_private_dir,
};
use crate::sandbox::SandboxPolicy;

/// The prompt.
const PROMPT: &str = "Answer with the one word ready. Use no tools.\n";

/// Time between asking it to end and killing it.
const GRACE: Duration = Duration::from_secs(5);

/// An agent to check.
#[derive(Debug, Clone, Copy)]
pub struct AgentCheck<'a> {
    /// Settings, for prices.
    pub settings: &'a Settings,
    pub agent: &'a AgentConfig,
    /// Path of signoff itself.
    pub program: &'a Path,
    /// The user's checkout, against which a relative program path is resolved.
    pub checkout: &'a Path,
    /// The user's home directory, which may contain a login.
    pub user_home: &'a Path,
    /// Names of the variables set in our environment.
    pub variables: &'a BTreeSet<String>,
    pub sandbox: SandboxBackend,
    /// An existing, empty directory that the caller deletes.
    pub scratch_dir: &'a Path,
    pub git: &'a Git,
    /// Time limit after which it is asked to end.
    pub time_limit: Duration,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCheckOutcome {
    /// Its answer, or why there is none.
    pub answer: Result<String, AttemptFailure>,
    pub usage: Usage,
    pub duration: Duration,
}

impl AgentCheck<'_> {
    /// Starts the agent. Dropping the returned value ends it.
    pub async fn start(&self) -> Result<RunningAttempt, EngineError> {
        let dir = self.directory();
        let failed = |error| EngineError::io("prepare the agent check in", self.scratch_dir, error);
        let launch = self.prepare(&dir).map_err(failed)??;
        let (program, user_home) = (self.program.to_owned(), self.user_home.to_owned());
        let launcher = SupervisorLauncher {
            program,
            live_dir: self.scratch_dir.join("live"),
            user_home,
            secrets: channel_secrets(self.settings),
        };
        launcher.start(&launch, &dir).await.map_err(failed)
    }

    fn directory(&self) -> AttemptDir {
        AttemptDir::new(self.scratch_dir.join("attempt"))
    }

    fn repository(&self) -> PathBuf {
        self.scratch_dir.join("empty")
    }

    fn prepare(&self, dir: &AttemptDir) -> io::Result<Result<ProcessLaunch, EngineError>> {
        let own = [dir.temporary(), dir.home(), dir.usage_directory()];
        for directory in own.iter().chain([&self.repository()]) {
            create_private_dir(directory)?;
        }
        fs::write(dir.prompt(), PROMPT)?;
        fs::write(self.repository().join("README.md"), "Nothing is here.\n")?;
        if let Err(error) = Repository::init(self.git, &self.repository(), "Empty") {
            return Ok(Err(error.into()));
        }
        let Some(adapter) = agent::adapter_for(self.agent.kind) else {
            let reason = format!("agents of kind {} are not supported", self.agent.kind.into_str());
            return Ok(Err(EngineError::Internal(reason)));
        };
        let line = adapter.command_line(&AgentSpec {
            agent: self.agent,
            model: self.agent.model.as_deref(),
            signoff_program: &self.program.display().to_string(),
            access: AccessMode::Read,
            worktree: &self.repository(),
            repository: &self.repository(),
            checkout: self.checkout,
            home: &dir.home(),
            user_home: self.user_home,
            inherited_variables: &inherited(self.agent, self.variables),
            report_endpoint: None,
            resume_session: None,
            sandbox: self.sandbox,
            is_root: rustix::process::geteuid().is_root(),
        });
        write_files(&line.files)?;
        let environment = agent_environment(self.agent, line.environment, agent_check_environment(dir), self.settings);
        let sandbox = match self.sandbox {
            SandboxBackend::None => None,
            by @ (SandboxBackend::Landlock | SandboxBackend::Bubblewrap) => {
                Some(SandboxPolicy { backend: by, writable: own.into(), ports: None })
            }
        };
        let limits = ProcessLimits { time: Some(self.time_limit), silence: None, grace: GRACE };
        let (program, arguments, directory) = (line.program, line.arguments, self.repository());
        Ok(Ok(ProcessLaunch { program, arguments, directory, environment, sandbox, limits }))
    }

    /// Evaluates the result of the process.
    pub fn finish(&self, result: &ProcessResult) -> AgentCheckOutcome {
        let dir = self.directory();
        let adapter = agent::adapter_for(self.agent.kind).filter(|agent| !agent.is_plain);
        let duration = Duration::from_millis(result.duration_ms);
        let priced = UsagePricing { settings: self.settings, model: self.agent.model.as_deref() };
        let Some(adapter) = adapter else {
            let message = read_start(&dir.stdout(), MAX_BYTES as u64);
            let answer = match exit_failure(&result.exit) {
                Some(failure) => Err(failure),
                None => check_answer(&String::from_utf8_lossy(&message)),
            };
            return AgentCheckOutcome { answer, usage: reported_usage(priced, &dir), duration };
        };
        let agent_result = parse_transcript(&adapter, &dir, result, false);
        let usage = priced.all(&agent_result.summary.spent);
        // Our own limits come first, then the agent's own error. Its exit code alone says nothing.
        let by_itself = matches!(result.exit, ProcessExit::Code(_) | ProcessExit::Signal(_));
        let answer =
            match (by_itself, agent_result.summary.error) {
                (true, Some(error)) => Err(AttemptFailure::Agent(error)),
                (true, None) => check_answer(&agent_result.message),
                (false, _) => Err(exit_failure(&result.exit)
                    .unwrap_or(AttemptFailure::Unusable { message: "it was stopped".to_owned() })),
            };
        AgentCheckOutcome { answer, usage, duration }
    }
}

/// Any non-empty answer counts.
fn check_answer(message: &str) -> Result<String, AttemptFailure> {
    match message.trim() {
        "" => Err(AttemptFailure::BadAnswer { message: "it exited successfully with an empty answer".to_owned() }),
        answer => Ok(answer.to_owned()),
    }
}
