//! Reads files from commits.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use signoff_core::ids::Commit;

use super::repository::path;
use super::{GitError, Repository};

/// A plain file in a commit, up to a size limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommittedFile {
    Content(Vec<u8>),
    /// The file exceeds the limit.
    TooLarge {
        bytes: u64,
    },
}

impl Repository {
    /// The file at a path in a commit. `None` if it does not exist or is not a plain file.
    pub fn file_at(&self, commit: &Commit, file: &str, max_bytes: u64) -> Result<Option<CommittedFile>, GitError> {
        let asked = ["ls-tree", "-z", "--long", "--full-tree", commit.as_str(), "--", file];
        let listed = self.isolated_git(self.checkout_place())?.args(asked).read()?;
        let listed = String::from_utf8_lossy(&listed);
        // `100644 blob ID SIZE<tab>PATH`
        let words: Vec<&str> = listed.split('\t').next().unwrap_or_default().split_whitespace().collect();
        let ["100644" | "100755", "blob", id, size] = words.as_slice() else { return Ok(None) };
        let bytes = size.parse().unwrap_or(u64::MAX);
        if bytes > max_bytes {
            return Ok(Some(CommittedFile::TooLarge { bytes }));
        }
        let content = self.isolated_git(self.checkout_place())?.args(["cat-file", "blob", id]).read()?;
        Ok(Some(CommittedFile::Content(content)))
    }

    /// The plain files directly in a commit's top directory or in the given directories. Skips names that are
    /// not UTF-8.
    pub fn plain_files(&self, commit: &Commit, directories: &[&str]) -> Result<BTreeSet<String>, GitError> {
        let asked = ["ls-tree", "-z", "--full-tree", commit.as_str(), "--"];
        let listed = self.isolated_git(self.checkout_place())?.args(asked).args(directories).read()?;
        let entries = listed.split(|byte| *byte == 0).filter_map(|entry| std::str::from_utf8(entry).ok());
        // `100644 blob ID<tab>PATH`
        let named = entries.filter_map(|entry| entry.split_once('\t'));
        let plain = named.filter(|(about, _)| about.starts_with("100644 ") || about.starts_with("100755 "));
        Ok(plain.map(|(_, name)| name.to_owned()).collect())
    }

    /// Whether a commit has anything other than a directory at a path.
    pub fn has_file(&self, commit: &Commit, file: &Path) -> Result<bool, GitError> {
        let asked = ["ls-tree", "-z", "--full-tree", commit.as_str(), "--"];
        let listed = self.isolated_git(self.checkout_place())?.args(asked).args([file]).read()?;
        let listed = String::from_utf8_lossy(&listed);
        Ok(!listed.is_empty() && listed.split_whitespace().nth(1) != Some("tree"))
    }

    /// Names of the files in a directory of a commit. Skips names with non-printable characters or backticks.
    pub fn file_names(&self, commit: &Commit, directory: &str) -> Result<Vec<String>, GitError> {
        let below = format!("{directory}/");
        let asked = ["ls-tree", "-z", "--name-only", "--full-tree", commit.as_str(), "--", &below];
        let listed = self.isolated_git(self.checkout_place())?.args(asked).read()?;
        let names = listed.split(|byte| *byte == 0).filter_map(|name| std::str::from_utf8(name).ok());
        let plain = |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_ascii_graphic() && c != '`');
        Ok(names.filter_map(|name| name.strip_prefix(&below)).filter(plain).map(str::to_owned).collect())
    }

    /// The one of these files that changed last in the history of a commit.
    pub fn last_changed(&self, commit: &Commit, directory: &str, files: &[String]) -> Result<Option<String>, GitError> {
        let show = ["log", "-z", "--format=", "--name-only", "--no-renames", "--no-show-signature"];
        let about = ["--end-of-options", commit.as_str(), "--", directory];
        let listed = self.isolated_git(self.checkout_place())?.args(show).args(about).read()?;
        let names = listed.split(|byte| matches!(*byte, 0 | b'\n')).map(String::from_utf8_lossy);
        let last = names.into_iter().find(|name| files.iter().any(|file| *file == **name));
        Ok(last.map(|name| name.into_owned()).or_else(|| files.last().cloned()))
    }

    /// The first of these worktree files whose bytes differ from the commit.
    pub fn first_difference(
        &self,
        commit: &Commit,
        worktree: &Path,
        files: &[PathBuf],
    ) -> Result<Option<PathBuf>, GitError> {
        let Some(first) = files.first() else { return Ok(None) };
        let asked = ["ls-tree", "-r", "-z", "--full-tree", commit.as_str()];
        let listed = self.isolated_git(self.checkout_place())?.args(asked).read()?;
        // `100644 blob ID<tab>PATH`
        let known: BTreeMap<PathBuf, String> = listed.split(|byte| *byte == 0).filter_map(parse_blob).collect();
        if let Some(new) = files.iter().find(|file| !known.contains_key(*file)) {
            return Ok(Some(new.clone()));
        }
        let there = files.iter().map(|file| worktree.join(file));
        let hashed =
            self.isolated_git(self.checkout_place())?.args(["hash-object", "--no-filters", "--"]).args(there).read()?;
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
        let listed = self.isolated_git(self.checkout_place())?.args(asked).read()?;
        Ok(listed.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(path).collect())
    }
}

/// Parses a line of `ls-tree` into path and blob id.
fn parse_blob(line: &[u8]) -> Option<(PathBuf, String)> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let (about, name) = line.split_at(tab);
    let about = String::from_utf8_lossy(about);
    let ["100644" | "100755", "blob", id] = about.split(' ').collect::<Vec<_>>()[..] else { return None };
    Some((path(name.get(1..)?), id.to_owned()))
}
