//! A stand-in for the repository's common directory that holds no configuration but ours.
//!
//! An agent can write into `.git/config`, into hooks and into `.gitattributes`: a filter named there would run
//! inside the very `git add` that commits the agent's work, and filters have names nobody can foresee, so that no
//! list of `-c` switches could turn all of them off. Therefore our git never reads the repository's
//! configuration. `GIT_COMMON_DIR` points it to a directory with links to the repository's refs and with a
//! configuration of our own; objects, `HEAD` and the index stay where they are. Of the person's and the
//! repository's settings a few are carried over, all of them plain values that name no command.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use signoff_core::hex::hex;

use super::{Git, GitError};
use crate::clear;

/// What refs, history and ignoring are made of.
const SHARED: [&str; 7] = ["HEAD", "refs", "packed-refs", "reftable", "logs", "shallow", "worktrees"];

/// Settings that say what the repository is; without them git would misread it.
const FORMAT: [&str; 3] =
    ["core.repositoryformatversion", "extensions.objectformat", "extensions.refstorage"];

/// Settings of the person and the repository that are carried over. None of them names a command.
const CARRIED: [&str; 18] = [
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

/// What holds always. Much of it is git's default; said aloud so that no default can change it.
const FIXED: [(&str, &str); 22] = [
    ("core.askpass", "true"),
    ("core.attributesfile", "/dev/null"),
    // Larger files are neither held in memory nor shown in diffs.
    ("core.bigfilethreshold", "16m"),
    ("core.editor", "true"),
    ("core.fsmonitor", "false"),
    ("core.hookspath", "/dev/null"),
    ("core.logallrefupdates", "true"),
    ("core.pager", "cat"),
    ("core.quotepath", "false"),
    // With it git would refuse files whose line ends it would change.
    ("core.safecrlf", "false"),
    ("core.splitindex", "false"),
    ("core.sshcommand", "false"),
    ("core.untrackedcache", "false"),
    ("commit.gpgsign", "false"),
    ("credential.helper", ""),
    // Git would start another git within each, which does what is configured there.
    ("diff.ignoresubmodules", "dirty"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("pack.compression", "1"),
    ("protocol.allow", "never"),
    ("submodule.recurse", "false"),
    ("advice.detachedhead", "false"),
];

/// Who commits where the person has no name.
const NOBODY: [(&str, &str); 2] = [("user.name", "signoff"), ("user.email", "signoff@localhost")];

/// The stand-in, gone when this value is.
#[derive(Debug)]
pub(super) struct Sealed {
    directory: PathBuf,
    environment: Vec<(OsString, OsString)>,
    default_branch: Option<String>,
    /// How many bytes the id of an object has.
    id_bytes: usize,
    scratch: AtomicU64,
    /// Held so that other processes see that this directory is in use.
    _alive: File,
}

impl Sealed {
    /// Makes a stand-in for `common`, reading configuration as seen from `checkout`.
    pub(super) fn make(git: &Git, common: &Path, checkout: &Path) -> Result<Self, GitError> {
        let mut read = read_settings(git, checkout)?;
        let home = common.join("signoff");
        fs::create_dir_all(&home).map_err(GitError::at(&home))?;
        sweep(&home);
        let (directory, alive) = lay_out(&home, common, &read)?;
        let default_branch = read.remove("init.defaultbranch");
        let is_long = read.get("extensions.objectformat").is_some_and(|format| format == "sha256");
        let id_bytes = if is_long { 32 } else { 20 };
        let environment = environment(&directory, &common.join("objects"), &settings(read));
        Ok(Self {
            directory,
            environment,
            default_branch,
            id_bytes,
            scratch: AtomicU64::default(),
            _alive: alive,
        })
    }

    /// The environment that keeps git inside.
    pub(super) fn environment(&self) -> &[(OsString, OsString)] {
        &self.environment
    }

    pub(super) fn id_bytes(&self) -> usize {
        self.id_bytes
    }

    pub(super) fn default_branch(&self) -> Option<&str> {
        self.default_branch.as_deref()
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// A file name nobody else uses.
    pub(super) fn scratch(&self) -> PathBuf {
        self.directory.join(format!("scratch-{}", self.scratch.fetch_add(1, Ordering::Relaxed)))
    }
}

impl Drop for Sealed {
    fn drop(&mut self) {
        // Should it stay, the next program sweeps it away.
        clear::remove(&self.directory).ok();
    }
}

/// All settings git would use in `checkout`; of several values of one name the last, as git does.
fn read_settings(git: &Git, checkout: &Path) -> Result<BTreeMap<String, String>, GitError> {
    let printed = git.command(checkout).args(["config", "--list", "-z", "--includes"]).read()?;
    let printed = String::from_utf8_lossy(&printed);
    let pairs = printed.split_terminator('\0').map(|entry| entry.split_once('\n').unwrap_or((entry, "true")));
    Ok(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

fn settings(read: BTreeMap<String, String>) -> Vec<(String, String)> {
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let carried = read.into_iter().filter(|(name, _)| CARRIED.contains(&name.as_str()));
    NOBODY.map(owned).into_iter().chain(carried).chain(FIXED.map(owned)).collect()
}

fn environment(directory: &Path, objects: &Path, settings: &[(String, String)]) -> Vec<(OsString, OsString)> {
    let owned = |(name, value): (&str, &OsStr)| (OsString::from(name), value.to_owned());
    let count = OsString::from(settings.len().to_string());
    let places = [
        ("GIT_COMMON_DIR", directory.as_os_str()),
        ("GIT_OBJECT_DIRECTORY", objects.as_os_str()),
        ("GIT_CONFIG_GLOBAL", OsStr::new("/dev/null")),
        ("GIT_CONFIG_NOSYSTEM", OsStr::new("1")),
        ("GIT_CONFIG_COUNT", &count),
    ];
    let pair = |(number, (name, value)): (usize, &(String, String))| {
        [(format!("GIT_CONFIG_KEY_{number}"), name), (format!("GIT_CONFIG_VALUE_{number}"), value)]
            .map(|(variable, text)| (OsString::from(variable), OsString::from(text)))
    };
    places.map(owned).into_iter().chain(settings.iter().enumerate().flat_map(pair)).collect()
}

/// Removes what programs that were killed left behind. A directory in use is locked by its user.
fn sweep(home: &Path) {
    let Ok(entries) = fs::read_dir(home) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with("sealed-"))
    {
        let alive = File::open(entry.path().join("alive"));
        if alive.is_ok_and(|alive| alive.try_lock().is_ok()) {
            clear::remove(&entry.path()).ok();
        }
    }
}

fn lay_out(home: &Path, common: &Path, read: &BTreeMap<String, String>) -> Result<(PathBuf, File), GitError> {
    let name = random_name();
    // Under this name nobody sweeps it: it is not locked yet.
    let building = home.join(format!("building-{name}"));
    let alive = fill(&building, common, read).map_err(GitError::at(&building))?;
    let directory = home.join(format!("sealed-{name}"));
    fs::rename(&building, &directory).map_err(GitError::at(&directory))?;
    Ok((directory, alive))
}

fn fill(directory: &Path, common: &Path, read: &BTreeMap<String, String>) -> std::io::Result<File> {
    fs::create_dir(directory)?;
    let alive = File::create(directory.join("alive"))?;
    alive.lock()?;
    // Git would follow a link to nowhere, but not create a directory behind it.
    for directory in ["worktrees", "logs"] {
        fs::create_dir_all(common.join(directory))?;
    }
    for name in SHARED {
        symlink(common.join(name), directory.join(name))?;
    }
    fs::create_dir(directory.join("info"))?;
    // As it is now: what an agent adds to it later hides nothing of its work.
    let exclude = common.join("info/exclude");
    let lines = if exclude.is_file() { fs::read(&exclude)? } else { Vec::new() };
    fs::write(directory.join("info/exclude"), lines)?;
    fs::write(directory.join("config"), format_of(read))?;
    Ok(alive)
}

fn format_of(read: &BTreeMap<String, String>) -> String {
    FORMAT.iter().filter_map(|name| format_line(name, read.get(*name)?)).collect()
}

/// Values of these settings are single words; anything else is not carried over.
fn format_line(name: &str, value: &str) -> Option<String> {
    let (section, key) = name.split_once('.')?;
    value.chars().all(char::is_alphanumeric).then(|| format!("[{section}]\n\t{key} = {value}\n"))
}

fn random_name() -> String {
    let mut bytes = [0; 8];
    // Without randomness the name is merely easier to guess; a directory that is there already is an error.
    getrandom::fill(&mut bytes).ok();
    hex(&bytes)
}
