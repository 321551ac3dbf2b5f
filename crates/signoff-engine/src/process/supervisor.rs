//! The supervisor process, started as `__keep DIR`.

mod monitor;
mod output;

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use rustix::io::Errno;
use signoff_core::redact::Secrets;
use signoff_core::sandbox::SandboxBackend;

use super::attempt_dir::{SupervisorRecord, SupervisorSpec};
use super::system::{self, ProcessIdentity};
use super::{ATTEMPT_VARIABLE, AttemptDir, ProcessExit, ProcessLaunch, ProcessResult};
use monitor::AgentMonitor;
use output::{LiveOutput, TranscriptWriter};

use crate::agent::credentials::user_secrets;
use crate::atomic_file::{self, WriteMode};
use crate::detect;
use crate::sandbox::{self, SandboxPolicy};

/// Commands of the main program, one byte each.
pub(super) const GO: u8 = b'g';
pub(super) const STOP: u8 = b't';
pub(super) const KILL: u8 = b'k';

/// Environment variable with further secrets to redact, one per line. The agent does not get it.
pub(super) const SECRETS_VARIABLE: &str = "SIGNOFF_KEEP_HIDDEN";

/// Supervises the attempt in `dir`: waits for the start command on stdin, starts the agent and waits for its end.
pub fn run_supervisor(dir: &Path) -> ExitCode {
    match run(&AttemptDir::new(dir)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If the main program is gone, the error is lost.
            writeln!(io::stderr(), "{error}").ok();
            ExitCode::FAILURE
        }
    }
}

fn run(dir: &AttemptDir) -> io::Result<()> {
    become_session_leader()?;
    if !wait_for_go() {
        return Ok(());
    }
    // Held until exit. Once another process acquires it, nothing more is started here.
    let _lock = dir.lock()?;
    if dir.is_abandoned() {
        return Err(io::Error::other("the attempt was abandoned before it started"));
    }
    let spec = atomic_file::read_json::<SupervisorSpec>(&dir.launch())?;
    // The agent gets our environment without the withheld variables. Secrets that it could print are in there
    // and in the user's own files.
    let secrets = secrets(&spec.user_home);
    if let Some(redacted) = spec.redacted(&secrets) {
        atomic_file::write_json(&dir.launch(), &redacted, WriteMode::Private)?;
    }
    let record = register(dir, &spec)?;
    let (result, live) = run_agent(dir, &spec, &record, &secrets);
    dir.redact_usage(&secrets);
    atomic_file::write_json(&dir.result(), &result, WriteMode::Private)?;
    fs::remove_file(&record.link).ok();
    if let Some(live) = live {
        live.finish();
    }
    Ok(())
}

fn secrets(user_home: &Path) -> Secrets {
    let variables = system::variables();
    let set = Secrets::from_variables(variables.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let hidden = variables.iter().find(|(name, _)| name == SECRETS_VARIABLE).map_or("", |(_, value)| value);
    set.union(&Secrets::from_keys(hidden.lines())).union(&user_secrets(user_home))
}

/// Starts a new session, so that no key press in the terminal reaches us or the agent, and becomes the parent
/// of the agent's orphaned descendants.
fn become_session_leader() -> io::Result<()> {
    rustix::process::setsid()?;
    system::become_subreaper()
}

/// Whether the main program sent the start command. It may have died before. Reads only that one byte.
fn wait_for_go() -> bool {
    let mut byte = [0];
    loop {
        match rustix::io::read(io::stdin(), &mut byte) {
            Ok(1) => return byte == [GO],
            Err(Errno::INTR) => {}
            Ok(_) | Err(_) => return false,
        }
    }
}

/// Writes the record of this supervisor before the agent is started.
fn register(dir: &AttemptDir, spec: &SupervisorSpec) -> io::Result<SupervisorRecord> {
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    let supervisor = ProcessIdentity::from_pid(pid);
    let boot = system::boot_id();
    let name = format!("{pid}-{}-{boot}", supervisor.map_or(0, |supervisor| supervisor.start));
    let link = create_link(&spec.live, &name, dir.path())?;
    let record = SupervisorRecord { boot, supervisor, agent: None, cookie: dir.path().to_owned(), link };
    atomic_file::write_json(&dir.supervisor_record(), &record, WriteMode::Private)?;
    Ok(record)
}

fn create_link(live: &Path, name: &str, to: &Path) -> io::Result<PathBuf> {
    fs::create_dir_all(live)?;
    let link = live.join(name);
    // Only on systems without process start times can an older supervisor have used this name.
    fs::remove_file(&link).ok();
    symlink(to, &link)?;
    Ok(link)
}

/// Runs the agent to its end. Also returns the output that is not forwarded yet.
fn run_agent(
    dir: &AttemptDir,
    spec: &SupervisorSpec,
    record: &SupervisorRecord,
    secrets: &Secrets,
) -> (ProcessResult, Option<LiveOutput>) {
    let (started_at, started) = (system::timestamp(), system::now());
    let (result, live) = match start(dir, spec, secrets) {
        Ok(mut supervisor) => {
            let kept = SupervisorRecord { agent: supervisor.agent(), ..record.clone() };
            if let Err(error) = atomic_file::write_json(&dir.supervisor_record(), &kept, WriteMode::Private) {
                supervisor.end_output_lost(&error);
            }
            supervisor.run(started_at, started)
        }
        Err(exit) => (ProcessResult::new(exit, started_at, started), None),
    };
    let is_wrapped = bubblewrap_paths(&spec.launch).is_some();
    let exit = if is_wrapped { unwrap_exit(dir, result.exit) } else { result.exit };
    let supervisor_cpu_us = u64::try_from(system::processor_time().as_micros()).unwrap_or(u64::MAX);
    (ProcessResult { exit, supervisor_cpu_us, ..result }, live)
}

/// Starts the agent. If that fails, returns the exit of the attempt.
fn start(dir: &AttemptDir, spec: &SupervisorSpec, secrets: &Secrets) -> Result<AgentMonitor, ProcessExit> {
    let launch = &spec.launch;
    let prompt = File::open(dir.prompt()).map_err(|error| file_error("read", &dir.prompt(), &error))?;
    let transcript =
        |path: &Path| TranscriptWriter::create(path, secrets).map_err(|error| file_error("write", path, &error));
    let (stdout, stderr) = (transcript(&dir.stdout())?, transcript(&dir.stderr())?);
    let mut agent = agent_command(launch)?;
    agent
        .current_dir(&launch.directory)
        .env(ATTEMPT_VARIABLE, dir.path())
        .stdin(prompt)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    for name in spec.withheld.iter().map(String::as_str).chain([SECRETS_VARIABLE]) {
        agent.env_remove(name);
    }
    let started = match &launch.sandbox {
        Some(SandboxPolicy { backend: SandboxBackend::Landlock, writable, ports }) => {
            sandbox::run_restricted(writable.clone(), ports.clone(), move || agent.spawn())
        }
        Some(SandboxPolicy { backend: SandboxBackend::Bubblewrap | SandboxBackend::None, .. }) | None => agent.spawn(),
    };
    let agent = started.map_err(|error| start_error(launch, &error))?;
    Ok(AgentMonitor::new(agent, bubblewrap_paths(launch).is_some(), stdout, stderr, launch.limits))
}

/// The agent's command line, after that of bubblewrap if it is used.
fn agent_command(launch: &ProcessLaunch) -> Result<Command, ProcessExit> {
    let Some(writable) = bubblewrap_paths(launch) else {
        let mut agent = system::command(&launch.program);
        agent.args(&launch.arguments);
        return Ok(agent);
    };
    // Bubblewrap itself starts; for a missing program behind it, it would only return an exit code.
    if !launch.program.contains('/') && !detect::is_installed(&launch.program) {
        return Err(start_error(launch, &io::Error::from(io::ErrorKind::NotFound)));
    }
    let mut agent = system::command(sandbox::BUBBLEWRAP);
    let before = sandbox::bubblewrap_args(writable, &launch.directory);
    agent.args(before).arg(&launch.program).args(&launch.arguments);
    Ok(agent)
}

/// The agent's own exit. Bubblewrap reports in its own name why it could not start the agent.
fn unwrap_exit(dir: &AttemptDir, exit: ProcessExit) -> ProcessExit {
    let ProcessExit::Code(code) = exit else { return exit };
    // Bubblewrap reports a signal as shells do.
    if (129..=192).contains(&code) {
        return ProcessExit::Signal(code - 128);
    }
    if code != 1 {
        return exit;
    }
    let mut stderr = Vec::new();
    // Bubblewrap's message is shorter.
    File::open(dir.stderr()).and_then(|file| file.take(4096).read_to_end(&mut stderr)).ok();
    let stderr = String::from_utf8_lossy(&stderr);
    match stderr.strip_prefix(sandbox::BUBBLEWRAP).and_then(|rest| rest.strip_prefix(": ")) {
        Some(reason) if reason.lines().count() == 1 => {
            ProcessExit::not_started(format!("bubblewrap cannot apply the sandbox: {}", reason.trim_end()))
        }
        Some(_) | None => ProcessExit::Code(1),
    }
}

/// The writable paths, if the agent is started through bubblewrap.
fn bubblewrap_paths(launch: &ProcessLaunch) -> Option<&[PathBuf]> {
    match launch.sandbox.as_ref()? {
        SandboxPolicy { backend: SandboxBackend::Bubblewrap, writable, .. } => Some(writable),
        SandboxPolicy { backend: SandboxBackend::Landlock | SandboxBackend::None, .. } => None,
    }
}

fn file_error(action: &str, path: &Path, error: &io::Error) -> ProcessExit {
    ProcessExit::not_started(format!("cannot {action} {}: {error}", path.display()))
}

/// The error of a failed start. The system reports the same error for a missing directory and a missing program.
fn start_error(launch: &ProcessLaunch, error: &io::Error) -> ProcessExit {
    if !launch.directory.is_dir() {
        return ProcessExit::not_started(format!("the directory {} does not exist", launch.directory.display()));
    }
    let missing = error.kind() == io::ErrorKind::NotFound;
    ProcessExit::NotStarted { message: format!("cannot start {}: {error}", launch.program), missing }
}
