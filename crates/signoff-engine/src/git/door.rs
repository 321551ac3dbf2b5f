//! The one door through which git is started, and through which its locks are waited for.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::GitError;
use super::invocation::Invocation;

/// How long a lock is waited for, unless told otherwise.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long one git may take, unless told otherwise: the largest checkouts are made in less. An agent that puts
/// a pipe where git expects a file could hold it up for ever.
const LIMIT: Duration = Duration::from_secs(15 * 60);

/// Longer than any git that is alive holds the lock of an index.
const MOMENT: Duration = Duration::from_secs(2);

/// How often a lock is looked at.
const GLANCE: Duration = Duration::from_millis(20);

/// What may stay of `GIT_*` in the environment: who the person is, and where their configuration lies.
const KEPT: [&str; 8] = [
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CEILING_DIRECTORIES",
];

/// Starts git, and counts how often it did. Clones share the count.
#[derive(Debug, Clone)]
pub struct Git {
    /// Where git is. Named by its path it can be started without a copy of our own address space.
    program: Arc<Path>,
    environment: Arc<[(OsString, OsString)]>,
    patience: Duration,
    limit: Duration,
    processes: Arc<AtomicU64>,
    held_up: Arc<Mutex<Option<PathBuf>>>,
}

impl Git {
    /// Git in the given environment, which is the person's; little of `GIT_*` gets through.
    pub fn new(environment: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let environment: Arc<[_]> = environment.into_iter().filter(|(name, _)| gets_through(name)).collect();
        let program = find(&environment).into();
        Self {
            program,
            environment,
            patience: PATIENCE,
            limit: LIMIT,
            processes: Arc::default(),
            held_up: Arc::default(),
        }
    }

    /// Waits for locks no longer than `patience`.
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Ends a git that takes longer than `limit`.
    pub fn with_limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// When a git that is started now has taken too long.
    pub(super) fn deadline(&self) -> Deadline {
        Deadline(now() + self.limit)
    }

    /// How many git processes were started so far.
    pub fn processes(&self) -> u64 {
        self.processes.load(Ordering::Relaxed)
    }

    /// Remembers the lock that holds a git of ours up: whoever waits for that git in turn waits for the lock.
    pub(super) fn is_held_up_by(&self, lock: PathBuf) {
        *self.held_up.lock().unwrap_or_else(PoisonError::into_inner) = Some(lock);
    }

    /// The lock that a git of ours waited for last, if it is still there.
    pub(super) fn held_up_by(&self) -> Option<PathBuf> {
        let lock = self.held_up.lock().unwrap_or_else(PoisonError::into_inner).clone();
        lock.filter(|lock| lock.exists())
    }

    /// A command to be run in `directory`.
    pub(super) fn command(&self, directory: &Path) -> Invocation<'_> {
        Invocation::new(self, directory)
    }

    /// Tries again and again until `attempt` gives something, or patience ends.
    pub(super) fn wait_for<T>(
        &self,
        attempt: impl FnMut() -> Result<Option<T>, GitError>,
    ) -> Result<Option<T>, GitError> {
        wait(self.patience, attempt)
    }

    /// The same, for what lasts only moments.
    pub(super) fn wait_briefly<T>(
        &self,
        attempt: impl FnMut() -> Result<Option<T>, GitError>,
    ) -> Result<Option<T>, GitError> {
        wait(self.patience.min(MOMENT), attempt)
    }

    #[expect(clippy::disallowed_methods, reason = "git's one door for spawning")]
    pub(super) fn spawn(&self, invocation: &Invocation<'_>) -> Result<Child, GitError> {
        self.processes.fetch_add(1, Ordering::Relaxed);
        let stdin = match &invocation.input_file {
            Some(file) => Stdio::from(File::open(file).map_err(GitError::at(file))?),
            None if invocation.input.is_empty() => Stdio::null(),
            None => Stdio::piped(),
        };
        let mut command = Command::new(&*self.program);
        command
            .arg("--no-pager")
            .args(&invocation.arguments)
            .current_dir(&invocation.directory)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .envs(invocation.shared.iter().chain(&invocation.variables).map(|(name, value)| (name, value)))
            // A Ctrl-C is the program's to handle; it must not tear git off in the middle.
            .process_group(0)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().map_err(|source| {
            if source.kind() != io::ErrorKind::NotFound {
                GitError::Io { path: PathBuf::from("git"), source }
            } else if invocation.directory.is_dir() {
                GitError::NoGit
            } else {
                GitError::WorktreeGone(invocation.directory.clone())
            }
        })
    }
}

/// Git on the path of this environment. Where none is found the bare name fails as it should.
fn find(environment: &[(OsString, OsString)]) -> PathBuf {
    let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone());
    let directories = path.iter().flat_map(std::env::split_paths).filter(|directory| directory.is_absolute());
    let runs = |file: &PathBuf| {
        file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    directories.map(|directory| directory.join("git")).find(runs).unwrap_or_else(|| PathBuf::from("git"))
}

/// The moment at which a git is given up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline(Instant);

impl Deadline {
    /// What is left until then; none when it is over.
    pub(super) fn left(self) -> Option<Duration> {
        Some(self.0.saturating_duration_since(now())).filter(|left| !left.is_zero())
    }
}

fn gets_through(name: &OsStr) -> bool {
    let text = name.to_string_lossy();
    !text.starts_with("GIT_") || KEPT.contains(&text.as_ref())
}

fn wait<T>(
    patience: Duration,
    mut attempt: impl FnMut() -> Result<Option<T>, GitError>,
) -> Result<Option<T>, GitError> {
    let started = now();
    loop {
        if let Some(value) = attempt()? {
            return Ok(Some(value));
        }
        if started.elapsed() >= patience {
            return Ok(None);
        }
        pause();
    }
}

#[expect(clippy::disallowed_methods, reason = "git's one door to the clock, to end its waiting")]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "a lock file tells nobody when it goes; it must be looked at")]
fn pause() {
    thread::sleep(GLANCE);
}
