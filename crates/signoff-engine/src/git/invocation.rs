//! One git command: its arguments, its run and its output.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::thread;

use super::output_pipes::GitPipes;
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
        let directory = directory.to_owned();
        Self {
            git,
            directory,
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

    /// Like [`Self::read`], as text without the trailing newline.
    pub(super) fn read_line(self) -> Result<String, GitError> {
        Ok(String::from_utf8_lossy(&self.read()?).trim_end_matches('\n').to_owned())
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
            let (complaints, stuck) = printed.into_inner().finish();
            (read, complaints, stuck)
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
