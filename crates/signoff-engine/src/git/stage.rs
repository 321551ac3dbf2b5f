//! Bringing an index to what lies in a worktree: everything but what is ignored, ours, or somebody's secret.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, FileTimes};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::disk::content;
use super::repository::{Place, path};
use super::status::{Entry, Kind, Status};
use super::{GitError, Repository, index};

/// The program's own directory. It is never committed.
const OURS: &str = ".signoff";

/// In a worktree's git directory: which files were copied in, each with a NUL at its end.
pub(super) const COPIED: &str = "signoff-copied";

/// An index of our own beside the worktree's, gone when this value is.
#[derive(Debug)]
pub(super) struct ScratchIndex {
    pub(super) path: PathBuf,
}

impl Drop for ScratchIndex {
    fn drop(&mut self) {
        fs::remove_file(&self.path).ok();
    }
}

/// What in a worktree is not to be committed.
#[derive(Debug)]
pub(super) struct KeptOut {
    paths: Vec<PathBuf>,
}

impl KeptOut {
    pub(super) fn of(git_dir: &Path) -> Self {
        let copied = content(&git_dir.join(COPIED)).unwrap_or_default();
        let copied = copied.split(|&byte| byte == 0).filter(|name| !name.is_empty()).map(path);
        Self { paths: std::iter::once(PathBuf::from(OURS)).chain(copied).collect() }
    }

    /// For who wants to see every file.
    pub(super) fn nothing() -> Self {
        Self { paths: Vec::new() }
    }

    /// Keeps these out as well.
    pub(super) fn and(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.paths.extend(paths);
        self
    }

    pub(super) fn holds(&self, path: &Path) -> bool {
        self.paths.iter().any(|kept| path.starts_with(kept))
    }

    /// Whether git knows every file that changed, and none of them is to be kept out.
    pub(super) fn knows_all(&self, status: &Status) -> bool {
        let known = |entry: &Entry| matches!(entry.kind, Kind::Tracked { .. }) && !self.holds(&entry.path);
        status.entries.iter().all(known)
    }

    /// Whether anything is there that a commit should hold.
    pub(super) fn leaves_work(&self, status: &Status) -> bool {
        status.entries.iter().any(|entry| !self.holds(&entry.path))
    }
}

impl Repository {
    /// A copy of the index at `place` to work with. It keeps what git knows of the files, so that staging costs
    /// no more than looking at them.
    pub(super) fn scratch_index(&self, git_dir: &Path) -> Result<ScratchIndex, GitError> {
        let scratch = ScratchIndex { path: self.seal()?.scratch() };
        let index = git_dir.join("index");
        if !index.is_file() || index.is_symlink() {
            return Ok(scratch);
        }
        match copy_index(&index, &scratch.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(GitError::at(&index)(error)),
            Ok(()) | Err(_) => Ok(scratch),
        }
    }

    /// Stages everything at `place` that is not as `HEAD` has it, less what is kept out.
    pub(super) fn stage(
        &self,
        place: Place<'_>,
        status: &Status,
        kept_out: &KeptOut,
    ) -> Result<(), GitError> {
        self.unstage(place, status, kept_out)?;
        let nested: Vec<&Path> = nested(status).filter(|path| !kept_out.holds(path)).collect();
        // Git refuses to be told to leave out what it would leave out anyway, so only what it listed is named.
        let listed = |path: &&PathBuf| status.entries.iter().any(|entry| entry.path.starts_with(path));
        let known = self.repositories_within(place)?;
        let left_out = kept_out.paths.iter().filter(listed).chain(&known).map(PathBuf::as_path);
        let left_out = left_out.chain(nested.iter().copied());
        let left_out: Vec<OsString> = left_out.map(|path| pathspec("exclude,top,literal", path)).collect();
        self.sealed(place)?.args(["add", "-A", "--", "."]).args(left_out).read()?;
        let moved =
            |entry: &&Entry| matches!(entry.kind, Kind::Tracked { .. }) && known.contains(&entry.path);
        let moved = status.entries.iter().filter(moved).filter(|entry| !kept_out.holds(&entry.path));
        let moved = moved.map(|entry| entry.path.clone()).collect();
        self.stage_nested(place, &nested, moved)
    }

    /// Repositories that git knows within a worktree. To add one, git starts another git in it, which does what is
    /// configured there.
    fn repositories_within(&self, place: Place<'_>) -> Result<Vec<PathBuf>, GitError> {
        let own = place.git_dir.join("index");
        let bytes = content(place.index.unwrap_or(&own)).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(Vec::new());
        }
        if let Some(known) = index::repositories(&bytes, self.seal()?.id_bytes()) {
            return Ok(known);
        }
        let listed = self.sealed(place)?.args(["ls-files", "--stage", "--full-name", "-z"]).read()?;
        let known = listed.split(|&byte| byte == 0).filter(|entry| entry.starts_with(b"160000 "));
        Ok(known.filter_map(|entry| entry.splitn(2, |&byte| byte == b'\t').nth(1)).map(path).collect())
    }

    /// Takes out what is kept out although the agent staged it.
    fn unstage(&self, place: Place<'_>, status: &Status, kept_out: &KeptOut) -> Result<(), GitError> {
        let staged = |entry: &&Entry| matches!(entry.kind, Kind::Tracked { staged: true, .. });
        let staged = status.entries.iter().filter(staged).filter(|entry| kept_out.holds(&entry.path));
        let paths: Vec<OsString> = staged.map(|entry| pathspec("top,literal", &entry.path)).collect();
        if paths.is_empty() {
            return Ok(());
        }
        self.sealed(place)?.args(["reset", "-q", "--"]).args(paths).read().map(drop)
    }

    /// Stages the files of repositories an agent made inside the worktree.
    ///
    /// By itself git would record such a repository as a mere link to a commit nobody else has, and what is in it
    /// would be lost.
    /// Those that git knows, and that are at another commit, are named as they are.
    fn stage_nested(&self, place: Place<'_>, nested: &[&Path], moved: Vec<PathBuf>) -> Result<(), GitError> {
        let mut files = Vec::new();
        for path in moved {
            files.extend(path.as_os_str().as_bytes().iter().chain(&[0]));
        }
        for repository in nested {
            self.list_nested(place, repository, &mut files)?;
        }
        if files.is_empty() {
            return Ok(());
        }
        let asked = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
        self.sealed(place)?.args(asked).input(files).read().map(drop)
    }

    fn list_nested(&self, place: Place<'_>, nested: &Path, files: &mut Vec<u8>) -> Result<(), GitError> {
        let empty = self.seal()?.scratch();
        let inside = place.work_tree.join(nested);
        let within = Place { work_tree: &inside, index: Some(&empty), ..place };
        let asked = ["ls-files", "--others", "--exclude-standard", "-z"];
        let listed = self.sealed(within)?.args(asked).read()?;
        for name in listed.split(|&byte| byte == 0).filter(|name| !name.is_empty()) {
            let file = nested.join(path(name));
            match name.strip_suffix(b"/") {
                Some(deeper) => self.list_nested(place, &nested.join(path(deeper)), files)?,
                None => files.extend(file.as_os_str().as_bytes().iter().chain(&[0])),
            }
        }
        Ok(())
    }
}

/// Copies an index with its time.
///
/// A file as old as the index may have changed right after it was looked at, and git looks again. With a newer
/// time on the copy it would not.
pub(super) fn copy_index(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    let times = FileTimes::new().set_modified(fs::metadata(from)?.modified()?);
    File::options().write(true).open(to)?.set_times(times)
}

fn nested(status: &Status) -> impl Iterator<Item = &Path> {
    status.entries.iter().filter(|entry| entry.kind == Kind::Nested).map(|entry| entry.path.as_path())
}

pub(super) fn pathspec(magic: &str, path: &Path) -> OsString {
    let mut spec = OsString::from(format!(":({magic})"));
    spec.push(OsStr::new(path));
    spec
}
