//! The diff under review: from the base to the worktree, committed or not. Parsed while git prints it, in bounded memory.

use std::fs;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use signoff_core::hex::hex;
use signoff_core::ids::Commit;
use signoff_core::patch::{PatchLineKind, PatchReader};
use signoff_core::prompt::{OmissionReason, OmittedFileContext};
use signoff_core::untrusted_config::classify;

use super::commit::ExcludedPaths;
use super::repository::{GitDirs, path};
use super::status::GitStatus;
use super::{GitError, Repository, Worktree};

/// Git does not read files larger than this; see the setting `core.bigFileThreshold`.
const LARGE_FILE: u64 = 16 * 1024 * 1024;

/// Maximum number of bytes of changed files that a preview reads.
const PREVIEW_BYTES: u64 = 64 * 1024 * 1024;

/// The changes since a base.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitDiff {
    /// Output of `git diff --stat`.
    pub stat: String,
    /// The patch text, without the omitted files.
    pub patch: String,
    /// Number of lines of the patch, including those beyond the cut.
    pub lines: usize,
    /// Whether the patch was too long to be kept whole.
    pub truncated: bool,
    /// Number of changed files.
    pub files: usize,
    pub omitted: Vec<OmittedFile>,
    /// Changed submodules. A diff cannot show their content.
    pub submodules: Vec<PathBuf>,
    /// Changed files that agents read as settings or instructions.
    pub config_files: Vec<String>,
    /// SHA-256 of the changed paths with modes and content hashes, including omitted files. Equal digests mean
    /// equal changes.
    pub digest: String,
}

/// A changed file that is listed but not shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OmittedFile {
    pub path: String,
    pub reason: OmissionReason,
}

/// A file that is too large to read, and its size.
struct LargeFile {
    path: PathBuf,
    bytes: u64,
}

impl GitDiff {
    /// The omitted files in the form prompts take.
    pub fn omitted(&self) -> Vec<OmittedFileContext<'_>> {
        self.omitted.iter().map(|file| OmittedFileContext { path: &file.path, reason: file.reason }).collect()
    }

    /// Adds files that git did not read.
    fn add_large_files(&mut self, large: Vec<LargeFile>) {
        for LargeFile { path, bytes } in large {
            let path = path.to_string_lossy().into_owned();
            // An agent may have committed it before it changed it again.
            if self.omitted.iter().all(|known| known.path != path) {
                self.files += 1;
                // The last line is git's total.
                self.stat.insert_str(0, &format!(" {path} | {bytes} bytes, not read\n"));
                self.omitted.push(OmittedFile { path, reason: OmissionReason::Huge { bytes } });
            }
        }
    }
}

impl Worktree {
    /// Everything that differs from `base`, whether committed, uncommitted or untracked.
    pub fn diff(&self, base: &Commit) -> Result<GitDiff, GitError> {
        self.check_exists()?;
        let status = self.repository.status(self.dirs())?;
        self.diff_of(base, &status, &ExcludedPaths::for_worktree(&self.git_dir), None)
    }

    /// The diff of committed and other changes. New objects are written to `objects`, if given.
    fn diff_of(
        &self,
        base: &Commit,
        status: &GitStatus,
        excluded: &ExcludedPaths,
        objects: Option<&Path>,
    ) -> Result<GitDiff, GitError> {
        if !excluded.has_changes(status) {
            return self.print_diff(self.dirs(), &[base.as_str(), "HEAD"], base);
        }
        let scratch = self.repository.scratch_index(&self.git_dir)?;
        let dirs = GitDirs { objects, ..self.dirs().with_index(&scratch) };
        self.repository.stage(dirs, status, excluded)?;
        self.print_diff(dirs, &["--cached", base.as_str()], base)
    }

    /// Like [`Self::diff`], for display only: writes nothing into the repository and does not read files that
    /// are too large to show. While an agent runs, files can have any size.
    pub fn preview_diff(&self, base: &Commit) -> Result<GitDiff, GitError> {
        self.check_exists()?;
        let status = self.repository.status(self.dirs())?;
        let large = self.too_large(&status);
        let kept_out = ExcludedPaths::for_worktree(&self.git_dir).with(large.iter().map(|file| file.path.clone()));
        let objects = self.repository.scratch()?;
        fs::create_dir(&objects.path).map_err(GitError::at(&objects.path))?;
        let mut diff = self.diff_of(base, &status, &kept_out, Some(&objects.path))?;
        diff.add_large_files(large);
        Ok(diff)
    }

    /// Changed files beyond the size limits, singly or in total, with their sizes.
    fn too_large(&self, status: &GitStatus) -> Vec<LargeFile> {
        let mut remaining = PREVIEW_BYTES;
        let mut large = Vec::new();
        let own = ExcludedPaths::for_worktree(&self.git_dir);
        for entry in status.entries.iter().filter(|entry| !own.contains(&entry.path)) {
            let found = fs::symlink_metadata(self.path().join(&entry.path));
            let bytes = found.ok().filter(fs::Metadata::is_file).map_or(0, |found| found.len());
            if bytes > LARGE_FILE || bytes > remaining {
                large.push(LargeFile { path: entry.path.clone(), bytes });
            } else {
                remaining -= bytes;
            }
        }
        large
    }

    /// The changes from `base` to `head`, independent of the worktree's files.
    pub fn diff_between(&self, base: &Commit, head: &Commit) -> Result<GitDiff, GitError> {
        self.check_exists()?;
        self.print_diff(self.dirs(), &[base.as_str(), head.as_str()], base)
    }

    fn print_diff(&self, dirs: GitDirs<'_>, what: &[&str], base: &Commit) -> Result<GitDiff, GitError> {
        let mut diff = self.repository.print_diff(dirs, what, base)?;
        // Git calls these files binary only because of their size.
        for file in &mut diff.omitted {
            let bytes = fs::symlink_metadata(self.path().join(&file.path)).map_or(0, |found| found.len());
            if file.reason == OmissionReason::Binary && bytes > LARGE_FILE {
                file.reason = OmissionReason::Huge { bytes };
            }
        }
        Ok(diff)
    }
}

impl Repository {
    /// The changes from `base` to `head`. `head` need not be checked out.
    pub fn diff_between(&self, base: &Commit, head: &Commit) -> Result<GitDiff, GitError> {
        self.print_diff(self.checkout_dirs(), &[base.as_str(), head.as_str()], base)
    }

    fn print_diff(&self, dirs: GitDirs<'_>, what: &[&str], base: &Commit) -> Result<GitDiff, GitError> {
        let shown = ["--raw", "--stat=160,120", "--stat-graph-width=20", "--patch", "--ignore-submodules=none"];
        let command = self.isolated_git_at(dirs, "diff --no-ext-diff --no-textconv --no-color -M -z --no-abbrev")?;
        let command = command.args(shown).args(what).args(["--"]);
        let mut diff = GitDiff::default();
        // Uses the attributes of the base, so that an agent cannot declare its own files binary.
        command.env("GIT_ATTR_SOURCE", base.as_str()).stream(|printed| {
            diff = read_diff(printed)?;
            Ok(())
        })?;
        Ok(diff)
    }
}

/// A file whose part of the diff exceeds this size is listed but not shown.
const MAX_FILE_PATCH: usize = 200 * 1000;

/// Maximum size of the kept patch text. Prompts contain less than a hundredth of it.
const MAX_PATCH: usize = 8 * 1000 * 1000;

/// Parses the output of `git diff -z --raw --no-abbrev --stat -p`.
fn read_diff(from: &mut impl BufRead) -> io::Result<GitDiff> {
    let mut diff = GitDiff::default();
    let changed = read_raw(from, &mut diff)?;
    diff.stat = String::from_utf8_lossy(&read_field(from)?).into_owned();
    let mut patch = DiffParser { diff, paths: changed.into_iter(), ..DiffParser::default() };
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? > 0 {
        patch.push_line(&line);
        line.clear();
    }
    Ok(patch.finish())
}

/// Reads the changed paths, one for each part of the following patch.
fn read_raw(from: &mut impl BufRead, diff: &mut GitDiff) -> io::Result<Vec<PathBuf>> {
    let mut digest = Sha256::new();
    let mut paths = Vec::new();
    while from.fill_buf()?.first() == Some(&b':') {
        let mut hashed_field = || {
            let field = read_field(from)?;
            digest.update(&field);
            digest.update([0]);
            io::Result::Ok(field)
        };
        let (header, mut name) = (hashed_field()?, hashed_field()?);
        if header.rsplit(|&byte| byte == b' ').next().is_some_and(|what| what.starts_with(b"R")) {
            name = hashed_field()?;
        }
        let name = path(&name);
        if header.get(8..14) == Some(b"160000") {
            diff.submodules.push(name.clone());
        }
        if !header.ends_with(b" D") && classify(&lossy(&name)).is_some() {
            diff.config_files.push(lossy(&name));
        }
        // A changed file type appears in the patch as a deletion and an addition.
        if header.ends_with(b" T") {
            paths.push(name.clone());
        }
        paths.push(name);
        diff.files += 1;
    }
    diff.digest = hex(&digest.finalize());
    Ok(paths)
}

/// Reads up to the next NUL, which is left out.
fn read_field(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut field = Vec::new();
    from.read_until(0, &mut field)?;
    field.pop_if(|byte| *byte == 0);
    Ok(field)
}

/// State of the parser.
#[derive(Default)]
struct DiffParser {
    diff: GitDiff,
    reader: PatchReader,
    text: Vec<u8>,
    part: FilePatch,
    paths: std::vec::IntoIter<PathBuf>,
}

/// One file's part of the patch.
#[derive(Default)]
struct FilePatch {
    path: PathBuf,
    text: Vec<u8>,
    bytes: usize,
    lines: usize,
    binary: bool,
}

impl DiffParser {
    fn push_line(&mut self, line: &[u8]) {
        let (kind, _) = self.reader.read(line);
        if kind == PatchLineKind::File {
            self.finish_file();
            let named = self.paths.next();
            self.part.path = named.unwrap_or_else(|| path(line.trim_ascii_end()));
        }
        self.part.binary |= kind == PatchLineKind::Header("Binary files ");
        self.part.push_line(line);
    }

    fn finish_file(&mut self) {
        let part = std::mem::take(&mut self.part);
        if let Some(reason) = part.omitted_reason() {
            self.diff.omitted.push(OmittedFile { path: lossy(&part.path), reason });
            return;
        }
        self.diff.lines += part.lines;
        if self.text.len() + part.text.len() <= MAX_PATCH && !self.diff.truncated {
            self.text.extend(part.text);
        } else {
            self.diff.truncated = true;
        }
    }

    fn finish(mut self) -> GitDiff {
        self.finish_file();
        self.diff.patch = String::from_utf8_lossy(&self.text).into_owned();
        self.diff
    }
}

impl FilePatch {
    fn push_line(&mut self, line: &[u8]) {
        self.bytes += line.len();
        self.lines += 1;
        if self.bytes <= MAX_FILE_PATCH {
            self.text.extend(line);
        } else {
            self.text = Vec::new();
        }
    }

    fn omitted_reason(&self) -> Option<OmissionReason> {
        if self.binary {
            return Some(OmissionReason::Binary);
        }
        (self.bytes > MAX_FILE_PATCH).then_some(OmissionReason::Huge { bytes: self.bytes as u64 })
    }
}

fn lossy(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
