//! A file as a commit has it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use signoff_core::ids::Commit;

use super::repository::path;
use super::{GitError, Repository};

/// A plain file of a commit, as far as anybody wants to read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileAt {
    Content(Vec<u8>),
    /// Larger than it may be.
    TooLarge {
        bytes: u64,
    },
}

impl Repository {
    /// What a commit has under a path; none if that is nothing, or no plain file.
    pub fn file_at(&self, commit: &Commit, file: &str, most: u64) -> Result<Option<FileAt>, GitError> {
        let asked = ["ls-tree", "-z", "--long", "--full-tree", commit.as_str(), "--", file];
        let listed = self.sealed(self.here())?.args(asked).read()?;
        let listed = String::from_utf8_lossy(&listed);
        // `100644 blob ID SIZE<tab>PATH`
        let words: Vec<&str> = listed.split('\t').next().unwrap_or_default().split_whitespace().collect();
        let ["100644" | "100755", "blob", id, size] = words.as_slice() else { return Ok(None) };
        let bytes = size.parse().unwrap_or(u64::MAX);
        if bytes > most {
            return Ok(Some(FileAt::TooLarge { bytes }));
        }
        let content = self.sealed(self.here())?.args(["cat-file", "blob", id]).read()?;
        Ok(Some(FileAt::Content(content)))
    }

    /// The plain files of a commit's own directory, or of these below it; not those of further ones. Names that are no text
    /// are left out.
    pub fn plain_files(&self, commit: &Commit, directories: &[&str]) -> Result<BTreeSet<String>, GitError> {
        let asked = ["ls-tree", "-z", "--full-tree", commit.as_str(), "--"];
        let listed = self.sealed(self.here())?.args(asked).args(directories).read()?;
        let entries = listed.split(|byte| *byte == 0).filter_map(|entry| std::str::from_utf8(entry).ok());
        // `100644 blob ID<tab>PATH`
        let named = entries.filter_map(|entry| entry.split_once('\t'));
        let plain = named.filter(|(about, _)| about.starts_with("100644 ") || about.starts_with("100755 "));
        Ok(plain.map(|(_, name)| name.to_owned()).collect())
    }

    /// Whether a commit has anything but a directory under a path.
    pub fn has_file(&self, commit: &Commit, file: &Path) -> Result<bool, GitError> {
        let asked = ["ls-tree", "-z", "--full-tree", commit.as_str(), "--"];
        let listed = self.sealed(self.here())?.args(asked).args([file]).read()?;
        let listed = String::from_utf8_lossy(&listed);
        Ok(!listed.is_empty() && listed.split_whitespace().nth(1) != Some("tree"))
    }

    /// The plain names of the files in a directory of a commit. Names that cannot be told in words are left out.
    pub fn names_below(&self, commit: &Commit, directory: &str) -> Result<Vec<String>, GitError> {
        let below = format!("{directory}/");
        let asked = ["ls-tree", "-z", "--name-only", "--full-tree", commit.as_str(), "--", &below];
        let listed = self.sealed(self.here())?.args(asked).read()?;
        let names = listed.split(|byte| *byte == 0).filter_map(|name| std::str::from_utf8(name).ok());
        let plain = |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_ascii_graphic() && c != '`');
        Ok(names.filter_map(|name| name.strip_prefix(&below)).filter(plain).map(str::to_owned).collect())
    }

    /// Which of some files in a directory was changed last, as a commit's history tells it.
    pub fn changed_last(
        &self,
        commit: &Commit,
        directory: &str,
        files: &[String],
    ) -> Result<Option<String>, GitError> {
        let show = ["log", "-z", "--format=", "--name-only", "--no-renames", "--no-show-signature"];
        let about = ["--end-of-options", commit.as_str(), "--", directory];
        let listed = self.sealed(self.here())?.args(show).args(about).read()?;
        let names = listed.split(|byte| matches!(*byte, 0 | b'\n')).map(String::from_utf8_lossy);
        let last = names.into_iter().find(|name| files.iter().any(|file| *file == **name));
        Ok(last.map(|name| name.into_owned()).or_else(|| files.last().cloned()))
    }

    /// The first of some files of a worktree that is not, byte for byte, what a commit has there.
    pub fn unlike(
        &self,
        commit: &Commit,
        worktree: &Path,
        files: &[PathBuf],
    ) -> Result<Option<PathBuf>, GitError> {
        let Some(first) = files.first() else { return Ok(None) };
        let asked = ["ls-tree", "-r", "-z", "--full-tree", commit.as_str()];
        let listed = self.sealed(self.here())?.args(asked).read()?;
        // `100644 blob ID<tab>PATH`
        let known: BTreeMap<PathBuf, String> = listed.split(|byte| *byte == 0).filter_map(blob).collect();
        if let Some(new) = files.iter().find(|file| !known.contains_key(*file)) {
            return Ok(Some(new.clone()));
        }
        let there = files.iter().map(|file| worktree.join(file));
        let hashed =
            self.sealed(self.here())?.args(["hash-object", "--no-filters", "--"]).args(there).read()?;
        let hashed = String::from_utf8_lossy(&hashed);
        let hashed: Vec<&str> = hashed.lines().collect();
        if hashed.len() != files.len() {
            return Ok(Some(first.clone()));
        }
        let same = |(file, id): &(&PathBuf, &&str)| known.get(*file).is_some_and(|known| known == **id);
        Ok(files.iter().zip(&hashed).find(|one| !same(one)).map(|(file, _)| file.clone()))
    }

    /// The paths in which two commits differ.
    pub fn changed_between(&self, from: &Commit, to: &Commit) -> Result<Vec<PathBuf>, GitError> {
        let asked = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", from.as_str(), to.as_str()];
        let listed = self.sealed(self.here())?.args(asked).read()?;
        Ok(listed.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(path).collect())
    }
}

/// A plain file of a list, with its name there and that of its content.
fn blob(line: &[u8]) -> Option<(PathBuf, String)> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let (about, name) = line.split_at(tab);
    let about = String::from_utf8_lossy(about);
    let ["100644" | "100755", "blob", id] = about.split(' ').collect::<Vec<_>>()[..] else { return None };
    Some((path(name.get(1..)?), id.to_owned()))
}
