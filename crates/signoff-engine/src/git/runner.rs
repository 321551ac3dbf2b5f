//! Starts git processes and waits for git's locks.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, TryLockError};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use super::GitError;
use super::command::GitCommand;

/// Default time to wait for a lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// Default time limit of one git process. The largest checkouts need less. An agent that puts a pipe where git
/// expects a file could block git for ever.
const PROCESS_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// Time to wait for an index lock. A live git holds one for a shorter time.
const INDEX_LOCK_TIMEOUT: Duration = Duration::from_secs(2);

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
    lock_timeout: Duration,
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

    /// Sets the time limit of one git process.
    pub fn with_process_timeout(self, process_timeout: Duration) -> Self {
        Self { process_timeout, ..self }
    }

    /// The time at which a git process that starts now is killed.
    pub(super) fn deadline(&self) -> GitDeadline {
        GitDeadline(now() + self.process_timeout)
    }

    /// Number of git processes started so far.
    pub fn processes(&self) -> u64 {
        self.processes.load(Ordering::Relaxed)
    }

    /// Records the lock that one of our git processes waits for. Callers that wait for that process wait for
    /// this lock too.
    pub(super) fn set_blocking_lock(&self, lock: PathBuf) {
        *self.blocking_lock.lock().unwrap_or_else(PoisonError::into_inner) = Some(lock);
    }

    /// The lock that one of our git processes waited for last, if it still exists.
    pub(super) fn blocking_lock(&self) -> Option<PathBuf> {
        let lock = self.blocking_lock.lock().unwrap_or_else(PoisonError::into_inner).clone();
        lock.filter(|lock| lock.exists())
    }

    /// Builds a command that runs in `directory`.
    pub(super) fn command(&self, directory: &Path) -> GitCommand<'_> {
        GitCommand::new(self, directory)
    }

    /// Repeats `attempt` until it returns a value or the lock timeout expires.
    pub(super) fn wait_for<T>(
        &self,
        attempt: impl FnMut() -> Result<Option<T>, GitError>,
    ) -> Result<Option<T>, GitError> {
        wait(self.lock_timeout, attempt)
    }

    /// Like [`Self::wait_for`], with the shorter timeout of an index lock.
    pub(super) fn wait_briefly<T>(
        &self,
        attempt: impl FnMut() -> Result<Option<T>, GitError>,
    ) -> Result<Option<T>, GitError> {
        wait(self.lock_timeout.min(INDEX_LOCK_TIMEOUT), attempt)
    }

    /// Runs `work` while no other thread or process of ours holds the lock file.
    ///
    /// The operating system releases the lock when its holder dies, so it never becomes stale.
    pub(super) fn with_lock<T>(&self, file: &Path, work: impl FnOnce() -> Result<T, GitError>) -> Result<T, GitError> {
        let held = self.lock(file)?;
        let done = work();
        drop(held);
        done
    }

    fn lock(&self, path: &Path) -> Result<File, GitError> {
        let directory = path.parent().unwrap_or(path);
        fs::create_dir_all(directory).map_err(GitError::at(directory))?;
        let file = File::options().create(true).truncate(false).write(true).open(path).map_err(GitError::at(path))?;
        let held = self.wait_for(|| match file.try_lock() {
            Ok(()) => Ok(Some(())),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(GitError::at(path)(error)),
        })?;
        // The holder may itself wait for another lock; the error names that one.
        held.map(|()| file)
            .ok_or_else(|| GitError::Locked { file: self.blocking_lock().unwrap_or_else(|| path.to_owned()) })
    }

    #[expect(clippy::disallowed_methods, reason = "git's one door for spawning")]
    pub(super) fn spawn(&self, command: &GitCommand<'_>) -> Result<Child, GitError> {
        self.processes.fetch_add(1, Ordering::Relaxed);
        let stdin = match &command.input_file {
            Some(file) => Stdio::from(File::open(file).map_err(GitError::at(file))?),
            None if command.input.is_empty() => Stdio::null(),
            None => Stdio::piped(),
        };
        let mut process = Command::new(&*self.program);
        process
            .arg("--no-pager")
            .args(&command.arguments)
            .current_dir(&command.directory)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .envs(command.shared_env.iter().chain(&command.env).map(|(name, value)| (name, value)))
            // The program itself handles Ctrl-C; the signal must not kill git in the middle of an operation.
            .process_group(0)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        process.spawn().map_err(|source| {
            if source.kind() != io::ErrorKind::NotFound {
                GitError::Io { path: PathBuf::from("git"), source }
            } else if command.directory.is_dir() {
                GitError::NoGit
            } else {
                GitError::WorktreeGone(command.directory.clone())
            }
        })
    }
}

/// Finds git in the `PATH` of this environment. Falls back to the bare name, whose start then fails.
fn find(environment: &[(OsString, OsString)]) -> PathBuf {
    let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone());
    let directories = path.iter().flat_map(std::env::split_paths).filter(|directory| directory.is_absolute());
    let runs =
        |file: &PathBuf| file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0);
    directories.map(|directory| directory.join("git")).find(runs).unwrap_or_else(|| PathBuf::from("git"))
}

/// The time at which a git process is killed.
#[derive(Debug, Clone, Copy)]
pub(super) struct GitDeadline(Instant);

impl GitDeadline {
    /// Time left until the deadline, or `None` once it has passed.
    pub(super) fn remaining(self) -> Option<Duration> {
        Some(self.0.saturating_duration_since(now())).filter(|left| !left.is_zero())
    }
}

fn is_inherited(name: &OsStr) -> bool {
    let text = name.to_string_lossy();
    !text.starts_with("GIT_") || INHERITED_GIT_VARIABLES.contains(&text.as_ref())
}

fn wait<T>(timeout: Duration, mut attempt: impl FnMut() -> Result<Option<T>, GitError>) -> Result<Option<T>, GitError> {
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

#[expect(clippy::disallowed_methods, reason = "git's one door to the clock, to end its waiting")]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "a lock file has to be polled")]
fn pause() {
    thread::sleep(LOCK_POLL_INTERVAL);
}
