//! The directory of one attempt: what it was told, what it said, how it ended.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use signoff_core::redact::Secrets;

use super::table::Identity;
use super::{Ended, Launch};
use crate::draft::{self, Care};

/// So much of what an agent says about its usage is read.
pub(crate) const USAGE: u64 = 64 * 1024;

/// Where one attempt keeps its files. The caller makes the directory and writes [`AttemptDir::prompt`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptDir(PathBuf);

/// What the keeper is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Order {
    #[serde(flatten)]
    pub launch: Launch,
    /// The directory of links to the attempts that have a keeper.
    pub live: PathBuf,
    /// The names of variables that the keeper has, to know what nobody may read, and the agent has not.
    #[serde(default)]
    pub withheld: Vec<String>,
    /// The person's home, where more of that is.
    #[serde(default)]
    pub person: PathBuf,
}

/// Who keeps the attempt. Written before the agent is started, and again after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    /// Process numbers and start times mean nothing after a reboot.
    pub boot: String,
    pub keeper: Option<Identity>,
    pub agent: Option<Identity>,
    /// The attempt's directory as the agent's environment has it.
    pub cookie: PathBuf,
    /// The link in the directory of live attempts.
    pub link: PathBuf,
}

impl Order {
    /// As it may be kept, if a key is among its arguments.
    pub fn without(&self, secrets: &Secrets) -> Option<Self> {
        let arguments: Vec<_> = self.launch.arguments.iter().map(|word| secrets.redact_text(word)).collect();
        (arguments != self.launch.arguments)
            .then(|| Self { launch: Launch { arguments, ..self.launch.clone() }, ..self.clone() })
    }
}

impl AttemptDir {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        // Fails only where there is no working directory; then a relative path is of no use to anybody.
        Self(std::path::absolute(&path).unwrap_or(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// What the agent gets on stdin.
    pub fn prompt(&self) -> PathBuf {
        self.0.join("prompt")
    }

    /// All the agent said.
    pub fn stdout(&self) -> PathBuf {
        self.0.join("stdout")
    }

    pub fn stderr(&self) -> PathBuf {
        self.0.join("stderr")
    }

    /// Where the agent may leave its own account of what it used.
    pub fn usage(&self) -> PathBuf {
        self.usage_directory().join("usage.json")
    }

    /// Redacts secrets in the usage file and in the list of pushes, both of which the agent can write. Cuts both files to
    /// the length that signoff reads, and removes all other files in their directory.
    pub(crate) fn tidy_usage(&self, secrets: &Secrets) {
        let kept = [self.usage(), self.pushes()];
        self.clear_beside(&kept);
        kept.into_iter().for_each(|path| tidy(&path, secrets));
    }

    /// What cannot be removed is no reason to fail. Links are removed, not what they lead to.
    fn clear_beside(&self, kept: &[PathBuf]) {
        for entry in fs::read_dir(self.usage_directory()).into_iter().flatten().flatten() {
            let (path, kind) = (entry.path(), entry.file_type());
            let is = |right: fn(&fs::FileType) -> bool| kind.as_ref().is_ok_and(right);
            if kept.contains(&path) && is(fs::FileType::is_file) {
                continue;
            }
            let removed =
                if is(fs::FileType::is_dir) { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.ok();
        }
    }

    /// A directory for that file alone: who writes a file anew needs the right to make one beside it.
    pub fn usage_directory(&self) -> PathBuf {
        self.0.join("usage")
    }

    /// The addresses that it tried to push to, a line each.
    pub fn pushes(&self) -> PathBuf {
        self.usage_directory().join("pushes")
    }

    /// A home for the agent alone.
    pub fn home(&self) -> PathBuf {
        self.0.join("home")
    }

    /// For what it needs for a moment.
    pub fn temporary(&self) -> PathBuf {
        self.0.join("tmp")
    }

    /// Its final message, where stdout holds more than that.
    pub fn message(&self) -> PathBuf {
        self.0.join("message")
    }

    /// The other ways to join the blocks of its final message, as a JSON array.
    pub fn message_others(&self) -> PathBuf {
        self.0.join("message-others.json")
    }

    /// Its own account of itself, as JSON.
    pub fn heard(&self) -> PathBuf {
        self.0.join("heard.json")
    }

    /// How it ended, an [`Ended`] as JSON.
    pub fn result(&self) -> PathBuf {
        self.0.join("result.json")
    }

    /// What the agent reported with a tool, as JSON.
    pub fn report(&self) -> PathBuf {
        self.0.join("report.json")
    }

    /// What was run, as JSON, without its environment.
    pub fn launch(&self) -> PathBuf {
        self.0.join("launch.json")
    }

    /// The processes, as JSON.
    pub fn keeper(&self) -> PathBuf {
        self.0.join("keeper.json")
    }

    fn abandoned(&self) -> PathBuf {
        self.0.join("abandoned")
    }

    fn lock_file(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// How it ended, if that was written down.
    pub fn ended(&self) -> Option<Ended> {
        read_json(&self.result()).ok()
    }

    /// Whether all is there that the agent said. After a power cut the account of its end may be on disk and
    /// the transcript not.
    pub(super) fn holds_all_of(&self, ended: &Ended) -> bool {
        length(&self.stdout()) == ended.stdout_bytes && length(&self.stderr()) == ended.stderr_bytes
    }

    pub(super) fn write_ended(&self, ended: &Ended) -> io::Result<()> {
        write_json(&self.result(), ended)
    }

    pub(super) fn order(&self) -> io::Result<Order> {
        read_json(&self.launch())
    }

    pub(super) fn write_order(&self, order: &Order) -> io::Result<()> {
        write_json(&self.launch(), order)
    }

    pub(super) fn kept(&self) -> Option<Kept> {
        read_json(&self.keeper()).ok()
    }

    pub(super) fn write_kept(&self, kept: &Kept) -> io::Result<()> {
        write_json(&self.keeper(), kept)
    }

    /// From now on no keeper starts anything here.
    pub(super) fn abandon(&self) -> io::Result<()> {
        File::create(self.abandoned()).map(drop)
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.abandoned().exists()
    }

    /// Takes the lock that a keeper holds as long as it lives.
    pub(super) fn lock(&self) -> io::Result<File> {
        let file = private(OpenOptions::new().write(true).create(true).truncate(false), &self.lock_file())?;
        file.lock()?;
        Ok(file)
    }

    /// The lock, or none if a keeper has it. An error of kind `NotFound` if there never was a keeper.
    pub(super) fn try_lock(&self) -> io::Result<Option<File>> {
        let file = OpenOptions::new().write(true).open(self.lock_file())?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// The length of a file; of one that is not there, 0.
pub(super) fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |file| file.len())
}

/// Opens a file that only its owner may read: transcripts hold whatever the agent saw.
pub(crate) fn private(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.mode(0o600).open(path)
}

fn read_json<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    serde_json::from_slice(&fs::read(path)?).map_err(io::Error::from)
}

/// Writes the whole file or nothing.
fn write_json<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    draft::write(path, &serde_json::to_vec(value)?, Care::Private)
}

/// Redacts secrets in a file and cuts it to the length that signoff reads.
fn tidy(path: &Path, secrets: &Secrets) {
    let is_file = path.symlink_metadata().is_ok_and(|found| found.is_file());
    let Some(mut file) = is_file.then(|| File::open(path).ok()).flatten() else { return };
    let mut text = Vec::new();
    let read = file.by_ref().take(USAGE).read_to_end(&mut text);
    if read.is_err() || secrets.are_in(&text) || length(path) > USAGE {
        // A file that cannot be written anew must not stay as it is.
        draft::write(path, &secrets.redact(&text), Care::Private).or_else(|_| fs::remove_file(path)).ok();
    }
}
