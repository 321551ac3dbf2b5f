//! The one door through which git is started, and through which its locks are waited for.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::GitError;

/// How long a lock is waited for, unless told otherwise.
const PATIENCE: Duration = Duration::from_secs(30);

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
    environment: Arc<[(OsString, OsString)]>,
    patience: Duration,
    processes: Arc<AtomicU64>,
}

impl Git {
    /// Git in the given environment, which is the person's; little of `GIT_*` gets through.
    pub fn new(environment: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let environment = environment.into_iter().filter(|(name, _)| gets_through(name)).collect();
        Self { environment, patience: PATIENCE, processes: Arc::default() }
    }

    /// Waits for locks no longer than `patience`.
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// How many git processes were started so far.
    pub fn processes(&self) -> u64 {
        self.processes.load(Ordering::Relaxed)
    }

    /// A command to be run in `directory`.
    pub(super) fn command(&self, directory: &Path) -> Invocation<'_> {
        Invocation {
            git: self,
            directory: directory.to_owned(),
            arguments: Vec::new(),
            variables: Vec::new(),
            input: Vec::new(),
        }
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
    fn spawn(&self, invocation: &Invocation<'_>) -> Result<Child, GitError> {
        self.processes.fetch_add(1, Ordering::Relaxed);
        let mut command = Command::new("git");
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
            .envs(invocation.variables.iter().map(|(name, value)| (name, value)))
            // A Ctrl-C is the program's to handle; it must not tear git off in the middle.
            .process_group(0)
            .stdin(if invocation.input.is_empty() { Stdio::null() } else { Stdio::piped() })
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

/// One git command, not yet run.
#[derive(Debug)]
pub(super) struct Invocation<'a> {
    git: &'a Git,
    directory: PathBuf,
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    input: Vec<u8>,
}

/// What a git command left behind.
#[derive(Debug)]
pub(super) struct Ended {
    status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    stderr: Vec<u8>,
    command: String,
}

impl Invocation<'_> {
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
        let read = thread::scope(|scope| {
            // A git that ends without reading everything has said why on stderr.
            scope.spawn(|| stdin.map(|mut stdin| stdin.write_all(&self.input)));
            scope.spawn(|| stderr.map(|mut stderr| stderr.read_to_end(&mut complaints)));
            stdout.map_or(Ok(()), |stdout| reader(&mut BufReader::new(stdout), &mut printed))
        });
        let status = child.wait().and_then(|status| read.map(|()| status));
        let status = status.map_err(GitError::at(Path::new("git")))?;
        Ok(Ended { status, stdout: printed, stderr: complaints, command: self.words() })
    }

    /// The command as a person would type it, without what only we care about.
    fn words(&self) -> String {
        let words = self.arguments.iter().map(|word| word.to_string_lossy());
        let words: Vec<_> = words.take_while(|word| word != "--").take(6).collect();
        format!("git {}", words.join(" "))
    }
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
