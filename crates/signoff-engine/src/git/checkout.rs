//! The state of the user's checkout, to detect changes made while an agent runs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::time::SystemTime;

use sha2::{Digest, Sha256};
use signoff_core::ids::Commit;

use super::repository::{GitPlace, path, split_nul};
use super::status::StatusKind;
use super::{GitError, Repository};

/// The checkout's `HEAD` and every file that differs from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckoutState {
    head: Option<Commit>,
    branch: Option<String>,
    files: BTreeMap<PathBuf, (StatusKind, FileTrace)>,
}

/// Size and modification time of a file.
type FileTrace = Option<(u64, Option<SystemTime>)>;

/// A cached state of the checkout, with a fingerprint that shows whether it is still current.
#[derive(Debug)]
pub(super) struct CachedCheckoutState {
    state: CheckoutState,
    /// All files that are not ignored, and the directories that contain them.
    paths: BTreeSet<PathBuf>,
    fingerprint: u64,
}

impl Repository {
    /// The state of the user's checkout, without ignored files.
    ///
    /// Runs git only if a file, a directory or a ref differs from the last call. Agents start and end often,
    /// and the checkout rarely changes.
    pub fn checkout_state(&self) -> Result<CheckoutState, GitError> {
        let mut cached = self.cached_state().lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) =
            cached.as_ref().filter(|last| last.fingerprint == self.fingerprint(self.checkout_place(), &last.paths))
        {
            return Ok(last.state.clone());
        }
        let paths = self.checkout_paths()?;
        // Computed first, so that a change during the scan shows up in the next call.
        let footprint = self.fingerprint(self.checkout_place(), &paths);
        let state = self.read_checkout_state()?;
        *cached = Some(CachedCheckoutState { state: state.clone(), paths, fingerprint: footprint });
        Ok(state)
    }

    fn checkout_paths(&self) -> Result<BTreeSet<PathBuf>, GitError> {
        let asked = ["ls-files", "-z", "--full-name", "--cached", "--others", "--exclude-standard"];
        let listed = self.isolated_git(asked)?.read()?;
        let files = split_nul(&listed).map(path);
        Ok(files.flat_map(|file| file.ancestors().map(Path::to_owned).collect::<Vec<_>>()).collect())
    }

    /// A hash that changes with any of these files, with `HEAD`, with its branch and with the index.
    pub(super) fn fingerprint(&self, place: GitPlace<'_>, paths: &BTreeSet<PathBuf>) -> u64 {
        let mut hasher = DefaultHasher::new();
        let head = fs::read_to_string(place.git_dir.join("HEAD")).unwrap_or_default();
        let branch = head.trim_end().strip_prefix("ref: ").map(|name| self.common().join(name));
        branch.and_then(|branch| fs::read(branch).ok()).hash(&mut hasher);
        head.hash(&mut hasher);
        let refs = ["packed-refs", "reftable/tables.list"].map(|name| self.common().join(name));
        let own = refs.into_iter().chain([place.git_dir.join("index")]);
        for path in own.chain(paths.iter().map(|path| place.work_tree.join(path))) {
            FileStamp::read(&path).hash(&mut hasher);
        }
        hasher.finish()
    }

    fn read_checkout_state(&self) -> Result<CheckoutState, GitError> {
        let status = self.status(self.checkout_place())?;
        let files = status.entries.into_iter().map(|entry| {
            let trace = file_trace(&self.checkout().join(&entry.path));
            (entry.path, (entry.kind, trace))
        });
        Ok(CheckoutState { head: status.head, branch: status.branch, files: files.collect() })
    }
}

impl CheckoutState {
    /// Describes the differences to an earlier state.
    pub fn changes_since(&self, before: &Self) -> Vec<String> {
        let mut changes = Vec::new();
        if self.branch != before.branch {
            let branch = self.branch.as_deref().unwrap_or("no branch");
            changes.push(format!("it is on {branch}"));
        }
        if self.head != before.head {
            let head = self.head.as_ref().map_or("nothing", Commit::as_str);
            changes.push(format!("it is at {head}"));
        }
        let both = self.files.keys().chain(before.files.keys().filter(|path| !self.files.contains_key(*path)));
        let changed = both.filter(|path| self.files.get(*path) != before.files.get(*path));
        changes.extend(changed.map(|path| path.display().to_string()));
        changes
    }
}

/// Size and time of a file. `None` for directories, because their times change with their entries.
fn file_trace(path: &Path) -> FileTrace {
    let found = fs::symlink_metadata(path).ok().filter(|found| !found.is_dir())?;
    Some((found.len(), found.modified().ok()))
}

/// Changes whenever a file is written, replaced, or its mode changes. Programs cannot set the ctime back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FileStamp {
    inode: u64,
    length: u64,
    mode: u32,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    /// The stamp of the entry at `path`. Does not follow links.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let found = fs::symlink_metadata(path).ok()?;
        Some(Self {
            inode: found.ino(),
            length: found.len(),
            mode: found.mode(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }
}

/// Maximum number of directories. With more, a git process is faster.
const MAX_DIRECTORIES: usize = 4000;

/// All directories below `top`, as relative paths. `None` if there are too many.
pub(super) fn directories(top: &Path) -> Option<Vec<PathBuf>> {
    let (mut found, mut next) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(directory) = next.pop() {
        let entries = fs::read_dir(top.join(&directory)).ok()?.flatten();
        let inner = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        next.extend(inner.map(|entry| directory.join(entry.file_name())));
        found.push(directory);
        if found.len() + next.len() > MAX_DIRECTORIES {
            return None;
        }
    }
    Some(found)
}

/// Cache of hashes of files that rarely change.
#[derive(Debug, Default)]
pub(super) struct FileHashCache(HashMap<PathBuf, (FileStamp, [u8; 32])>);

impl FileHashCache {
    pub(super) fn get_or_compute(&mut self, file: PathBuf) -> Option<[u8; 32]> {
        let stamp = FileStamp::read(&file)?;
        if let Some((_, hash)) = self.0.get(&file).filter(|(known, _)| *known == stamp) {
            return Some(*hash);
        }
        let is_file = fs::metadata(&file).is_ok_and(|found| found.is_file());
        let hash = Sha256::digest(is_file.then(|| fs::read(&file).ok()).flatten()?).into();
        // A link's target can change without the link.
        if !file.is_symlink() {
            self.0.insert(file, (stamp, hash));
        }
        Some(hash)
    }
}
