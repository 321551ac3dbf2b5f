//! The state of a worktree: parsed output of `git status`, unfinished operations, and changes of the user's
//! checkout while an agent runs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::time::SystemTime;

use sha2::{Digest, Sha256};
use signoff_core::ids::Commit;

use super::disk::content;
use super::repository::{GitDirs, path};
use super::{GitError, Repository};

/// Differences between a worktree, its index and `HEAD`.
#[derive(Debug, Default)]
pub(super) struct GitStatus {
    /// `None` before the first commit.
    pub(super) head: Option<Commit>,
    /// `None` if `HEAD` is detached.
    pub(super) branch: Option<String>,
    pub(super) entries: Vec<StatusEntry>,
}

/// A path that differs from `HEAD`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StatusEntry {
    pub(super) path: PathBuf,
    pub(super) kind: StatusKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatusKind {
    /// In the index or in `HEAD`.
    Tracked { staged: bool, file: FileState },
    /// With a merge conflict.
    Unmerged,
    /// A new file.
    Untracked,
    /// A repository inside the worktree.
    Nested,
}

/// A tracked file compared with the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileState {
    Unchanged,
    Changed,
    Deleted,
}

impl Repository {
    /// Runs `git status`. Does not write to the worktree's own index; a temporary index is refreshed, so that
    /// the next status need not read all files.
    pub(super) fn status(&self, dirs: GitDirs<'_>) -> Result<GitStatus, GitError> {
        let freshen = if dirs.index.is_some() { "1" } else { "0" };
        let command =
            self.isolated_git_at(dirs, "status --porcelain=v2 --branch -z --untracked-files=all --no-renames")?;
        let command = command.env("GIT_OPTIONAL_LOCKS", freshen);
        // Otherwise git would start another git in each submodule, which would use the submodule's configuration.
        let printed = command.args(["--ignore-submodules=dirty"]).read()?;
        Ok(GitStatus::parse(&printed))
    }
}

impl GitStatus {
    fn parse(printed: &[u8]) -> Self {
        let mut status = Self::default();
        for record in printed.split(|&byte| byte == 0) {
            if let Some(header) = record.strip_prefix(b"# ") {
                status.parse_header(&String::from_utf8_lossy(header));
            } else {
                status.entries.extend(StatusEntry::parse(record));
            }
        }
        status
    }

    fn parse_header(&mut self, header: &str) {
        match header.split_once(' ') {
            Some(("branch.oid", commit)) if commit != "(initial)" => self.head = Some(Commit::new(commit)),
            Some(("branch.head", name)) if name != "(detached)" => self.branch = Some(name.to_owned()),
            Some(_) | None => {}
        }
    }
}

impl StatusEntry {
    fn parse(record: &[u8]) -> Option<Self> {
        let (kind, rest) = (record.first()?, record.get(2..)?);
        // The fields before the path contain no spaces.
        let (kind, fields) = match kind {
            // The agent staged a repository of its own, which git reports as a submodule.
            b'1' if rest.starts_with(b"A") && rest.get(3) == Some(&b'S') => (StatusKind::Nested, 7),
            b'1' => (tracked_kind(rest), 7),
            b'u' => (StatusKind::Unmerged, 9),
            b'?' if rest.ends_with(b"/") => (StatusKind::Nested, 0),
            b'?' => (StatusKind::Untracked, 0),
            _ => return None,
        };
        let name = rest.splitn(fields + 1, |&byte| byte == b' ').nth(fields)?;
        Some(Self { path: path(name.strip_suffix(b"/").unwrap_or(name)), kind })
    }
}

fn tracked_kind(fields: &[u8]) -> StatusKind {
    let file = match fields.get(1) {
        Some(b'.') | None => FileState::Unchanged,
        Some(b'D') => FileState::Deleted,
        Some(_) => FileState::Changed,
    };
    StatusKind::Tracked { staged: fields.first() != Some(&b'.'), file }
}

/// An unfinished operation in a worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "kebab-case")]
pub enum Operation {
    Merge,
    CherryPick,
    Revert,
    Rebase,
    Bisect,
}

impl Operation {
    const ALL: [Self; 5] = [Self::Rebase, Self::Bisect, Self::Merge, Self::CherryPick, Self::Revert];

    /// The unfinished operation in a worktree, by its git directory.
    pub(super) fn unfinished_in(git_dir: &Path) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.state_files().iter().any(|name| git_dir.join(name).exists()))
    }

    /// The operation that uses a branch while the worktree's `HEAD` does not name it.
    fn using_branch(branch: &str, git_dir: &Path) -> Option<Self> {
        let full = format!("refs/heads/{branch}");
        let names = |(_, file, name): &(Self, &str, &str)| {
            let text = content(&git_dir.join(file)).unwrap_or_default();
            text.split(|&byte| byte == b'\n').any(|line| line == name.as_bytes())
        };
        let used = [
            (Self::Rebase, "rebase-merge/head-name", full.as_str()),
            (Self::Rebase, "rebase-apply/head-name", &full),
            (Self::Rebase, "rebase-merge/update-refs", &full),
            (Self::Bisect, "BISECT_START", branch),
        ];
        used.into_iter().find(names).map(|(operation, ..)| operation)
    }

    fn state_files(self) -> &'static [&'static str] {
        match self {
            Self::Merge => &["MERGE_HEAD"],
            Self::CherryPick => &["CHERRY_PICK_HEAD", "sequencer"],
            Self::Revert => &["REVERT_HEAD"],
            // `git am` uses `rebase-apply` too.
            Self::Rebase => &["rebase-merge", "rebase-apply"],
            Self::Bisect => &["BISECT_LOG"],
        }
    }

    /// Arguments of the git command that abandons the operation and keeps files, index and `HEAD`.
    pub(super) fn quit_args(self) -> &'static str {
        match self {
            Self::Merge => "merge --quit",
            Self::CherryPick => "cherry-pick --quit",
            Self::Revert => "revert --quit",
            Self::Rebase => "rebase --quit",
            Self::Bisect => "bisect reset",
        }
    }
}

impl Repository {
    /// Fails if the branch is being rebased or bisected in any worktree.
    pub(super) fn check_no_operation(&self, branch: &str) -> Result<(), GitError> {
        for git_dir in self.git_dirs() {
            if let Some(operation) = Operation::using_branch(branch, &git_dir) {
                let link = content(&git_dir.join("gitdir")).map(|link| path(link.trim_ascii_end()));
                let worktree = link.as_deref().and_then(Path::parent).map(Path::to_owned);
                let worktree: PathBuf = worktree.unwrap_or_else(|| self.root().to_owned());
                return Err(GitError::Unfinished { worktree, operation });
            }
        }
        Ok(())
    }
}

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
    /// Of all files that are not ignored, and the directories that contain them.
    fingerprint: FilesFingerprint,
}

/// Paths in a worktree, with a hash that changes with any of them, with `HEAD`, with its branch and with the index.
#[derive(Debug)]
pub(super) struct FilesFingerprint {
    paths: BTreeSet<PathBuf>,
    hash: u64,
}

impl FilesFingerprint {
    pub(super) fn new(repository: &Repository, dirs: GitDirs<'_>, paths: BTreeSet<PathBuf>) -> Self {
        let hash = Self::hash(repository, dirs, &paths);
        Self { paths, hash }
    }

    pub(super) fn is_current(&self, repository: &Repository, dirs: GitDirs<'_>) -> bool {
        Self::hash(repository, dirs, &self.paths) == self.hash
    }

    fn hash(repository: &Repository, dirs: GitDirs<'_>, paths: &BTreeSet<PathBuf>) -> u64 {
        let mut hasher = DefaultHasher::new();
        let head = fs::read_to_string(dirs.git_dir.join("HEAD")).unwrap_or_default();
        let branch = head.trim_end().strip_prefix("ref: ").map(|name| repository.common().join(name));
        branch.and_then(|branch| fs::read(branch).ok()).hash(&mut hasher);
        head.hash(&mut hasher);
        let refs = ["packed-refs", "reftable/tables.list"].map(|name| repository.common().join(name));
        let own = refs.into_iter().chain([dirs.git_dir.join("index")]);
        for path in own.chain(paths.iter().map(|path| dirs.work_tree.join(path))) {
            FileStamp::read(&path).hash(&mut hasher);
        }
        hasher.finish()
    }
}

impl Repository {
    /// The state of the user's checkout, without ignored files.
    ///
    /// Runs git only if a file, a directory or a ref differs from the last call. Agents start and end often,
    /// and the checkout rarely changes.
    pub fn checkout_state(&self) -> Result<CheckoutState, GitError> {
        let mut cached = self.inner.cached_state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = cached.as_ref().filter(|last| last.fingerprint.is_current(self, self.checkout_dirs())) {
            return Ok(last.state.clone());
        }
        let files = self.isolated_git("ls-files -z --full-name --cached --others --exclude-standard")?.read_paths()?;
        let paths = files.iter().flat_map(|file| file.ancestors()).map(Path::to_owned).collect();
        // Computed first, so that a change during the scan shows up in the next call.
        let fingerprint = FilesFingerprint::new(self, self.checkout_dirs(), paths);
        let state = self.read_checkout_state()?;
        *cached = Some(CachedCheckoutState { state: state.clone(), fingerprint });
        Ok(state)
    }

    fn read_checkout_state(&self) -> Result<CheckoutState, GitError> {
        let status = self.status(self.checkout_dirs())?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_may_contain_any_byte() {
        let printed = b"# branch.oid 12ab\0# branch.head l\xc3\xb6p\0\
        1 .M N... 100644 100644 100644 aa aa a b\n c\0\
        1 A. N... 000000 100644 100644 00 aa \"q\"\0\
        u UU N... 100644 100644 100644 100644 aa bb cc both\0\
        ? \xff\xfe\0? ne st/\0";
        let status = GitStatus::parse(printed);
        assert_eq!((status.head, status.branch.as_deref()), (Some(Commit::from("12ab")), Some("l\u{f6}p")));
        let entry = |name: &[u8], kind| StatusEntry { path: path(name), kind };
        assert_eq!(
            status.entries,
            [
                entry(b"a b\n c", StatusKind::Tracked { staged: false, file: FileState::Changed }),
                entry(b"\"q\"", StatusKind::Tracked { staged: true, file: FileState::Unchanged }),
                entry(b"both", StatusKind::Unmerged),
                entry(b"\xff\xfe", StatusKind::Untracked),
                entry(b"ne st", StatusKind::Nested),
            ]
        );
    }

    #[test]
    fn before_the_first_commit_there_is_no_head() {
        let status = GitStatus::parse(b"# branch.oid (initial)\0# branch.head main\0");
        assert_eq!((status.head, status.branch.as_deref()), (None, Some("main")));
    }
}
