//! The diff under review: from the base to what lies in the worktree, committed or not.

use std::fs;
use std::path::PathBuf;

use signoff_core::ids::Commit;
use signoff_core::prompt::{LeftOut, LeftOutWhy};

use super::repository::Place;
use super::stage::KeptOut;
use super::status::Status;
use super::{GitError, Repository, Worktree, patch};
use crate::clear;

/// Files beyond this size git does not look into; see the setting `core.bigFileThreshold`.
const LARGE: u64 = 16 * 1024 * 1024;

/// So much of all changed files together is read for somebody who only looks.
const ROOM: u64 = 64 * 1024 * 1024;

/// What changed since a base.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diff {
    /// What `git diff --stat` printed.
    pub stat: String,
    /// The text of the diff, without the files left out.
    pub patch: String,
    /// How many lines the text has, also those beyond a cut.
    pub lines: usize,
    /// Whether the text was too long even to be kept.
    pub cut: bool,
    /// How many files changed.
    pub files: usize,
    pub left_out: Vec<LeftOutFile>,
    /// Changed files that are links to commits of other repositories, whose content no diff can show.
    pub links: Vec<PathBuf>,
    /// Changed files that agents would take for their settings or instructions.
    pub steering: Vec<String>,
    /// SHA-256 of the changed paths with modes and content hashes: equal ones are equal changes, files left out
    /// included.
    pub digest: String,
}

/// A changed file that is named and not shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOutFile {
    pub path: String,
    pub why: LeftOutWhy,
}

impl Diff {
    /// The files left out, as prompts take them.
    pub fn left_out(&self) -> Vec<LeftOut<'_>> {
        self.left_out.iter().map(|file| LeftOut { path: &file.path, why: file.why }).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.files == 0
    }

    /// Names files that git was not asked about.
    fn name_large(&mut self, large: Vec<(PathBuf, u64)>) {
        for (path, bytes) in large {
            let path = path.to_string_lossy().into_owned();
            // An agent may have committed it before it changed it once more.
            if self.left_out.iter().all(|known| known.path != path) {
                self.files += 1;
                // The last line is the sum of what git did look at.
                self.stat.insert_str(0, &format!(" {path} | {bytes} bytes, not looked at\n"));
                self.left_out.push(LeftOutFile { path, why: LeftOutWhy::Huge { bytes } });
            }
        }
    }
}

/// A place for objects that nobody needs later, gone when this value is.
struct ScratchObjects {
    directory: PathBuf,
}

impl ScratchObjects {
    fn make(directory: PathBuf) -> Result<Self, GitError> {
        fs::create_dir(&directory).map_err(GitError::at(&directory))?;
        Ok(Self { directory })
    }
}

impl Drop for ScratchObjects {
    fn drop(&mut self) {
        // Should it stay, it goes with the directory it is in.
        clear::remove(&self.directory).ok();
    }
}

impl Worktree {
    /// Everything that differs from `base`, whether committed, uncommitted or untracked.
    pub fn diff(&self, base: &Commit) -> Result<Diff, GitError> {
        self.there()?;
        let status = self.repository.status(self.place())?;
        let kept_out = KeptOut::of(&self.git_dir);
        if !kept_out.leaves_work(&status) {
            return self.print_diff(self.place(), &[base.as_str(), "HEAD"], base);
        }
        let scratch = self.repository.scratch_index(&self.git_dir)?;
        let place = Place { index: Some(&scratch.path), ..self.place() };
        self.repository.stage(place, &status, &kept_out)?;
        self.print_diff(place, &["--cached", base.as_str()], base)
    }

    /// The same for somebody who only looks: nothing is written into the repository, and files that are too large to be shown
    /// are not even read. As long as an agent works, they may be anything.
    pub fn glance(&self, base: &Commit) -> Result<Diff, GitError> {
        self.there()?;
        let status = self.repository.status(self.place())?;
        let large = self.too_large(&status);
        let kept_out = KeptOut::of(&self.git_dir).and(large.iter().map(|(path, _)| path.clone()));
        let mut diff = if kept_out.leaves_work(&status) {
            let scratch = self.repository.scratch_index(&self.git_dir)?;
            let objects = ScratchObjects::make(self.repository.seal()?.scratch())?;
            let place =
                Place { index: Some(&scratch.path), objects: Some(&objects.directory), ..self.place() };
            self.repository.stage(place, &status, &kept_out)?;
            self.print_diff(place, &["--cached", base.as_str()], base)?
        } else {
            self.print_diff(self.place(), &[base.as_str(), "HEAD"], base)?
        };
        diff.name_large(large);
        Ok(diff)
    }

    /// Changed files beyond what is shown, each by itself or all together, with their sizes.
    fn too_large(&self, status: &Status) -> Vec<(PathBuf, u64)> {
        let mut room = ROOM;
        let mut large = Vec::new();
        let own = KeptOut::of(&self.git_dir);
        for entry in status.entries.iter().filter(|entry| !own.holds(&entry.path)) {
            let found = fs::symlink_metadata(self.path().join(&entry.path));
            let bytes = found.ok().filter(fs::Metadata::is_file).map_or(0, |found| found.len());
            if bytes > LARGE || bytes > room {
                large.push((entry.path.clone(), bytes));
            } else {
                room -= bytes;
            }
        }
        large
    }

    /// What `head` changed since `base`; the worktree's files do not matter.
    pub fn diff_between(&self, base: &Commit, head: &Commit) -> Result<Diff, GitError> {
        self.there()?;
        self.print_diff(self.place(), &[base.as_str(), head.as_str()], base)
    }

    fn print_diff(&self, place: Place<'_>, what: &[&str], base: &Commit) -> Result<Diff, GitError> {
        let mut diff = self.repository.print_diff(place, what, base)?;
        self.measure_large(&mut diff);
        Ok(diff)
    }

    /// What git called binary only because of its size is called by its size.
    fn measure_large(&self, diff: &mut Diff) {
        for file in &mut diff.left_out {
            let bytes = fs::symlink_metadata(self.path().join(&file.path)).map_or(0, |found| found.len());
            if file.why == LeftOutWhy::Binary && bytes > LARGE {
                file.why = LeftOutWhy::Huge { bytes };
            }
        }
    }
}

impl Repository {
    /// What `head` changed since `base`, wherever it is checked out, if it is at all.
    pub fn diff_between(&self, base: &Commit, head: &Commit) -> Result<Diff, GitError> {
        self.print_diff(self.here(), &[base.as_str(), head.as_str()], base)
    }

    fn print_diff(&self, place: Place<'_>, what: &[&str], base: &Commit) -> Result<Diff, GitError> {
        let asked = ["diff", "--no-ext-diff", "--no-textconv", "--no-color", "-M", "-z", "--no-abbrev"];
        let shown =
            ["--raw", "--stat=160,120", "--stat-graph-width=20", "--patch", "--ignore-submodules=none"];
        // Attributes as they were at the base: an agent cannot have its own files called binary.
        let command = self.sealed(place)?.env("GIT_ATTR_SOURCE", base.as_str());
        let mut diff = Diff::default();
        command.args(asked).args(shown).args(what).args(["--"]).stream(|printed| {
            diff = patch::read(printed)?;
            Ok(())
        })?;
        Ok(diff)
    }
}
