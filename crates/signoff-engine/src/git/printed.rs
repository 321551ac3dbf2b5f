//! What a git prints while it runs: read by one thread, within a time limit.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::process::{Child, ChildStderr, ChildStdout};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};

use super::door::Deadline;

/// The output of a git. Reading from it also takes in what git complains about, so that neither pipe fills.
#[derive(Debug)]
pub(super) struct Printed {
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    complaints: Vec<u8>,
    group: Option<Pid>,
    deadline: Deadline,
    stuck: bool,
}

impl Printed {
    pub(super) fn of(child: &mut Child, deadline: Deadline) -> Self {
        Self {
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            complaints: Vec::new(),
            group: i32::try_from(child.id()).ok().and_then(Pid::from_raw),
            deadline,
            stuck: false,
        }
    }

    /// What it complained about, to the end, and whether it had to be killed. Whatever else it prints is let go:
    /// a reader that failed must not hold git up.
    pub(super) fn finish(mut self) -> (Vec<u8>, bool) {
        self.stdout = None;
        while self.stderr.is_some() {
            if self.wait().is_err() {
                break;
            }
        }
        (self.complaints, self.stuck)
    }

    /// Waits until one of the pipes has something, and takes in what is on stderr. True if stdout can be read.
    fn wait(&mut self) -> io::Result<bool> {
        let Some(left) = self.deadline.left() else {
            // It is not waited for yet, so its number is still its own.
            self.group.map(|group| kill_process_group(group, Signal::KILL));
            self.stuck = true;
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
        let both =
            (self.stdout.is_some() && speaks(fds.first()), self.stderr.is_some() && speaks(fds.last()));
        if both.1 {
            self.take_complaints()?;
        }
        Ok(both.0)
    }

    fn take_complaints(&mut self) -> io::Result<()> {
        let mut buffer = [0; 4096];
        let Some(stderr) = &mut self.stderr else { return Ok(()) };
        match stderr.read(&mut buffer)? {
            0 => self.stderr = None,
            read => self.complaints.extend(buffer.iter().take(read)),
        }
        Ok(())
    }
}

impl Read for Printed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.stdout.is_some() {
            let ready = self.wait()?;
            if let Some(stdout) = self.stdout.as_mut().filter(|_| ready) {
                return stdout.read(buffer);
            }
        }
        Ok(0)
    }
}
