//! One run of git, from its arguments to what it left behind.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::{Git, GitError};

/// One git command, not yet run.
#[derive(Debug)]
pub(super) struct Invocation<'a> {
    git: &'a Git,
    pub(super) directory: PathBuf,
    pub(super) arguments: Vec<OsString>,
    pub(super) variables: Vec<(OsString, OsString)>,
    pub(super) input: Vec<u8>,
}

/// What a git command left behind.
#[derive(Debug)]
pub(super) struct Ended {
    status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    stderr: Vec<u8>,
    command: String,
}

impl<'a> Invocation<'a> {
    pub(super) fn new(git: &'a Git, directory: &Path) -> Self {
        let directory = directory.to_owned();
        Self { git, directory, arguments: Vec::new(), variables: Vec::new(), input: Vec::new() }
    }

    pub(super) fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    pub(super) fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    pub(super) fn input(self, input: impl Into<Vec<u8>>) -> Self {
        Self { input: input.into(), ..self }
    }

    /// What it prints; any exit code but 0 is an error.
    pub(super) fn read(self) -> Result<Vec<u8>, GitError> {
        self.run()?.success()
    }

    /// What it prints, as text without the line end.
    pub(super) fn read_line(self) -> Result<String, GitError> {
        Ok(String::from_utf8_lossy(&self.read()?).trim_end_matches('\n').to_owned())
    }

    /// Runs it. Where somebody holds a lock it needs, it is tried again until patience ends: git takes its locks
    /// first, so that nothing was done yet.
    pub(super) fn run(self) -> Result<Ended, GitError> {
        let mut last = None;
        let done = self.git.wait_for(|| {
            let ended = self.run_once(|stdout, kept| stdout.read_to_end(kept).map(drop))?;
            if ended.is_locked() {
                last = Some(ended);
                return Ok(None);
            }
            Ok(Some(ended))
        })?;
        match (done, last) {
            (Some(ended), _) => Ok(ended),
            (None, Some(ended)) => Err(ended.failure()),
            (None, None) => Err(GitError::Failed { command: self.words(), stderr: String::new() }),
        }
    }

    /// Hands what it prints to `reader` while it prints it.
    pub(super) fn stream(
        self,
        mut reader: impl FnMut(&mut BufReader<ChildStdout>) -> io::Result<()>,
    ) -> Result<(), GitError> {
        self.run_once(|stdout, _| reader(stdout))?.success().map(drop)
    }

    fn run_once(
        &self,
        reader: impl FnOnce(&mut BufReader<ChildStdout>, &mut Vec<u8>) -> io::Result<()>,
    ) -> Result<Ended, GitError> {
        let mut child = self.git.spawn(self)?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let mut printed = Vec::new();
        let mut complaints = Vec::new();
        let (done, ended) = mpsc::channel();
        let number = child.id();
        let (read, stuck) = thread::scope(|scope| {
            let watch = scope.spawn(move || end_if_stuck(number, &ended, self.git.limit));
            // A git that ends without reading everything has said why on stderr.
            scope.spawn(|| stdin.map(|mut stdin| stdin.write_all(&self.input)));
            let complaining = scope.spawn(|| stderr.map(|mut stderr| stderr.read_to_end(&mut complaints)));
            let read = stdout.map_or(Ok(()), |stdout| reader(&mut BufReader::new(stdout), &mut printed));
            complaining.join().ok();
            // Before it is waited for: afterwards its number may be another process's.
            drop(done);
            (read, watch.join().unwrap_or_default())
        });
        let status = child.wait().and_then(|status| read.map(|()| status));
        let status = status.map_err(GitError::at(Path::new("git")))?;
        if stuck {
            return Err(GitError::Stuck { command: self.words() });
        }
        Ok(Ended { status, stdout: printed, stderr: complaints, command: self.words() })
    }

    /// The command as a person would type it, without what only we care about.
    fn words(&self) -> String {
        let words = self.arguments.iter().map(|word| word.to_string_lossy());
        let words: Vec<_> = words.take_while(|word| word != "--").take(6).collect();
        format!("git {}", words.join(" "))
    }
}

/// Kills a git, and what it started, unless `done` comes in time. Tells whether it did.
fn end_if_stuck(number: u32, done: &Receiver<()>, limit: Duration) -> bool {
    let stuck = done.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
    if stuck {
        let group = i32::try_from(number).ok().and_then(Pid::from_raw);
        group.map(|group| kill_process_group(group, Signal::KILL));
    }
    stuck
}

impl Ended {
    pub(super) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    pub(super) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    pub(super) fn success(self) -> Result<Vec<u8>, GitError> {
        if self.status.success() { Ok(self.stdout) } else { Err(self.failure()) }
    }

    /// For commands that answer yes with 0 and no with 1.
    pub(super) fn yes(self) -> Result<bool, GitError> {
        match self.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            Some(_) | None => Err(self.failure()),
        }
    }

    pub(super) fn failure(self) -> GitError {
        GitError::from_stderr(self.command, &self.stderr)
    }

    fn is_locked(&self) -> bool {
        !self.status.success()
            && matches!(GitError::from_stderr(String::new(), &self.stderr), GitError::Locked { .. })
    }
}
