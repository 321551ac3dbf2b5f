//! The directory of one attempt: its input, output and result.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use signoff_core::redact::Secrets;

use super::system::ProcessIdentity;
use super::{ProcessLaunch, ProcessResult};
use crate::atomic_file::{self, WriteMode};

/// Maximum number of bytes read from an agent's usage file.
pub(crate) const MAX_USAGE_FILE: u64 = 64 * 1024;

/// Paths of an attempt's files. The caller creates the directory and writes [`AttemptDir::prompt`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptDir(PathBuf);

/// The supervisor's input.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SupervisorSpec {
    #[serde(flatten)]
    pub launch: ProcessLaunch,
    /// The directory of links to the supervised attempts.
    pub live: PathBuf,
    /// Names of variables that the supervisor gets for redaction and the agent does not get.
    #[serde(default)]
    pub withheld: Vec<String>,
    /// The user's home, which contains more secrets.
    #[serde(default, rename = "person")]
    pub user_home: PathBuf,
}

/// The processes of an attempt. Written before the agent is started, and again afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SupervisorRecord {
    /// Boot id, because process ids and start times are void after a reboot.
    pub boot: String,
    #[serde(rename = "keeper")]
    pub supervisor: Option<ProcessIdentity>,
    pub agent: Option<ProcessIdentity>,
    /// The attempt's directory as in the agent's environment.
    pub cookie: PathBuf,
    /// The link in the directory of supervised attempts.
    pub link: PathBuf,
}

impl SupervisorSpec {
    /// A redacted copy, if an argument contains a secret.
    pub fn redacted(&self, secrets: &Secrets) -> Option<Self> {
        let arguments: Vec<_> = self.launch.arguments.iter().map(|word| secrets.redact_text(word)).collect();
        (arguments != self.launch.arguments)
            .then(|| Self { launch: ProcessLaunch { arguments, ..self.launch.clone() }, ..self.clone() })
    }
}

/// Methods that return the path of a file in the directory.
macro_rules! files {
    ($($(#[$about:meta])* $visibility:vis $name:ident = $file:literal;)*) => { $(
        $(#[$about])*
        $visibility fn $name(&self) -> PathBuf {
            self.0.join($file)
        }
    )* };
}

impl AttemptDir {
    files! {
        /// The agent's stdin.
        pub prompt = "prompt";
        /// The agent's whole stdout.
        pub stdout = "stdout";
        pub stderr = "stderr";
        /// A directory for the usage file alone, because replacing a file requires write access to its directory.
        pub usage_directory = "usage";
        /// The agent's own home directory.
        pub home = "home";
        /// The agent's directory for temporary files.
        pub temporary = "tmp";
        /// The final message, if stdout contains more than that.
        pub message = "message";
        /// The other ways to join the blocks of its final message, as a JSON array.
        pub message_alternatives = "message-others.json";
        /// The parsed summary of its output, as JSON.
        pub summary = "heard.json";
        /// The result, a `ProcessResult` as JSON.
        pub result = "result.json";
        /// The agent's report by tool call, as JSON.
        pub report = "report.json";
        /// The command line, as JSON, without its environment.
        pub launch = "launch.json";
        /// The processes, as JSON.
        pub supervisor_record = "keeper.json";
        abandoned = "abandoned";
        lock_file = "lock";
    }

    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        // Fails only without a working directory; then a relative path is useless anyway.
        Self(std::path::absolute(&path).unwrap_or(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The file in which the agent may report its usage.
    pub fn usage(&self) -> PathBuf {
        self.usage_directory().join("usage.json")
    }

    /// Redacts secrets in the usage file and in the list of pushes, both of which the agent can write. Cuts
    /// both files to the length that signoff reads, and removes all other files in their directory.
    pub(crate) fn redact_usage(&self, secrets: &Secrets) {
        let kept = [self.usage(), self.pushes()];
        self.remove_others(&kept);
        kept.into_iter().for_each(|path| redact_file(&path, secrets));
    }

    /// Removes all other files. Ignores errors. Removes links, not their targets.
    fn remove_others(&self, kept: &[PathBuf]) {
        for entry in fs::read_dir(self.usage_directory()).into_iter().flatten().flatten() {
            let (path, kind) = (entry.path(), entry.file_type());
            let is = |right: fn(&fs::FileType) -> bool| kind.as_ref().is_ok_and(right);
            if kept.contains(&path) && is(fs::FileType::is_file) {
                continue;
            }
            let removed = if is(fs::FileType::is_dir) { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.ok();
        }
    }

    /// The addresses the agent tried to push to, one per line.
    pub fn pushes(&self) -> PathBuf {
        self.usage_directory().join("pushes")
    }

    /// The result, if it was written.
    pub fn read_result(&self) -> Option<ProcessResult> {
        atomic_file::read_json(&self.result()).ok()
    }

    /// Whether the output files are complete. After a power failure the result may be on disk and the output not.
    pub(super) fn has_complete_output(&self, ended: &ProcessResult) -> bool {
        file_len(&self.stdout()) == ended.stdout_bytes && file_len(&self.stderr()) == ended.stderr_bytes
    }

    pub(super) fn read_record(&self) -> Option<SupervisorRecord> {
        atomic_file::read_json(&self.supervisor_record()).ok()
    }

    /// Prevents any supervisor from starting something here from now on.
    pub(super) fn abandon(&self) -> io::Result<()> {
        File::create(self.abandoned()).map(drop)
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.abandoned().exists()
    }

    /// Takes the lock that a supervisor holds as long as it lives.
    pub(super) fn lock(&self) -> io::Result<File> {
        let file = open_private(OpenOptions::new().write(true).create(true).truncate(false), &self.lock_file())?;
        file.lock()?;
        Ok(file)
    }

    /// The lock, or `None` if a supervisor holds it. Fails with `NotFound` if there never was a supervisor.
    pub(super) fn try_lock(&self) -> io::Result<Option<File>> {
        let file = OpenOptions::new().write(true).open(self.lock_file())?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// The length of a file, or 0 if it does not exist.
pub(crate) fn file_len(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |file| file.len())
}

/// Opens a file that only its owner may read, because output may contain anything the agent saw.
pub(crate) fn open_private(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.mode(0o600).open(path)
}

/// Creates a directory, with its parents, that only its owner may read. It may exist.
pub(crate) fn create_private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Redacts secrets in a file and cuts it to the length that signoff reads.
fn redact_file(path: &Path, secrets: &Secrets) {
    let is_file = path.symlink_metadata().is_ok_and(|found| found.is_file());
    let Some(mut file) = is_file.then(|| File::open(path).ok()).flatten() else { return };
    let mut text = Vec::new();
    let read = file.by_ref().take(MAX_USAGE_FILE).read_to_end(&mut text);
    if read.is_err() || secrets.occur_in(&text) || file_len(path) > MAX_USAGE_FILE {
        // A file that cannot be rewritten must not stay unredacted.
        atomic_file::write(path, &secrets.redact(&text), WriteMode::Private).or_else(|_| fs::remove_file(path)).ok();
    }
}
