//! A temporary home and repository for each test.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use signoff_core::ids::Commit;
use signoff_engine::git::{Git, NewWorktree, Repository, Worktree, WorktreeSnapshot};
use signoff_testkit::git_template::GitTemplate;
use tempfile::TempDir;

const EMPTY: GitTemplate = GitTemplate { files: &[], commands: &[&["init", "-q", "-b", "main"]] };

const ONE_COMMIT: GitTemplate = GitTemplate {
    files: &[("README.md", "hello\n"), ("src/main.rs", "fn main() {}\n")],
    commands: &[
        &["init", "-q", "-b", "main"],
        &["add", "-A"],
        &["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-qm", "first"],
    ],
};

/// A home directory, a repository `repo` in it, and a directory for worktrees.
pub struct GitFixture {
    top: TempDir,
    pub git: Git,
}

impl GitFixture {
    /// Creates a repository with one commit on `main`.
    pub fn new() -> Self {
        Self::from_template(&ONE_COMMIT)
    }

    /// Creates a repository without commits.
    pub fn empty() -> Self {
        Self::from_template(&EMPTY)
    }

    fn from_template(template: &GitTemplate) -> Self {
        let top = tempfile::Builder::new().prefix("signoff git ").tempdir().expect("a working disk");
        fs::create_dir(top.path().join("home")).expect("a working disk");
        fs::write(
            top.path().join("home/.gitconfig"),
            "[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n",
        )
        .expect("a working disk");
        let git = Git::new(environment(top.path())).with_lock_timeout(Duration::from_secs(20));
        let fixture = Self { top, git };
        template.copy_to(&fixture.root());
        fixture
    }

    pub fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.top.path()).expect("a working disk").join(name)
    }

    pub fn root(&self) -> PathBuf {
        self.path("repo")
    }

    pub fn repository(&self) -> Repository {
        Repository::discover(&self.git, &self.root()).expect("a repository")
    }

    pub fn with_short_timeout(&self) -> Repository {
        let git = self.git.clone().with_lock_timeout(Duration::from_millis(50));
        Repository::discover(&git, &self.root()).expect("a repository")
    }

    /// Adds a worktree `name` on the branch `loop/NAME`.
    pub fn worktree(&self, name: &str) -> Worktree {
        let start = self.head();
        let branch = format!("loop/{name}");
        let new = NewWorktree { path: &self.path("trees").join(name), branch: &branch, start: &start };
        self.repository().add_worktree(&new).expect("a worktree")
    }

    pub fn head(&self) -> Commit {
        Commit::new(self.run(&["rev-parse", "HEAD"]).trim())
    }

    pub fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        write(&self.root(), name, contents);
    }

    pub fn commit(&self, message: &str) {
        self.run(&["add", "-A"]);
        self.run(&["commit", "-qm", message]);
    }

    /// Runs the user's git in the repository.
    pub fn run(&self, arguments: &[&str]) -> String {
        self.run_in(&self.root(), arguments)
    }

    /// Runs plain git, with hooks and configuration, in a directory.
    pub fn run_in(&self, directory: &Path, arguments: &[&str]) -> String {
        let (succeeded, text) = self.try_in(directory, arguments);
        assert!(succeeded, "git {arguments:?}: {text}");
        text
    }

    #[expect(clippy::disallowed_methods, reason = "the only place where the git tests spawn git")]
    pub fn try_in(&self, directory: &Path, arguments: &[impl AsRef<OsStr>]) -> (bool, String) {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(directory).env_clear().envs(environment(self.top.path()));
        let output = command.output().expect("git");
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    /// Runs a shell script and returns its stdout, whatever its exit code.
    #[expect(clippy::disallowed_methods, reason = "the only place where the git tests spawn a shell")]
    pub fn shell(&self, directory: &Path, script: &str) -> String {
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(directory).env_clear().envs(environment(self.top.path()));
        String::from_utf8_lossy(&command.output().expect("a shell").stdout).into_owned()
    }

    /// Reads the state of the user's checkout that signoff must not change: files, index, `HEAD`, stash and status.
    pub fn checkout_fingerprint(&self) -> CheckoutFingerprint {
        let read = |name: &str| fs::read(self.root().join(".git").join(name)).unwrap_or_default();
        CheckoutFingerprint {
            index: read("index"),
            head: read("HEAD"),
            stash: read("refs/stash"),
            log: read("logs/HEAD"),
            config: read("config"),
            status: self.run(&["--no-optional-locks", "status", "--porcelain", "--branch"]),
            files: files(&self.root()),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct CheckoutFingerprint {
    index: Vec<u8>,
    head: Vec<u8>,
    stash: Vec<u8>,
    log: Vec<u8>,
    config: Vec<u8>,
    status: String,
    files: BTreeMap<PathBuf, (i64, i64, u32, u64)>,
}

#[expect(clippy::disallowed_methods, reason = "the test needs the machine's PATH")]
fn environment(top: &Path) -> Vec<(OsString, OsString)> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let home = top.join("home").into_os_string();
    vec![("PATH".into(), path), ("HOME".into(), home), ("GIT_CONFIG_NOSYSTEM".into(), "1".into())]
}

/// Lists every file outside `.git` with its times, mode and size.
pub fn files(top: &Path) -> BTreeMap<PathBuf, (i64, i64, u32, u64)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(top).expect("a working disk") {
        let path = entry.expect("a working disk").path();
        if path.file_name() == Some(OsStr::new(".git")) {
            continue;
        }
        let seen = fs::symlink_metadata(&path).expect("a working disk");
        if seen.is_dir() {
            found.extend(files(&path));
        }
        found.insert(path, (seen.mtime(), seen.mtime_nsec(), seen.mode(), seen.size()));
    }
    found
}

/// A snapshot of the last commit of a worktree.
pub fn snapshot(worktree: &Worktree) -> WorktreeSnapshot {
    let head = worktree.head().expect("git at work").commit;
    worktree.snapshot_at_commit(&head).expect("git at work")
}

pub fn write(top: &Path, name: &str, contents: impl AsRef<[u8]>) {
    let path = top.join(name);
    fs::create_dir_all(path.parent().expect("a working disk")).expect("a working disk");
    fs::write(path, contents).expect("a working disk");
}
