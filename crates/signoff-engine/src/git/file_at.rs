//! A file as a commit has it.

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

    /// The paths in which two commits differ.
    pub fn changed_between(&self, from: &Commit, to: &Commit) -> Result<Vec<PathBuf>, GitError> {
        let asked = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", from.as_str(), to.as_str()];
        let listed = self.sealed(self.here())?.args(asked).read()?;
        Ok(listed.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(path).collect())
    }
}
