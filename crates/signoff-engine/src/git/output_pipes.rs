//! Reads the output of a git process in one thread, with a time limit.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::process::{Child, ChildStderr, ChildStdout};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};

use super::runner::GitDeadline;

/// Output pipes of a git process. Reading stdout also reads stderr, so that neither pipe fills up.
#[derive(Debug)]
pub(super) struct GitPipes {
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    stderr_bytes: Vec<u8>,
    group: Option<Pid>,
    deadline: GitDeadline,
    timed_out: bool,
}

impl GitPipes {
    pub(super) fn new(child: &mut Child, deadline: GitDeadline) -> Self {
        Self {
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            stderr_bytes: Vec::new(),
            group: i32::try_from(child.id()).ok().and_then(Pid::from_raw),
            deadline,
            timed_out: false,
        }
    }

    /// Reads stderr to the end, and returns it with whether git was killed. Closes stdout, so that git does not
    /// block when the reader failed.
    pub(super) fn finish(mut self) -> (Vec<u8>, bool) {
        self.stdout = None;
        while self.stderr.is_some() {
            if self.poll_pipes().is_err() {
                break;
            }
        }
        (self.stderr_bytes, self.timed_out)
    }

    /// Waits until a pipe is readable and reads stderr. Returns whether stdout is readable.
    fn poll_pipes(&mut self) -> io::Result<bool> {
        let Some(left) = self.deadline.remaining() else {
            // The process was not reaped yet, so its id is still valid.
            self.group.map(|group| kill_process_group(group, Signal::KILL));
            self.timed_out = true;
            return Err(io::ErrorKind::TimedOut.into());
        };
        let pipes = [self.stdout.as_ref().map(AsFd::as_fd), self.stderr.as_ref().map(AsFd::as_fd)];
        let mut fds: Vec<PollFd<'_>> =
            pipes.into_iter().flatten().map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::IN)).collect();
        match poll(&mut fds, Timespec::try_from(left).ok().as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let speaks = |fd: Option<&PollFd<'_>>| fd.is_some_and(|fd| !fd.revents().is_empty());
        let both = (self.stdout.is_some() && speaks(fds.first()), self.stderr.is_some() && speaks(fds.last()));
        if both.1 {
            self.read_stderr()?;
        }
        Ok(both.0)
    }

    fn read_stderr(&mut self) -> io::Result<()> {
        let mut buffer = [0; 4096];
        let Some(stderr) = &mut self.stderr else { return Ok(()) };
        match stderr.read(&mut buffer)? {
            0 => self.stderr = None,
            read => self.stderr_bytes.extend(buffer.iter().take(read)),
        }
        Ok(())
    }
}

impl Read for GitPipes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.stdout.is_some() {
            let ready = self.poll_pipes()?;
            if let Some(stdout) = self.stdout.as_mut().filter(|_| ready) {
                return stdout.read(buffer);
            }
        }
        Ok(0)
    }
}
