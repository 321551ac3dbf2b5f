//! A replacement for the repository's common directory that contains only our configuration.
//!
//! An agent can write into `.git/config`, into hooks and into `.gitattributes`. A filter configured there would
//! run inside the `git add` that commits the agent's work. Filters have arbitrary names, so no list of `-c`
//! switches can turn all of them off. Therefore our git never reads the repository's configuration.
//! `GIT_COMMON_DIR` points to a directory with links to the repository's refs and with our own configuration.
//! Objects, `HEAD` and the index stay in place. A few settings of the user and the repository are copied; they
//! are plain values that name no command.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Git, GitError};
use crate::remove_tree;

/// Entries of the common directory that are linked: refs, history and worktrees.
const LINKED_ENTRIES: [&str; 7] = ["HEAD", "refs", "packed-refs", "reftable", "logs", "shallow", "worktrees"];

/// Settings that describe the repository format; without them git would misread the repository.
const FORMAT_SETTINGS: [&str; 3] = ["core.repositoryformatversion", "extensions.objectformat", "extensions.refstorage"];

/// Settings of the user and the repository that are copied. None of them names a command.
const COPIED_SETTINGS: [&str; 18] = [
    "author.email",
    "author.name",
    "committer.email",
    "committer.name",
    "core.autocrlf",
    "core.checkstat",
    "core.eol",
    "core.excludesfile",
    "core.filemode",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.protecthfs",
    "core.protectntfs",
    "core.sharedrepository",
    "core.symlinks",
    "core.trustctime",
    "user.email",
    "user.name",
];

/// Settings that always apply. Many are git's defaults, set explicitly so that no configuration changes them.
const FIXED_SETTINGS: [(&str, &str); 22] = [
    ("core.askpass", "true"),
    ("core.attributesfile", "/dev/null"),
    // Git neither loads larger files into memory nor shows them in diffs.
    ("core.bigfilethreshold", "16m"),
    ("core.editor", "true"),
    ("core.fsmonitor", "false"),
    ("core.hookspath", "/dev/null"),
    ("core.logallrefupdates", "true"),
    ("core.pager", "cat"),
    ("core.quotepath", "false"),
    // With `safecrlf`, git would refuse files whose line endings it would change.
    ("core.safecrlf", "false"),
    ("core.splitindex", "false"),
    ("core.sshcommand", "false"),
    ("core.untrackedcache", "false"),
    ("commit.gpgsign", "false"),
    ("credential.helper", ""),
    // Otherwise git would start another git in each submodule, which would use the submodule's configuration.
    ("diff.ignoresubmodules", "dirty"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("pack.compression", "1"),
    ("protocol.allow", "never"),
    ("submodule.recurse", "false"),
    ("advice.detachedhead", "false"),
];

/// Author and committer when the user has none configured.
const DEFAULT_IDENTITY: [(&str, &str); 2] = [("user.name", "signoff"), ("user.email", "signoff@localhost")];

/// The isolated directory. Dropping the value deletes it.
#[derive(Debug)]
pub(super) struct IsolatedGitDir {
    pub(super) directory: PathBuf,
    /// The environment that makes git use this directory.
    pub(super) environment: Vec<(OsString, OsString)>,
    /// The configured name of new repositories' default branch.
    pub(super) default_branch: Option<String>,
    /// Length of an object id in bytes.
    pub(super) id_bytes: usize,
    next_scratch: AtomicU64,
    /// Locked file that shows other processes that this directory is in use.
    _alive: File,
}

impl IsolatedGitDir {
    /// Creates an isolated directory for `common`, with the configuration as read from `checkout`.
    pub(super) fn create(git: &Git, common: &Path, checkout: &Path) -> Result<Self, GitError> {
        let mut read = read_settings(git, checkout)?;
        let home = common.join("signoff");
        fs::create_dir_all(&home).map_err(GitError::at(&home))?;
        remove_stale(&home);
        // Without randomness the name is only easier to guess. Creating an existing directory fails.
        let name = format!("{:016x}", getrandom::u64().unwrap_or_default());
        // The directory is not locked yet; under this name no other process removes it.
        let building = home.join(format!("building-{name}"));
        let alive = fill(&building, common, &read).map_err(GitError::at(&building))?;
        let directory = home.join(format!("sealed-{name}"));
        fs::rename(&building, &directory).map_err(GitError::at(&directory))?;
        let default_branch = read.remove("init.defaultbranch");
        let is_long = read.get("extensions.objectformat").is_some_and(|format| format == "sha256");
        let id_bytes = if is_long { 32 } else { 20 };
        let environment = environment(&directory, &common.join("objects"), read);
        Ok(Self { directory, environment, default_branch, id_bytes, next_scratch: AtomicU64::default(), _alive: alive })
    }

    /// A path that is not used by any other caller.
    pub(super) fn scratch(&self) -> ScratchPath {
        let number = self.next_scratch.fetch_add(1, Ordering::Relaxed);
        ScratchPath { path: self.directory.join(format!("scratch-{number}")) }
    }
}

/// A temporary file or directory. Dropping the value deletes it.
#[derive(Debug)]
pub(super) struct ScratchPath {
    pub(super) path: PathBuf,
}

impl Drop for ScratchPath {
    fn drop(&mut self) {
        // If this fails, it is deleted with the isolated directory.
        remove_tree::remove(&self.path).ok();
    }
}

impl Drop for IsolatedGitDir {
    fn drop(&mut self) {
        // If this fails, the next process removes it.
        remove_tree::remove(&self.directory).ok();
    }
}

/// All settings git would use in `checkout`. When a name has several values, the last one counts, as in git.
fn read_settings(git: &Git, checkout: &Path) -> Result<BTreeMap<String, String>, GitError> {
    let printed = git.command(checkout).args(["config", "--list", "-z", "--includes"]).read()?;
    let printed = String::from_utf8_lossy(&printed);
    let pairs = printed.split_terminator('\0').map(|entry| entry.split_once('\n').unwrap_or((entry, "true")));
    Ok(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

fn environment(directory: &Path, objects: &Path, read: BTreeMap<String, String>) -> Vec<(OsString, OsString)> {
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let copied = read.into_iter().filter(|(name, _)| COPIED_SETTINGS.contains(&name.as_str()));
    let settings = DEFAULT_IDENTITY.map(owned).into_iter().chain(copied).chain(FIXED_SETTINGS.map(owned));
    let mut environment: Vec<(OsString, OsString)> = Vec::new();
    let mut count = 0;
    for (name, value) in settings {
        environment.push((format!("GIT_CONFIG_KEY_{count}").into(), name.into()));
        environment.push((format!("GIT_CONFIG_VALUE_{count}").into(), value.into()));
        count += 1;
    }
    let places = [
        ("GIT_COMMON_DIR", directory.into()),
        ("GIT_OBJECT_DIRECTORY", objects.into()),
        ("GIT_CONFIG_GLOBAL", "/dev/null".into()),
        ("GIT_CONFIG_NOSYSTEM", "1".into()),
        ("GIT_CONFIG_COUNT", count.to_string().into()),
    ];
    environment.extend(places.map(|(name, value): (&str, OsString)| (name.into(), value)));
    environment
}

/// Removes directories that killed processes left behind. A directory in use is locked by its owner.
fn remove_stale(home: &Path) {
    let Ok(entries) = fs::read_dir(home) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with("sealed-")) {
        let alive = File::open(entry.path().join("alive"));
        if alive.is_ok_and(|alive| alive.try_lock().is_ok()) {
            remove_tree::remove(&entry.path()).ok();
        }
    }
}

fn fill(directory: &Path, common: &Path, read: &BTreeMap<String, String>) -> std::io::Result<File> {
    fs::create_dir(directory)?;
    let alive = File::create(directory.join("alive"))?;
    alive.lock()?;
    // Git follows a link to a missing target, but does not create a directory behind it.
    for directory in ["worktrees", "logs"] {
        fs::create_dir_all(common.join(directory))?;
    }
    for name in LINKED_ENTRIES {
        symlink(common.join(name), directory.join(name))?;
    }
    fs::create_dir(directory.join("info"))?;
    // A copy, so that later additions by an agent do not hide its work.
    let exclude = common.join("info/exclude");
    let lines = if exclude.is_file() { fs::read(&exclude)? } else { Vec::new() };
    fs::write(directory.join("info/exclude"), lines)?;
    let config: String = FORMAT_SETTINGS.iter().filter_map(|name| format_line(name, read.get(*name)?)).collect();
    fs::write(directory.join("config"), config)?;
    Ok(alive)
}

/// Writes one format setting. Valid values are single words; others are dropped.
fn format_line(name: &str, value: &str) -> Option<String> {
    let (section, key) = name.split_once('.')?;
    value.chars().all(char::is_alphanumeric).then(|| format!("[{section}]\n\t{key} = {value}\n"))
}
