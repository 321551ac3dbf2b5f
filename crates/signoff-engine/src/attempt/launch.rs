//! Builds the launch of an agent: its command line, environment and files.
//!
//! Agents cannot push: their git configuration rewrites every push address to a transport of signoff, which logs the
//! address and fails.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use signoff_core::policy::TimeSpan;
use signoff_core::settings::AgentConfig;

use super::environment::{self, AttemptCredentials};
use super::finish::read_start;
use super::prepare::StartingAttempt;
use super::sandbox::sandboxed;
use super::{EngineContext, StartFailure, home, list_first};
use crate::agent::{self, AccessMode, AgentFile, AgentSpec, CommandLine, EnvChanges, ReportEndpoint, SandboxBackend};
use crate::atomic_file::{self, WriteMode};
use crate::git::Worktree;
use crate::process::{AttemptDir, ProcessLaunch, ProcessLimits, create_private_dir, system, variables};

/// How an agent runs in an attempt.
pub struct AgentRun<'a> {
    pub agent: &'a AgentConfig,
    pub model: Option<&'a str>,
    pub access: AccessMode,
    pub timeout: TimeSpan,
    pub credentials: AttemptCredentials,
    /// The worktree that it may write to in a sandbox.
    pub workspace: Option<&'a Worktree>,
}

/// Builds the launch of an agent for an attempt, and writes its files.
pub fn launch(
    attempt: StartingAttempt<'_>,
    &AgentRun { agent, model, access, timeout, ref credentials, workspace }: &AgentRun<'_>,
) -> Result<ProcessLaunch, StartFailure> {
    let StartingAttempt { ctx, spec, dir } = attempt;
    let Some(adapter) = agent::adapter_for(agent.kind) else {
        return Err(StartFailure::Failed(format!("agent {} is of an unsupported kind", agent.name)));
    };
    let program = ctx.program.display().to_string();
    let (home, user_home) = (dir.home(), ctx.user_home.as_path());
    let report_endpoint = credentials.access.as_ref();
    let report_endpoint =
        report_endpoint.map(|access| ReportEndpoint { url: &access.url, variable: "SIGNOFF_MCP_TOKEN" });
    let mut line = adapter.command_line(&AgentSpec {
        agent,
        model,
        signoff_program: &program,
        access,
        worktree: Path::new(&spec.workspace.worktree),
        repository: ctx.repository.root(),
        checkout: ctx.repository.checkout(),
        home: &home,
        user_home,
        inherited_variables: &environment::inherited(agent, &ctx.variables),
        report_endpoint,
        resume_session: spec.launch.resumes.as_ref().map(|resumed| resumed.session.as_str()),
        sandbox: spec.launch.sandbox.unwrap_or(SandboxBackend::None),
        is_root: rustix::process::geteuid().is_root(),
    });
    if let Some(resumed) = &spec.launch.resumes {
        let earlier = AttemptDir::new(ctx.layout.attempt(spec.run, &spec.loop_id, resumed.attempt));
        home::copy_session_files(adapter.session_paths, &earlier.home(), &home);
    }
    let not_written = |error| StartFailure::Failed(format!("its files could not be written: {error}"));
    write_files(&line.files).map_err(not_written)?;
    let own = environment::for_attempt(spec, dir, credentials);
    line.environment = environment::agent_environment(agent, line.environment, own, &ctx.settings);
    let not_configured = |error| StartFailure::Failed(format!("its git could not be configured: {error}"));
    let no_pushes = forbid_pushes(dir, ctx.repository.root(), &line.environment).map_err(not_configured)?;
    line.environment.extend(no_pushes);
    let launch = assemble(ctx, Path::new(&spec.workspace.worktree), line, timeout);
    Ok(sandboxed(attempt, launch, workspace)?)
}

/// Writes the files that the agent reads. They are private.
pub(crate) fn write_files(files: &[AgentFile]) -> io::Result<()> {
    for file in files {
        let (AgentFile::Text { path, .. } | AgentFile::Copy { path, .. } | AgentFile::Link { path, .. }) = file;
        let directory = path.parent().unwrap_or(Path::new("."));
        create_private_dir(directory)?;
        match file {
            AgentFile::Text { path, text } => atomic_file::write(path, text.as_bytes(), WriteMode::Private)?,
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

pub fn assemble(ctx: &EngineContext, directory: &Path, line: CommandLine, timeout: TimeSpan) -> ProcessLaunch {
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

/// The transport. Git runs a program `git-remote-NAME` from the `PATH` with the address behind the colons.
const TRANSPORT: &str = "signoff-no-push";

/// Writes the transport and its configuration. Returns the variables to add to the agent's `environment`.
fn forbid_pushes(dir: &AttemptDir, repository: &Path, environment: &EnvChanges) -> io::Result<EnvChanges> {
    let programs = dir.path().join("git");
    for directory in [&programs, &dir.usage_directory()] {
        create_private_dir(directory)?;
    }
    let helper = programs.join(format!("git-remote-{TRANSPORT}"));
    fs::write(&helper, script(&dir.pushes()))?;
    fs::set_permissions(&helper, fs::Permissions::from_mode(0o700))?;
    let own = PushConfig::read(repository);
    let mut more = vec![
        ("PATH".to_owned(), Some(path_variable(&programs, environment))),
        ("GIT_CONFIG_PARAMETERS".to_owned(), Some(own.parameters())),
    ];
    if !own.rewritten.is_empty() {
        let config = programs.join("config");
        fs::write(&config, own.system_config())?;
        more.push(("GIT_CONFIG_SYSTEM".to_owned(), Some(config.display().to_string())));
        more.push(("GIT_CONFIG_NOSYSTEM".to_owned(), None));
    }
    Ok(more)
}

fn script(pushes: &Path) -> String {
    let pushes = quoted(&pushes.display().to_string());
    format!(
        "#!/bin/sh\nprintf '%s\\n' \"$2\" >> {pushes}\n\
         echo 'signoff: agents cannot push; their work lands when it is signed off' >&2\nexit 1\n"
    )
}

/// Quotes a text for a shell and for git's parameter list.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''").replace('!', r"'\!'"))
}

fn path_variable(programs: &Path, environment: &EnvChanges) -> String {
    let path = environment.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
    let inherited = || variables().into_iter().find(|(name, _)| name == "PATH").map(|(_, value)| value);
    match path.unwrap_or_else(inherited).filter(|path| !path.is_empty()) {
        Some(path) => format!("{}:{path}", programs.display()),
        None => programs.display().to_string(),
    }
}

/// Push addresses in the user's own configuration, which would take precedence over a general rule.
#[derive(Debug, Default)]
struct PushConfig {
    /// `remote.NAME.pushurl`.
    named: Vec<String>,
    /// The prefixes that `url.BASE.pushInsteadOf` rewrites.
    rewritten: Vec<String>,
}

impl PushConfig {
    fn read(repository: &Path) -> Self {
        const KEYS: &str = r"^(remote\..*\.pushurl|url\..*\.pushinsteadof)$";
        let mut git = system::command("git");
        let command = git.arg("-C").arg(repository).args(["config", "--null", "--get-regexp", KEYS]);
        let output = command.output().map(|output| output.stdout).unwrap_or_default();
        let mut own = Self::default();
        for entry in String::from_utf8_lossy(&output).split('\0') {
            match entry.split_once('\n') {
                Some((key, value)) if key.ends_with(".pushurl") => own.named.push(value.to_owned()),
                Some((_, value)) => own.rewritten.push(value.to_owned()),
                None => {}
            }
        }
        own
    }

    /// Rules for all addresses, and for each push-only address of a remote, which the general rule does not rewrite.
    fn parameters(&self) -> String {
        let all = quoted(&format!("url.{TRANSPORT}::.pushInsteadOf="));
        let named = self.named.iter().map(|url| {
            let key = format!("url.{TRANSPORT}::{url}.insteadOf");
            format!("{}={}", quoted(&key), quoted(url))
        });
        [all].into_iter().chain(named).collect::<Vec<_>>().join(" ")
    }

    /// Git uses the first of several rules for the same prefix, so ours come before the user's.
    fn system_config(&self) -> String {
        let value = |text: &str| format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\""));
        let rule = |start: &String| {
            let address = value(&format!("{TRANSPORT}::{start}"));
            format!("[url {address}]\n\tpushInsteadOf = {}\n", value(start))
        };
        let rules: String = self.rewritten.iter().map(rule).collect();
        let system = system_config().map(|path| format!("[include]\n\tpath = {}\n", value(&path)));
        rules + &system.unwrap_or_default()
    }
}

/// The path of git's system configuration; `None` if `GIT_CONFIG_NOSYSTEM` is set.
fn system_config() -> Option<String> {
    let variables = variables();
    let value = |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    if value("GIT_CONFIG_NOSYSTEM").is_some() {
        return None;
    }
    let output = system::command("git").args(["var", "GIT_CONFIG_SYSTEM"]).output().ok();
    let output = output.filter(|output| output.status.success());
    let named = output.and_then(|output| String::from_utf8(output.stdout).ok());
    let named = named.map(|path| path.trim().to_owned()).filter(|path| !path.is_empty());
    value("GIT_CONFIG_SYSTEM").or(named).or_else(|| Some("/etc/gitconfig".to_owned()))
}

/// Maximum number of bytes read from the list of pushes.
const MAX_PUSH_LOG: u64 = 16 * 1024;

/// Maximum number of addresses in the note.
const MAX_LISTED_ADDRESSES: usize = 3;

/// The note about pushes that an agent tried; `None` if it tried none.
pub fn attempted_pushes_note(dir: &AttemptDir, agent_label: &str) -> Option<String> {
    push_note(&String::from_utf8_lossy(&read_start(&dir.pushes(), MAX_PUSH_LOG)), agent_label)
}

/// The logged addresses, each once. The agent may have pushed elsewhere, since it can undo the configuration.
fn push_note(noted: &str, agent_label: &str) -> Option<String> {
    let mut seen = BTreeSet::new();
    let addresses = noted.lines().map(address).filter(|one| !one.is_empty());
    let addresses: Vec<String> = addresses.filter(|one| seen.insert(one.clone())).collect();
    (!addresses.is_empty())
        .then(|| format!("{agent_label} tried to push to {}", list_first(&addresses, MAX_LISTED_ADDRESSES)))
}

/// The address without user name and password.
fn address(line: &str) -> String {
    const MAX_ADDRESS_CHARS: usize = 200;
    let shown = match line.split_once("://") {
        Some((scheme, rest)) => {
            let end = rest.find('/').unwrap_or(rest.len());
            let host = rest[..end].rsplit_once('@').map_or(&rest[..end], |(_, host)| host);
            format!("{scheme}://{host}{}", &rest[end..])
        }
        None => line.to_owned(),
    };
    shown.chars().filter(|c| !c.is_control()).take(MAX_ADDRESS_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_user_name_and_password() {
        assert_eq!(address("https://ann:key@example.org/a.git"), "https://example.org/a.git");
        assert_eq!(address("git://127.0.0.1:9418/a@b"), "git://127.0.0.1:9418/a@b");
        assert_eq!(address("git@example.org:a.git"), "git@example.org:a.git");
    }

    #[test]
    fn each_address_is_named_once() {
        assert_eq!(
            push_note("a\nb\na\n\nc\nb\nd\n", "fix").as_deref(),
            Some("fix tried to push to a, b, c and 1 more")
        );
        assert_eq!(push_note("\n", "fix"), None);
    }

    #[test]
    fn quotes_and_exclamation_marks_are_quoted_as_git_reads_them() {
        assert_eq!(quoted("a'b!c"), r"'a'\''b'\!'c'");
    }
}
