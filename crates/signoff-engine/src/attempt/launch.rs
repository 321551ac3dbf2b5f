//! Builds the launch of an agent: its command line, environment and files.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::Path;
use std::time::Duration;

use signoff_core::policy::TimeSpan;
use signoff_core::settings::AgentConfig;

use super::environment::{self, AttemptCredentials};
use super::inherited_env::inherited;
use super::{EngineContext, StartFailure, pushes, session_files};
use crate::agent::{self, AccessMode, AgentFile, AgentSpec, CommandLine, ReportEndpoint, SandboxBackend};
use crate::atomic_file::{AtomicFile, WriteMode};
use crate::attempt_spec::AttemptSpec;
use crate::process::{AttemptDir, ProcessLaunch, ProcessLimits};

/// How an agent runs in an attempt.
pub(super) struct AgentRun<'a> {
    pub agent: &'a AgentConfig,
    pub model: Option<&'a str>,
    pub access: AccessMode,
    pub timeout: TimeSpan,
    pub credentials: AttemptCredentials,
}

/// Builds the launch of an agent for an attempt, and writes its files.
pub(super) fn launch(
    ctx: &EngineContext,
    spec: &AttemptSpec,
    dir: &AttemptDir,
    &AgentRun { agent, model, access, timeout, ref credentials }: &AgentRun<'_>,
) -> Result<ProcessLaunch, StartFailure> {
    let Some(adapter) = agent::adapter_for(agent.kind) else {
        return Err(StartFailure::Failed(format!("agent {} is of a kind that cannot be driven here", agent.name)));
    };
    let program = ctx.program.display().to_string();
    let (home, person) = (dir.home(), ctx.user_home.as_path());
    let reporting = credentials.access.as_ref();
    let reporting = reporting.map(|access| ReportEndpoint { url: &access.url, variable: "SIGNOFF_MCP_TOKEN" });
    let mut line = adapter.command_line(&AgentSpec {
        agent,
        model,
        signoff_program: &program,
        access,
        worktree: Path::new(&spec.workspace.worktree),
        repository: ctx.repository.root(),
        checkout: ctx.repository.checkout(),
        home: &home,
        user_home: person,
        inherited_variables: &inherited(agent, &ctx.variables),
        reporting,
        resume_session: spec.launch.resumes.as_ref().map(|resumed| resumed.session.as_str()),
        sandbox: spec.launch.sandbox.unwrap_or(SandboxBackend::None),
        is_root: rustix::process::geteuid().is_root(),
    });
    if let Some(resumed) = &spec.launch.resumes {
        let earlier = AttemptDir::new(ctx.layout.attempt(spec.run, &spec.loop_id, resumed.attempt));
        session_files::copy_session_files(adapter.session_paths(), &earlier.home(), &home);
    }
    write_files(&line.files)
        .map_err(|error| StartFailure::Failed(format!("its files could not be written: {error}")))?;
    line.environment = environment::for_agent(
        agent,
        line.environment,
        environment::for_attempt(spec, dir, credentials),
        &ctx.settings,
    );
    let no_pushes = pushes::forbid(dir, ctx.repository.root(), &line.environment);
    let no_pushes =
        no_pushes.map_err(|error| StartFailure::Failed(format!("its git could not be configured: {error}")))?;
    line.environment.extend(no_pushes);
    Ok(assemble(ctx, Path::new(&spec.workspace.worktree), line, timeout))
}

/// Writes the files that the agent reads. They are private.
pub(crate) fn write_files(files: &[AgentFile]) -> io::Result<()> {
    for file in files {
        let (AgentFile::Text { path, .. } | AgentFile::Copy { path, .. } | AgentFile::Link { path, .. }) = file;
        let directory = path.parent().unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        match file {
            AgentFile::Text { path, text } => AtomicFile::write(path, text.as_bytes(), WriteMode::Private)?.commit()?,
            AgentFile::Copy { path, source: of } if of.is_file() => drop(fs::copy(of, path)?),
            AgentFile::Link { path, source: of } if of.exists() => link(path, of)?,
            AgentFile::Copy { .. } | AgentFile::Link { .. } => {}
        }
    }
    Ok(())
}

/// Replaces a link, which exists already if an attempt is prepared again.
fn link(path: &Path, of: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => symlink(of, path),
    }
}

pub(super) fn assemble(ctx: &EngineContext, directory: &Path, line: CommandLine, timeout: TimeSpan) -> ProcessLaunch {
    let CommandLine { program, arguments, environment, files: _ } = line;
    let limits = ctx.settings.limits();
    ProcessLaunch {
        program,
        arguments,
        directory: directory.to_owned(),
        environment,
        sandbox: None,
        limits: ProcessLimits {
            time: Some(duration(timeout)),
            silence: Some(duration(limits.silence)),
            grace: duration(limits.grace),
        },
    }
}

fn duration(span: TimeSpan) -> Duration {
    Duration::from_secs(span.seconds)
}
