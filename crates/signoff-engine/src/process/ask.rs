//! Short programs that are asked something: run to their end, within bounds of time and output.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Signal, kill_process_group};

use super::door;
use super::escort::{ESCORT, MISSING, NOT_THERE};

/// What is run, and where.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    pub program: &'a str,
    pub arguments: &'a [&'a str],
    pub directory: &'a Path,
    /// What it finds in its environment beside ours.
    pub environment: &'a [(&'a str, &'a str)],
    /// What it finds on its stdin: short enough for a pipe, so that nobody waits for it to be read.
    pub input: &'a [u8],
    /// How long it may take.
    pub limit: Duration,
    /// How many bytes it may print.
    pub most: usize,
    /// Says when nobody waits for it any more.
    pub recalled: Option<&'a AtomicBool>,
    /// This program, started as an escort, sees to it that it does not outlive us, not even if we are killed.
    pub escort: Option<&'a Path>,
}

/// What it left behind. What it complained about is never mixed with what it said.
#[derive(Debug)]
pub struct Answer {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error("there is no such program")]
    Missing,
    #[error("it did not end within {} s and was killed", .0.as_secs_f64())]
    Stuck(Duration),
    #[error("it was still at work when signoff ended, and was killed")]
    Recalled,
    #[error("it printed more than {0} bytes and was killed")]
    Flood(usize),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Of what it complains about, so much is kept.
const MOST_COMPLAINTS: usize = 64 * 1024;

/// How long something that the program left behind may hold its pipes without being noticed.
const GLANCE: Duration = Duration::from_millis(50);

/// Asks, and waits for the answer. Blocks: not for the dispatcher's own thread.
pub fn ask(question: &Question<'_>) -> Result<Answer, AskError> {
    let mut child = start(question)?;
    let heard = listen(&mut child, question);
    if heard.is_err() && question.escort.is_some() {
        // The escort takes that for our end.
        drop(child.stdin.take());
    } else if heard.is_err() {
        // It was not waited for yet, so its number is still its own.
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        group.map(|group| kill_process_group(group, Signal::KILL));
    }
    let status = child.wait()?;
    let (stdout, stderr) = heard?;
    let not_there = status.code() == Some(i32::from(NOT_THERE)) && stderr == MISSING.as_bytes();
    if question.escort.is_some() && not_there {
        return Err(AskError::Missing);
    }
    Ok(Answer { status, stdout, stderr })
}

fn start(question: &Question<'_>) -> Result<Child, AskError> {
    let mut command = command(question);
    command
        .current_dir(question.directory)
        .envs(question.environment.iter().copied())
        // A Ctrl-C is the program's to handle; it must not tear this off in the middle.
        .process_group(0)
        .stdin(if question.input.is_empty() && question.escort.is_none() {
            Stdio::null()
        } else {
            Stdio::piped()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| {
        let missing = error.kind() == io::ErrorKind::NotFound && question.directory.is_dir();
        if missing { AskError::Missing } else { AskError::Io(error) }
    })?;
    // Who does not want to read it may leave it.
    child.stdin.as_mut().map(|stdin| stdin.write_all(question.input));
    if question.escort.is_none() {
        drop(child.stdin.take());
    }
    Ok(child)
}

fn command(question: &Question<'_>) -> Command {
    let Some(escort) = question.escort else {
        let mut command = door::command(question.program);
        command.args(question.arguments);
        return command;
    };
    let mut command = door::command(escort);
    command.arg(ESCORT).arg(question.input.len().to_string()).arg(question.program).args(question.arguments);
    command
}

/// Takes in what it prints until both pipes are closed, or it has ended and nothing more is in them.
fn listen(child: &mut Child, question: &Question<'_>) -> Result<(Vec<u8>, Vec<u8>), AskError> {
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let deadline = door::after(door::now(), question.limit);
    while out.is_some() || err.is_some() {
        let ended = child.try_wait()?.is_some();
        let wait = if ended { Duration::ZERO } else { patience(question, deadline)? };
        let (speaks, complains) = poll(out.as_ref(), err.as_ref(), wait.min(GLANCE))?;
        if speaks && take(&mut out, &mut stdout)? && stdout.len() > question.most {
            return Err(AskError::Flood(question.most));
        }
        if complains {
            take(&mut err, &mut stderr)?;
            stderr.truncate(MOST_COMPLAINTS);
        }
        // Whatever it started may hold the pipes for ever.
        if ended && !speaks && !complains {
            break;
        }
    }
    while child.try_wait()?.is_none() {
        door::pause(patience(question, deadline)?.min(GLANCE / 10));
    }
    Ok((stdout, stderr))
}

/// How long it may still take.
fn patience(question: &Question<'_>, deadline: Instant) -> Result<Duration, AskError> {
    if question.recalled.is_some_and(|recalled| recalled.load(Ordering::Relaxed)) {
        return Err(AskError::Recalled);
    }
    left(deadline).ok_or(AskError::Stuck(question.limit))
}

fn left(deadline: Instant) -> Option<Duration> {
    Some(deadline.saturating_duration_since(door::now())).filter(|left| !left.is_zero())
}

/// Which of the two has something to say, or has ended.
fn poll(out: Option<&impl AsFd>, err: Option<&impl AsFd>, wait: Duration) -> io::Result<(bool, bool)> {
    let pipes = [out.map(AsFd::as_fd), err.map(AsFd::as_fd)];
    let mut fds: Vec<PollFd<'_>> =
        pipes.into_iter().flatten().map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::IN)).collect();
    door::wait_for(&mut fds, wait)?;
    let speaks = |fd: Option<&PollFd<'_>>| fd.is_some_and(|fd| !fd.revents().is_empty());
    Ok((out.is_some() && speaks(fds.first()), err.is_some() && speaks(fds.last())))
}

/// Reads once from a pipe that has something; forgets it when it has ended.
fn take(pipe: &mut Option<impl Read>, kept: &mut Vec<u8>) -> io::Result<bool> {
    let mut buffer = [0; 16 * 1024];
    let Some(open) = pipe else { return Ok(false) };
    match open.read(&mut buffer)? {
        0 => *pipe = None,
        read => kept.extend(buffer.iter().take(read)),
    }
    Ok(true)
}
