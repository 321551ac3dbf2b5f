//! Runs short commands to their end, with limits on time and output.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Signal, kill_process_group};

use super::escort::{ESCORT_SUBCOMMAND, EXIT_NOT_FOUND, NOT_FOUND_MESSAGE};
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
    /// Path of signoff, to be started as an escort that kills the command if signoff is killed.
    pub escort: Option<&'a Path>,
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
    if output.is_err() && command.escort.is_some() {
        // The escort treats the closed pipe as our end.
        drop(child.stdin.take());
    } else if output.is_err() {
        // The process was not reaped yet, so its id is still valid.
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        group.map(|group| kill_process_group(group, Signal::KILL));
    }
    let status = child.wait()?;
    let (stdout, stderr) = output?;
    let is_missing = status.code() == Some(i32::from(EXIT_NOT_FOUND)) && stderr == NOT_FOUND_MESSAGE.as_bytes();
    if command.escort.is_some() && is_missing {
        return Err(CommandError::Missing);
    }
    Ok(CommandOutput { status, stdout, stderr })
}

fn start(short_command: &ShortCommand<'_>) -> Result<Child, CommandError> {
    let mut command = command(short_command);
    command
        .current_dir(short_command.directory)
        .envs(short_command.environment.iter().copied())
        // The program itself handles Ctrl-C; the signal must not kill the command in the middle.
        .process_group(0)
        .stdin(if short_command.input.is_empty() && short_command.escort.is_none() {
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
    if short_command.escort.is_none() {
        drop(child.stdin.take());
    }
    Ok(child)
}

fn command(short_command: &ShortCommand<'_>) -> Command {
    let Some(escort) = short_command.escort else {
        let mut command = system::command(short_command.program);
        command.args(short_command.arguments);
        return command;
    };
    let mut command = system::command(escort);
    command
        .arg(ESCORT_SUBCOMMAND)
        .arg(short_command.input.len().to_string())
        .arg(short_command.program)
        .args(short_command.arguments);
    command
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
    remaining(deadline).ok_or(CommandError::TimedOut(command.limit))
}

fn remaining(deadline: Instant) -> Option<Duration> {
    Some(deadline.saturating_duration_since(system::now())).filter(|left| !left.is_zero())
}

/// Which of the two pipes is readable or closed.
fn poll(out: Option<&impl AsFd>, err: Option<&impl AsFd>, wait: Duration) -> io::Result<(bool, bool)> {
    let pipes = [out.map(AsFd::as_fd), err.map(AsFd::as_fd)];
    let mut fds: Vec<PollFd<'_>> =
        pipes.into_iter().flatten().map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::IN)).collect();
    system::poll_fds(&mut fds, wait)?;
    let speaks = |fd: Option<&PollFd<'_>>| fd.is_some_and(|fd| !fd.revents().is_empty());
    Ok((out.is_some() && speaks(fds.first()), err.is_some() && speaks(fds.last())))
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
