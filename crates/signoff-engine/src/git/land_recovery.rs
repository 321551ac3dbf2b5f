//! Finishes a checkout update that was interrupted because signoff was killed.
//!
//! Every file that the landing changed is compared, in the index and on disk. A file in its old version is updated.
//! A file that the user changed stays and is reported, because committing it would revert what landed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::disk::{content, is_directory, remove_empty_parents, remove_if_exists, write_atomic};
use super::land_checkout::{CheckoutUpdate, IndexLock, blocking_path};
use super::repository::{GitDirs, join_nul, path};
use super::{GitError, Repository};
use crate::atomic_file::{self, WriteMode};

/// A file in git's index: its mode and its blob id.
type Blob = Vec<u8>;

/// Mode of a submodule, whose files are not updated.
const SUBMODULE: &[u8] = b"160000 ";

/// A file that the landing changed.
#[derive(Debug)]
struct LandedFile {
    path: PathBuf,
    before: Option<Blob>,
    after: Option<Blob>,
}

/// The version of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LandedVersion {
    Before,
    After,
    /// Changed by the user.
    UserChange,
}

/// The files to update and the files to leave.
#[derive(Debug, Default)]
struct UpdatePlan<'a> {
    index: Vec<&'a LandedFile>,
    files: Vec<&'a LandedFile>,
    /// Files that the user changed.
    left: BTreeSet<&'a Path>,
}

impl Repository {
    /// Finishes an interrupted checkout update. The caller must hold the landing lock.
    pub fn finish_checkout_update(&self) -> Result<(), GitError> {
        self.record_left_files(self.finish_update())
    }

    /// Like `finish_checkout_update`, unless a landing is in progress. Does not record what was reported to the
    /// user.
    pub fn try_finish_checkout_update(&self) -> Result<(), GitError> {
        if !self.update_record_path().exists() {
            return Ok(());
        }
        let lock = self.landing_lock();
        let file = atomic_file::open_lock(&lock).map_err(GitError::at(&lock))?;
        if file.try_lock().is_ok() { self.finish_update() } else { Ok(()) }
    }

    fn finish_update(&self) -> Result<(), GitError> {
        let Some(record) = content(&self.update_record_path()) else { return Ok(()) };
        if let Ok(update) = serde_json::from_slice::<CheckoutUpdate>(&record)
            && update.checkout().is_dir()
            && let Ok(git_dir) = self.git_dir_of(update.checkout())
        {
            let dirs = GitDirs::new(&git_dir, update.checkout());
            IndexLock::remove_stale(&git_dir)?;
            if self.is_at_landed_commit(dirs, &update)? {
                let lock = IndexLock::acquire(self.git(), &git_dir)?;
                self.update_checkout(dirs, &update, &lock)?;
            }
        }
        remove_if_exists(&self.left_files_path())?;
        remove_if_exists(&self.update_record_path())
    }

    /// Whether the checkout is at the landed commit. Otherwise the branch did not move, or the user moved it again.
    fn is_at_landed_commit(&self, dirs: GitDirs<'_>, update: &CheckoutUpdate) -> Result<bool, GitError> {
        let head = self.isolated_git_at(dirs, "rev-parse -q --verify HEAD")?.run()?;
        Ok(head.stdout.trim_ascii_end() == update.to.as_str().as_bytes())
    }

    /// Updates the files in their old version. Files that the user changed stay, and are an error until the
    /// user changes them again.
    pub(super) fn update_checkout(
        &self,
        dirs: GitDirs<'_>,
        update: &CheckoutUpdate,
        lock: &IndexLock,
    ) -> Result<(), GitError> {
        let changed = self.landed_files(dirs, update)?;
        let index = self.scratch_index(dirs.git_dir)?;
        let scratch = dirs.with_index(&index);
        let mut plan = self.plan(scratch, &changed)?;
        self.update_index(scratch, plan.index.iter().map(|file| (&file.path, file.after.as_ref())))?;
        self.write_files(scratch, &mut plan)?;
        lock.replace_index(&index.path)?;
        let files: Vec<PathBuf> = plan.left.into_iter().map(Path::to_owned).collect();
        let reported = content(&self.left_files_path());
        if files.is_empty()
            || reported.is_some_and(|recorded| recorded != format_stamps(dirs.work_tree, &files).as_bytes())
        {
            return Ok(());
        }
        let (from, to) = (update.from.clone(), update.to.clone());
        Err(GitError::CheckoutBehind { checkout: dirs.work_tree.to_owned(), from, to, files })
    }

    fn landed_files(&self, dirs: GitDirs<'_>, update: &CheckoutUpdate) -> Result<Vec<LandedFile>, GitError> {
        let command = self.isolated_git_at(dirs, "diff-tree -r -z --raw --no-abbrev --no-renames")?;
        let printed = command.args([update.from.as_str(), update.to.as_str()]).read()?;
        let fields: Vec<&[u8]> = printed.split(|&byte| byte == 0).collect();
        let changed = |pair: &[&[u8]]| {
            let [about, name] = pair else { return None };
            let columns: Vec<&[u8]> = about.strip_prefix(b":")?.split(|&byte| byte == b' ').collect();
            let [before, after, old, new, _] = *columns.as_slice() else { return None };
            let blob = |mode: &[u8], id: &[u8]| (mode != b"000000").then(|| [mode, b" ", id].concat());
            Some(LandedFile { path: path(name), before: blob(before, old), after: blob(after, new) })
        };
        Ok(fields.chunks_exact(2).filter_map(changed).collect())
    }

    fn plan<'a>(&self, dirs: GitDirs<'_>, changed: &'a [LandedFile]) -> Result<UpdatePlan<'a>, GitError> {
        let staged = self.staged(dirs)?;
        let before = self.differing(dirs, changed.iter().map(|file| (&file.path, file.before.as_ref())))?;
        let after = self.differing(dirs, changed.iter().map(|file| (&file.path, file.after.as_ref())))?;
        let staged_versions = changed.iter().map(|file| (&file.path, staged.get(&file.path)));
        let not_as_staged = self.differing(dirs, staged_versions)?;
        let is = |blob: &Option<Blob>, differing: &BTreeSet<PathBuf>, file: &Path| match blob {
            Some(_) => !differing.contains(file),
            None => !is_file_or_link(dirs.work_tree, file),
        };
        let mut plan = UpdatePlan::default();
        for file in changed {
            let on_disk = version(is(&file.before, &before, &file.path), is(&file.after, &after, &file.path));
            let entry = staged.get(&file.path);
            let in_index = version(entry == file.before.as_ref(), entry == file.after.as_ref());
            // A staged change that is also on disk is not lost when it is unstaged.
            let keeps =
                in_index == LandedVersion::UserChange && (entry.is_none() || not_as_staged.contains(&file.path));
            match (keeps, on_disk) {
                (true, _) => drop(plan.left.insert(&file.path)),
                (false, LandedVersion::UserChange) => {
                    plan.index.push(file);
                    plan.left.insert(&file.path);
                }
                (false, LandedVersion::Before) => {
                    plan.index.push(file);
                    plan.files.push(file);
                }
                (false, LandedVersion::After) => plan.index.push(file),
            }
        }
        Ok(plan)
    }

    /// The entries of an index. An entry with a conflict counts as changed by the user.
    fn staged(&self, dirs: GitDirs<'_>) -> Result<BTreeMap<PathBuf, Blob>, GitError> {
        let printed = self.isolated_git_at(dirs, "ls-files -s -z")?.read()?;
        let entry = |line: &[u8]| {
            let tab = line.iter().position(|&byte| byte == b'\t')?;
            let (about, name) = (line.get(..tab)?, line.get(tab + 1..)?);
            let blob = about.strip_suffix(b" 0").unwrap_or(about);
            Some((path(name), blob.to_owned()))
        };
        Ok(printed.split(|&byte| byte == 0).filter_map(entry).collect())
    }

    /// Those of these files that differ on disk from the given blobs.
    fn differing<'a>(
        &self,
        dirs: GitDirs<'_>,
        files: impl Iterator<Item = (&'a PathBuf, Option<&'a Blob>)>,
    ) -> Result<BTreeSet<PathBuf>, GitError> {
        let index = self.scratch()?;
        let scratch = dirs.with_index(&index);
        self.update_index(scratch, files.filter(|(_, blob)| blob.is_some()))?;
        // Its exit code is ignored; `diff-files` lists the names.
        self.isolated_git_at(scratch, "update-index -q --refresh")?.run()?;
        let command = self.isolated_git_at(scratch, "diff-files -z --name-only --ignore-submodules=all")?;
        Ok(command.read_paths()?.into_iter().collect())
    }

    /// Adds files to an index, or removes them from it.
    fn update_index<'a>(
        &self,
        dirs: GitDirs<'_>,
        files: impl Iterator<Item = (&'a PathBuf, Option<&'a Blob>)>,
    ) -> Result<(), GitError> {
        let (existing, missing): (Vec<_>, Vec<_>) = files.partition(|(_, blob)| blob.is_some());
        let nothing = [b"0 ".as_slice(), &vec![b'0'; self.isolated_dir()?.id_bytes * 2]].concat();
        let lines = missing.into_iter().chain(existing).flat_map(|(file, blob)| {
            [blob.unwrap_or(&nothing).as_slice(), b"\t", file.as_os_str().as_bytes(), b"\0"].concat()
        });
        let command = self.isolated_git_at(dirs, "update-index --add --replace -z --index-info")?;
        command.input(lines.collect::<Vec<u8>>()).execute()
    }

    /// Writes files to disk from an index. Does not overwrite anything else at their paths.
    fn write_files(&self, dirs: GitDirs<'_>, plan: &mut UpdatePlan<'_>) -> Result<(), GitError> {
        for file in plan.files.iter().filter(|file| file.after.is_none()) {
            if is_file_or_link(dirs.work_tree, &file.path) {
                remove_if_exists(&dirs.work_tree.join(&file.path))?;
            }
            remove_empty_parents(dirs.work_tree, &file.path);
        }
        let mut names = Vec::new();
        for file in &plan.files {
            if file.after.as_ref().is_none_or(|after| after.starts_with(SUBMODULE)) {
                continue;
            }
            let there = blocking_path(dirs.work_tree, &file.path);
            // Only the old version of the file is replaced.
            let is_free = match there {
                None => true,
                Some(found) => found == file.path && file.before.is_some() && is_file_or_link(dirs.work_tree, found),
            };
            if is_free {
                names.extend(join_nul([file.path.as_path()]));
            } else {
                plan.left.insert(&file.path);
            }
        }
        self.isolated_git_at(dirs, "checkout-index -f -u -q -z --stdin")?.input(names).execute()
    }

    /// Records the files that were reported to the user. Once one of them changes, the user has dealt with them.
    pub(super) fn record_left_files(&self, result: Result<(), GitError>) -> Result<(), GitError> {
        if let Err(GitError::CheckoutBehind { checkout, files, .. }) = &result {
            write_atomic(&self.left_files_path(), format_stamps(checkout, files).as_bytes(), WriteMode::Plain)?;
        }
        result
    }

    /// Path of the record of files left to the user.
    fn left_files_path(&self) -> PathBuf {
        self.common().join("signoff/forward-left")
    }
}

/// Text that changes when one of these files is written.
fn format_stamps(work_tree: &Path, files: &[PathBuf]) -> String {
    let stamp = |file: &PathBuf| {
        let found = fs::symlink_metadata(work_tree.join(file)).ok();
        let stamp = found.map(|found| (found.ino(), found.size(), found.mtime(), found.mtime_nsec()));
        format!("{stamp:?} {}\n", file.display())
    };
    files.iter().map(stamp).collect()
}

fn version(is_before: bool, is_after: bool) -> LandedVersion {
    match (is_before, is_after) {
        (_, true) => LandedVersion::After,
        (true, false) => LandedVersion::Before,
        (false, false) => LandedVersion::UserChange,
    }
}

/// Whether a file or link exists at this path, without a link among its parents.
fn is_file_or_link(work_tree: &Path, file: &Path) -> bool {
    blocking_path(work_tree, file) == Some(file) && !is_directory(&work_tree.join(file))
}
