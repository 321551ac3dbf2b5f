//! Runs git processes: their arguments, environment, output and time limits, and the wait for git's locks.

use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::GitError;
use super::repository::{path, split_nul};
use crate::atomic_file;
use crate::detect::is_executable;

/// Default time to wait for a lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// Default time limit of one git process. The largest checkouts need less. An agent that puts a pipe where git
/// expects a file could block git for ever.
const PROCESS_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// Time to wait for an index lock. A live git holds one for a shorter time.
pub(super) const INDEX_LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// Interval between two looks at a lock.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The `GIT_*` variables that git inherits: the user's identity and the location of their configuration.
const INHERITED_GIT_VARIABLES: [&str; 8] = [
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CEILING_DIRECTORIES",
];

/// Starts git and counts the processes. Clones share the count.
#[derive(Debug, Clone)]
pub struct Git {
    /// Path of the git executable. With an absolute path, git starts without a copy of our address space.
    program: Arc<Path>,
    environment: Arc<[(OsString, OsString)]>,
    pub(super) lock_timeout: Duration,
    process_timeout: Duration,
    processes: Arc<AtomicU64>,
    blocking_lock: Arc<Mutex<Option<PathBuf>>>,
}

impl Git {
    /// Runs git in the given environment, which is the user's, without most of its `GIT_*` variables.
    pub fn new(environment: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let environment: Arc<[_]> = environment.into_iter().filter(|(name, _)| is_inherited(name)).collect();
        let program = find(&environment).into();
        Self {
            program,
            environment,
            lock_timeout: LOCK_TIMEOUT,
            process_timeout: PROCESS_TIMEOUT,
            processes: Arc::default(),
            blocking_lock: Arc::default(),
        }
    }

    /// Sets how long to wait for locks.
    pub fn with_lock_timeout(self, lock_timeout: Duration) -> Self {
        Self { lock_timeout, ..self }
    }

    /// Number of git processes started so far.
    pub fn processes(&self) -> u64 {
        self.processes.load(Ordering::Relaxed)
    }

    /// Builds a command that runs in `directory`.
    #[expect(clippy::disallowed_methods, reason = "the only place that starts git")]
    pub(super) fn command(&self, directory: &Path) -> GitCommand<'_> {
        let mut process = Command::new(&*self.program);
        process
            .arg("--no-pager")
            .current_dir(directory)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_ATTR_NOSYSTEM", "1")
            // The program itself handles Ctrl-C; the signal must not kill git in the middle of an operation.
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        GitCommand { git: self, process, input: Vec::new(), input_file: None }
    }

    /// Runs `work` while no other thread or process of ours holds the lock file.
    ///
    /// The operating system releases the lock when its holder dies, so it never becomes stale.
    pub(super) fn with_lock<T>(&self, path: &Path, work: impl FnOnce() -> Result<T, GitError>) -> Result<T, GitError> {
        let file = atomic_file::open_lock(path).map_err(GitError::at(path))?;
        let held = wait(self.lock_timeout, || match file.try_lock() {
            Ok(()) => Ok(Some(())),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(GitError::at(path)(error)),
        })?;
        if held.is_none() {
            // The holder may itself wait for another lock; the error names that one.
            let lock = self.blocking_lock.lock().unwrap_or_else(PoisonError::into_inner).clone();
            return Err(GitError::Locked {
                file: lock.filter(|lock| lock.exists()).unwrap_or_else(|| path.to_owned()),
            });
        }
        work()
    }
}

/// Finds git in the `PATH` of this environment. Falls back to the bare name, whose start then fails.
fn find(environment: &[(OsString, OsString)]) -> PathBuf {
    let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone());
    let directories = path.iter().flat_map(std::env::split_paths).filter(|directory| directory.is_absolute());
    let mut programs = directories.map(|directory| directory.join("git"));
    programs.find(|program| is_executable(program)).unwrap_or_else(|| PathBuf::from("git"))
}

fn is_inherited(name: &OsStr) -> bool {
    let text = name.to_string_lossy();
    !text.starts_with("GIT_") || INHERITED_GIT_VARIABLES.contains(&text.as_ref())
}

/// Repeats `attempt` until it returns a value or the timeout expires.
pub(crate) fn wait<T, E>(timeout: Duration, mut attempt: impl FnMut() -> Result<Option<T>, E>) -> Result<Option<T>, E> {
    let started = now();
    loop {
        if let Some(value) = attempt()? {
            return Ok(Some(value));
        }
        if started.elapsed() >= timeout {
            return Ok(None);
        }
        pause();
    }
}

#[expect(clippy::disallowed_methods, reason = "reads the clock for timeouts only")]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "a lock file has to be polled")]
fn pause() {
    thread::sleep(LOCK_POLL_INTERVAL);
}

/// One git command, not yet run.
#[derive(Debug)]
pub(super) struct GitCommand<'a> {
    git: &'a Git,
    process: Command,
    input: Vec<u8>,
    /// File to use as stdin instead of `input`.
    input_file: Option<PathBuf>,
}

/// Exit status and output of a git command.
#[derive(Debug)]
pub(super) struct GitOutput {
    status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    stderr: Vec<u8>,
    command: String,
}

impl GitCommand<'_> {
    pub(super) fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.process.args(arguments);
        self
    }

    pub(super) fn env(self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.envs([(name, value)])
    }

    pub(super) fn envs(mut self, variables: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>) -> Self {
        self.process.envs(variables);
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

    /// Like [`Self::read`], for a list of paths that each end with NUL.
    pub(super) fn read_paths(self) -> Result<Vec<PathBuf>, GitError> {
        Ok(split_nul(&self.read()?).map(path).collect())
    }

    /// Like [`Self::read`], without the output.
    pub(super) fn execute(self) -> Result<(), GitError> {
        self.read().map(drop)
    }

    /// Runs the command. If another process holds a lock it needs, retries until the lock timeout. Git takes
    /// its locks first, so a failed attempt has changed nothing.
    pub(super) fn run(mut self) -> Result<GitOutput, GitError> {
        let git = self.git;
        let mut lock = PathBuf::new();
        let done = wait(git.lock_timeout, || {
            let ended = self.run_once(|stdout, kept| stdout.read_to_end(kept).map(drop))?;
            let Some(held) = ended.blocking_lock() else { return Ok(Some(ended)) };
            lock.clone_from(&held);
            *git.blocking_lock.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
            Ok(None)
        })?;
        done.ok_or(GitError::Locked { file: lock })
    }

    /// Passes stdout to `reader` while the command runs.
    pub(super) fn stream(
        mut self,
        mut reader: impl FnMut(&mut BufReader<ChildStdout>) -> io::Result<()>,
    ) -> Result<(), GitError> {
        self.run_once(|stdout, _| reader(stdout))?.success().map(drop)
    }

    fn run_once(
        &mut self,
        reader: impl FnOnce(&mut BufReader<ChildStdout>, &mut Vec<u8>) -> io::Result<()>,
    ) -> Result<GitOutput, GitError> {
        let mut child = self.spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (stdin, Some(stdout), Some(mut stderr)) = pipes else {
            return Err(GitError::at(Path::new("git"))(io::ErrorKind::BrokenPipe.into()));
        };
        // The process is not reaped before it has ended, so its id stays valid.
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let (input, limit) = (self.input.as_slice(), self.git.process_timeout);
        let (ended, wait_for_end) = mpsc::channel::<()>();
        let (read, stdout, stderr, timed_out) = thread::scope(|scope| {
            // A git that ends without reading its input has printed the reason on stderr.
            stdin.map(|mut stdin| scope.spawn(move || stdin.write_all(input)));
            let errors = scope.spawn(move || {
                let mut errors = Vec::new();
                stderr.read_to_end(&mut errors).ok();
                errors
            });
            let killer = scope.spawn(move || {
                let timed_out = wait_for_end.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
                group.filter(|_| timed_out).map(|group| kill_process_group(group, Signal::KILL));
                timed_out
            });
            let mut kept = Vec::new();
            // Closes stdout, so that git does not block when the reader failed.
            let read = reader(&mut BufReader::new(stdout), &mut kept);
            let errors = errors.join().unwrap_or_default();
            drop(ended);
            (read, kept, errors, killer.join().unwrap_or_default())
        });
        let status = child.wait().map_err(GitError::at(Path::new("git")))?;
        if timed_out {
            return Err(GitError::TimedOut { command: self.display() });
        }
        read.map_err(GitError::at(Path::new("git")))?;
        Ok(GitOutput { status, stdout, stderr, command: self.display() })
    }

    fn spawn(&mut self) -> Result<Child, GitError> {
        self.git.processes.fetch_add(1, Ordering::Relaxed);
        self.process.stdin(match &self.input_file {
            Some(file) => Stdio::from(File::open(file).map_err(GitError::at(file))?),
            None if self.input.is_empty() => Stdio::null(),
            None => Stdio::piped(),
        });
        self.process.spawn().map_err(|source| match self.process.get_current_dir() {
            _ if source.kind() != io::ErrorKind::NotFound => GitError::Io { path: PathBuf::from("git"), source },
            Some(gone) if !gone.is_dir() => GitError::WorktreeGone(gone.to_owned()),
            Some(_) | None => GitError::NoGit,
        })
    }

    /// The command line for messages, without arguments that only we need.
    fn display(&self) -> String {
        let arguments = self.process.get_args().skip(1).map(OsStr::to_string_lossy);
        let arguments: Vec<_> = arguments.take_while(|argument| argument != "--").take(6).collect();
        format!("git {}", arguments.join(" "))
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
        let GitError::Locked { file } = GitError::from_stderr(String::new(), &self.stderr) else { return None };
        Some(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifo_in_place_of_a_file_does_not_block_forever() {
        let directory = tempfile::tempdir().unwrap();
        let git = Git { process_timeout: Duration::from_secs(1), ..Git::new(std::env::vars_os()) };
        git.command(directory.path()).args(["init", "--quiet"]).execute().unwrap();
        git.command(directory.path()).args(["-c", "alias.pipe=!mkfifo .gitignore", "pipe"]).execute().unwrap();
        let ended = git.command(directory.path()).args(["status"]).run();
        assert!(matches!(ended, Err(GitError::TimedOut { command }) if command == "git status"));
    }
}
