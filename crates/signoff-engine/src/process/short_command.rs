//! Runs short commands to their end, with limits on time and output.
//!
//! A command that must not outlive signoff runs below a reaper, a process started as `__escort LENGTH PROGRAM …`. The
//! reaper kills the program with its child processes when signoff exits or is killed: the reaper's stdin is a pipe
//! that only signoff holds. Processes that the program leaves after its own end are not touched.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ExitCode, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process_group};

use super::system;

/// A command to run.
#[derive(Debug, Clone, Copy)]
pub struct ShortCommand<'a> {
    pub program: &'a str,
    pub arguments: &'a [&'a str],
    pub directory: &'a Path,
    /// Variables added to our own environment.
    pub environment: &'a [(&'a str, &'a str)],
    /// Its stdin, short enough for a pipe buffer, so that writing it does not block.
    pub input: &'a [u8],
    /// Time limit.
    pub limit: Duration,
    /// Maximum number of bytes on stdout.
    pub max_stdout: usize,
    /// Set by another thread to cancel the command.
    pub cancelled: Option<&'a AtomicBool>,
    /// Path of signoff, to be started as a reaper that kills the command if signoff is killed.
    pub reaper: Option<&'a Path>,
}

/// Exit status and output of a command.
#[derive(Debug)]
pub struct CommandOutput {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Why a command has no result.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error("there is no such program")]
    Missing,
    #[error("it did not end within {} s and was killed", .0.as_secs_f64())]
    TimedOut(Duration),
    #[error("it was still running when signoff ended, and was killed")]
    Cancelled,
    #[error("it printed more than {0} bytes and was killed")]
    TooMuchOutput(usize),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Maximum number of bytes kept of stderr.
const MAX_STDERR: usize = 64 * 1024;

/// Interval at which the command's exit is checked, because a child process may keep its pipes open.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Runs a command and waits for its end. Blocking: not for the dispatcher's thread.
pub fn run_command(command: &ShortCommand<'_>) -> Result<CommandOutput, CommandError> {
    let mut child = start(command)?;
    let output = read_output(&mut child, command);
    if output.is_err() && command.reaper.is_some() {
        // The reaper treats the closed pipe as our end.
        drop(child.stdin.take());
    } else if output.is_err() {
        // The process was not reaped yet, so its id is still valid.
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        group.map(|group| kill_process_group(group, Signal::KILL));
    }
    let status = child.wait()?;
    let (stdout, stderr) = output?;
    let is_missing = status.code() == Some(i32::from(EXIT_NOT_FOUND)) && stderr == NOT_FOUND_MESSAGE.as_bytes();
    if command.reaper.is_some() && is_missing {
        return Err(CommandError::Missing);
    }
    Ok(CommandOutput { status, stdout, stderr })
}

fn start(short_command: &ShortCommand<'_>) -> Result<Child, CommandError> {
    let mut command = match short_command.reaper {
        Some(reaper) => {
            let mut command = system::command(reaper);
            let length = short_command.input.len().to_string();
            command.args([REAPER_SUBCOMMAND, &length, short_command.program]);
            command
        }
        None => system::command(short_command.program),
    };
    command
        .args(short_command.arguments)
        .current_dir(short_command.directory)
        .envs(short_command.environment.iter().copied())
        // The program itself handles Ctrl-C; the signal must not kill the command in the middle.
        .process_group(0)
        .stdin(if short_command.input.is_empty() && short_command.reaper.is_none() {
            Stdio::null()
        } else {
            Stdio::piped()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| {
        let missing = error.kind() == io::ErrorKind::NotFound && short_command.directory.is_dir();
        if missing { CommandError::Missing } else { CommandError::Io(error) }
    })?;
    // The command may ignore its input.
    child.stdin.as_mut().map(|stdin| stdin.write_all(short_command.input));
    if short_command.reaper.is_none() {
        drop(child.stdin.take());
    }
    Ok(child)
}

/// Reads both pipes until they are closed, or until the command has ended and they are empty.
fn read_output(child: &mut Child, command: &ShortCommand<'_>) -> Result<(Vec<u8>, Vec<u8>), CommandError> {
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let deadline = system::deadline(system::now(), command.limit);
    while out.is_some() || err.is_some() {
        let ended = child.try_wait()?.is_some();
        let wait = if ended { Duration::ZERO } else { time_left(command, deadline)? };
        let (out_ready, err_ready) = poll(out.as_ref(), err.as_ref(), wait.min(POLL_INTERVAL))?;
        if out_ready && read_once(&mut out, &mut stdout)? && stdout.len() > command.max_stdout {
            return Err(CommandError::TooMuchOutput(command.max_stdout));
        }
        if err_ready {
            read_once(&mut err, &mut stderr)?;
            stderr.truncate(MAX_STDERR);
        }
        // A child process may keep the pipes open for ever.
        if ended && !out_ready && !err_ready {
            break;
        }
    }
    while child.try_wait()?.is_none() {
        system::pause(time_left(command, deadline)?.min(POLL_INTERVAL / 10));
    }
    Ok((stdout, stderr))
}

/// The time left for the command.
fn time_left(command: &ShortCommand<'_>, deadline: Instant) -> Result<Duration, CommandError> {
    if command.cancelled.is_some_and(|recalled| recalled.load(Ordering::Relaxed)) {
        return Err(CommandError::Cancelled);
    }
    let left = deadline.saturating_duration_since(system::now());
    if left.is_zero() { Err(CommandError::TimedOut(command.limit)) } else { Ok(left) }
}

/// Which of the two pipes is readable or closed.
fn poll(out: Option<&impl AsFd>, err: Option<&impl AsFd>, wait: Duration) -> io::Result<(bool, bool)> {
    let pipes = [out.map(AsFd::as_fd), err.map(AsFd::as_fd)];
    let mut fds: Vec<PollFd<'_>> =
        pipes.into_iter().flatten().map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::IN)).collect();
    system::poll_fds(&mut fds, wait)?;
    let is_ready = |fd: Option<&PollFd<'_>>| fd.is_some_and(|fd| !fd.revents().is_empty());
    Ok((out.is_some() && is_ready(fds.first()), err.is_some() && is_ready(fds.last())))
}

/// Reads once from a readable pipe, and drops the pipe at its end.
fn read_once(pipe: &mut Option<impl Read>, kept: &mut Vec<u8>) -> io::Result<bool> {
    let mut buffer = [0; 16 * 1024];
    let Some(open) = pipe else { return Ok(false) };
    match open.read(&mut buffer)? {
        0 => *pipe = None,
        read => kept.extend(buffer.iter().take(read)),
    }
    Ok(true)
}

/// The subcommand of the reaper.
pub const REAPER_SUBCOMMAND: &str = "__escort";

/// Exit code if the program does not exist. The reaper then prints `NOT_FOUND_MESSAGE`.
const EXIT_NOT_FOUND: u8 = 127;
const NOT_FOUND_MESSAGE: &str = "signoff did not find the program\n";

/// How long to wait for killed processes.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// Poll interval on systems without pidfd.
const REAPER_POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Timeout with a pidfd.
const PIDFD_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs the program in `arguments`. The first argument is the number of stdin bytes for it.
pub fn run_reaper(arguments: &[OsString]) -> ExitCode {
    let [length, program, arguments @ ..] = arguments else { return ExitCode::FAILURE };
    let length = length.to_str().and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut input = vec![0; length];
    // The parent may die before it has written everything.
    if system::become_subreaper().is_err() || io::stdin().read_exact(&mut input).is_err() {
        return ExitCode::FAILURE;
    }
    let mut command = system::command(program);
    command.args(arguments).stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
    match command.spawn() {
        Ok(mut child) => {
            // The program may ignore its input.
            child.stdin.take().map(|mut stdin| stdin.write_all(&input));
            wait_for_end(&child)
        }
        Err(error) => report_start_error(&error),
    }
}

fn report_start_error(error: &io::Error) -> ExitCode {
    let missing = error.kind() == io::ErrorKind::NotFound;
    let reason = if missing { NOT_FOUND_MESSAGE.to_owned() } else { format!("cannot be started: {error}\n") };
    // If stderr is closed, the message is lost.
    io::stderr().write_all(reason.as_bytes()).ok();
    ExitCode::from(if missing { EXIT_NOT_FOUND } else { EXIT_NOT_FOUND - 1 })
}

/// Waits for the end of the program or of signoff.
fn wait_for_end(child: &Child) -> ExitCode {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let handle = pid.and_then(system::pidfd);
    loop {
        if let Some(status) = reap(pid) {
            return exit_like(status);
        }
        if is_parent_gone(handle.as_ref()) {
            kill_descendants();
            return ExitCode::FAILURE;
        }
    }
}

/// The program's exit status, if it has ended. Reaps all other ended processes.
fn reap(pid: Option<Pid>) -> Option<WaitStatus> {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((one, status))) if Some(one) == pid => return Some(status),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) | Err(_) => return None,
        }
    }
}

/// Waits for an event. Returns whether signoff is gone.
fn is_parent_gone(handle: Option<&OwnedFd>) -> bool {
    let stdin = io::stdin();
    let mut fds = vec![PollFd::new(&stdin, PollFlags::IN)];
    fds.extend(handle.map(|handle| PollFd::new(handle, PollFlags::IN)));
    let failed =
        system::poll_fds(&mut fds, if handle.is_some() { PIDFD_TIMEOUT } else { REAPER_POLL_INTERVAL }).is_err();
    // Nothing more is sent, so a readable stdin means that it was closed.
    failed || fds.first().is_some_and(|fd| !fd.revents().is_empty())
}

fn kill_descendants() {
    let own = getpid().as_raw_nonzero().get();
    let deadline = system::deadline(system::now(), KILL_TIMEOUT);
    while system::now() < deadline {
        let left = system::descendants(&system::read_all(), [own]);
        if left.is_empty() {
            break;
        }
        left.iter().for_each(|row| row.identity.send_signal(Signal::KILL));
        reap(None);
        system::pause(REAPER_POLL_INTERVAL);
    }
    // Without a process table, the group is all that is known, and this process belongs to it.
    #[cfg(not(target_os = "linux"))]
    rustix::process::kill_process_group(getpid(), Signal::KILL).ok();
}

/// Ends with the exit code or signal of the program.
fn exit_like(status: WaitStatus) -> ExitCode {
    if let Some(signal) = status.terminating_signal().and_then(Signal::from_named_raw) {
        rustix::process::kill_process(getpid(), signal).ok();
    }
    let code = status.exit_status().and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}
