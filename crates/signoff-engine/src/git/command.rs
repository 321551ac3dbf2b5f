//! One git command: its arguments, its run and its output.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, ExitStatus};
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};

use super::runner::GitDeadline;
use super::{Git, GitError};

/// Bytes that fit into any pipe, even if the other end does not read.
const PIPE_CAPACITY: usize = 4096;

/// One git command, not yet run.
#[derive(Debug)]
pub(super) struct GitCommand<'a> {
    git: &'a Git,
    pub(super) directory: PathBuf,
    pub(super) arguments: Vec<OsString>,
    /// Environment shared by many commands.
    pub(super) shared_env: &'a [(OsString, OsString)],
    /// Environment of this command.
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) input: Vec<u8>,
    /// File to use as stdin instead of `input`.
    pub(super) input_file: Option<PathBuf>,
}

/// Exit status and output of a git command.
#[derive(Debug)]
pub(super) struct GitOutput {
    status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    stderr: Vec<u8>,
    command: String,
}

impl<'a> GitCommand<'a> {
    pub(super) fn new(git: &'a Git, directory: &Path) -> Self {
        Self {
            git,
            directory: directory.to_owned(),
            arguments: Vec::new(),
            shared_env: &[],
            env: Vec::new(),
            input: Vec::new(),
            input_file: None,
        }
    }

    pub(super) fn with_shared_env(self, shared_env: &'a [(OsString, OsString)]) -> Self {
        Self { shared_env, ..self }
    }

    pub(super) fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// Adds a path literally, not as a pattern.
    pub(super) fn arg_path(self, path: &Path) -> Self {
        let mut literal = OsString::from(":(top,literal)");
        literal.push(path);
        self.args([literal])
    }

    pub(super) fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    pub(super) fn input(self, input: impl Into<Vec<u8>>) -> Self {
        Self { input: input.into(), ..self }
    }

    pub(super) fn input_file(self, file: &Path) -> Self {
        Self { input_file: Some(file.to_owned()), ..self }
    }

    /// Runs the command and returns its stdout. Any exit code other than 0 is an error.
    pub(super) fn read(self) -> Result<Vec<u8>, GitError> {
        self.run()?.success()
    }

    /// Like [`Self::read`], as text.
    pub(super) fn read_text(self) -> Result<String, GitError> {
        Ok(String::from_utf8_lossy(&self.read()?).into_owned())
    }

    /// Like [`Self::read`], as text without the trailing newline.
    pub(super) fn read_line(self) -> Result<String, GitError> {
        Ok(self.read_text()?.trim_end_matches('\n').to_owned())
    }

    /// Like [`Self::read`], without the output.
    pub(super) fn execute(self) -> Result<(), GitError> {
        self.read().map(drop)
    }

    /// Runs the command. If another process holds a lock it needs, retries until the lock timeout. Git takes
    /// its locks first, so a failed attempt has changed nothing.
    pub(super) fn run(self) -> Result<GitOutput, GitError> {
        let mut last = None;
        let done = self.git.wait_for(|| {
            let ended = self.run_once(|stdout, kept| stdout.read_to_end(kept).map(drop))?;
            if let Some(lock) = ended.blocking_lock() {
                self.git.set_blocking_lock(lock);
                last = Some(ended);
                return Ok(None);
            }
            Ok(Some(ended))
        })?;
        match (done, last) {
            (Some(ended), _) => Ok(ended),
            (None, Some(ended)) => Err(ended.into_error()),
            (None, None) => Err(GitError::Failed { command: self.display(), stderr: String::new() }),
        }
    }

    /// Passes stdout to `reader` while the command runs.
    pub(super) fn stream(
        self,
        mut reader: impl FnMut(&mut BufReader<GitPipes>) -> io::Result<()>,
    ) -> Result<(), GitError> {
        self.run_once(|stdout, _| reader(stdout))?.success().map(drop)
    }

    fn run_once(
        &self,
        reader: impl FnOnce(&mut BufReader<GitPipes>, &mut Vec<u8>) -> io::Result<()>,
    ) -> Result<GitOutput, GitError> {
        let mut child = self.git.spawn(self)?;
        let stdin = child.stdin.take();
        let printed = GitPipes::new(&mut child, self.git.deadline());
        let mut stdout = Vec::new();
        let (read, stderr, timed_out) = thread::scope(|scope| {
            // A git that ends without reading its input has printed the reason on stderr.
            match stdin {
                Some(mut stdin) if self.input.len() > PIPE_CAPACITY => {
                    scope.spawn(move || stdin.write_all(&self.input));
                }
                Some(mut stdin) => drop(stdin.write_all(&self.input)),
                None => {}
            }
            let mut printed = BufReader::new(printed);
            let read = reader(&mut printed, &mut stdout);
            let (stderr, timed_out) = printed.into_inner().finish();
            (read, stderr, timed_out)
        });
        let status = child.wait().map_err(GitError::at(Path::new("git")))?;
        if timed_out {
            return Err(GitError::TimedOut { command: self.display() });
        }
        read.map_err(GitError::at(Path::new("git")))?;
        Ok(GitOutput { status, stdout, stderr, command: self.display() })
    }

    /// The command line for messages, without arguments that only we need.
    fn display(&self) -> String {
        let words = self.arguments.iter().map(|word| word.to_string_lossy());
        let words: Vec<_> = words.take_while(|word| word != "--").take(6).collect();
        format!("git {}", words.join(" "))
    }
}

impl GitOutput {
    pub(super) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Stdout as text without the trailing newline.
    pub(super) fn line(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end_matches('\n').to_owned()
    }

    pub(super) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    pub(super) fn success(self) -> Result<Vec<u8>, GitError> {
        if self.status.success() { Ok(self.stdout) } else { Err(self.into_error()) }
    }

    /// For commands that exit with 0 for yes and 1 for no.
    pub(super) fn into_bool(self) -> Result<bool, GitError> {
        match self.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            Some(_) | None => Err(self.into_error()),
        }
    }

    pub(super) fn into_error(self) -> GitError {
        GitError::from_stderr(self.command, &self.stderr)
    }

    fn blocking_lock(&self) -> Option<PathBuf> {
        if self.status.success() {
            return None;
        }
        let error = GitError::from_stderr(String::new(), &self.stderr);
        if let GitError::Locked { file } = error { Some(file) } else { None }
    }
}

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
        while self.stderr.is_some() && self.poll_pipes().is_ok() {}
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
        let is_stdout_ready = self.stdout.is_some() && speaks(fds.first());
        if self.stderr.is_some() && speaks(fds.last()) {
            self.read_stderr()?;
        }
        Ok(is_stdout_ready)
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
