//! Work done side by side: throw-away worktrees, what they left, and that as one line of commits.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use signoff_core::ids::Commit;
use signoff_core::machine::Head;

use super::disk::{content, is_directory, remove_if_there, settle};
use super::repository::path as path_of;
use super::worktree::{has_head, marked};
use super::{GitError, Merge, Replay, Repository, Worktree};

/// Below this a ref holds each commit that was made apart, until all are put together.
const HOME: &str = "refs/signoff/apart";

/// Below this a ref holds what somebody took off a branch.
const LEFT: &str = "refs/signoff/left";

/// What was done side by side, as far as it fits together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Together {
    /// The numbers of those that are in it.
    pub kept: Vec<usize>,
    pub head: Head,
}

impl Repository {
    /// The throw-away worktree at `path`, or a new one of the commit. Whatever else lies there goes: the name is ours.
    pub fn apart(
        &self,
        path: &Path,
        commit: impl FnOnce() -> Result<Commit, GitError>,
    ) -> Result<Worktree, GitError> {
        let path = settle(path)?;
        let is_ours = |git_dir: &Path| has_head(git_dir) && marked(git_dir) == Some(None);
        let sound = self.registered(&path)?.is_some_and(|git_dir| is_ours(&git_dir)) && is_directory(&path);
        if !sound {
            self.clear_apart(&path)?;
        }
        self.detached(&path, commit)
    }

    /// Takes away a worktree that was made apart, and whatever was put in its place.
    pub fn clear_apart(&self, path: &Path) -> Result<(), GitError> {
        let path = settle(path)?;
        let git_dir = self.registered(&path)?;
        remove_if_there(&path)?;
        // Last: until here a second try finds all it needs.
        let Some(git_dir) = git_dir else { return Ok(()) };
        self.forget_lent(&git_dir)?;
        self.in_turn(|| remove_if_there(&git_dir))
    }

    /// Sees to it that nobody takes away a commit that was made apart.
    pub fn keep_apart(&self, name: &str, commit: &Commit) -> Result<(), GitError> {
        let name = format!("{HOME}/{name}");
        self.sealed(self.here())?.args(["update-ref", &name, commit.as_str()]).read().map(drop)
    }

    /// The commit that is kept under a name.
    pub fn kept_apart(&self, name: &str) -> Result<Option<Commit>, GitError> {
        match self.resolve(&format!("{HOME}/{name}")) {
            Ok(commit) => Ok(Some(commit)),
            Err(GitError::UnknownRevision(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Where git has worktrees, also those whose directories are gone.
    pub(crate) fn worktree_paths(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.common().join("worktrees")).into_iter().flatten().flatten();
        let link = entries.filter_map(|entry| content(&entry.path().join("gitdir")));
        link.filter_map(|link| Some(path_of(link.trim_ascii_end()).parent()?.to_owned())).collect()
    }

    /// Sees to it that nobody takes away commits that are on no branch any more; under what name they are kept.
    pub fn keep_left(&self, name: &str, commit: &Commit) -> Result<String, GitError> {
        let name = format!("{LEFT}/{name}");
        self.sealed(self.here())?.args(["update-ref", &name, commit.as_str()]).read()?;
        Ok(name)
    }

    /// Gives what is kept apart under a name, and below it, the names of what is left, as far as the branch does not
    /// have it; tells these.
    pub fn leave_apart(&self, name: &str, branch: &str) -> Result<Vec<String>, GitError> {
        if !self.may_keep_apart(name) {
            return Ok(Vec::new());
        }
        let asked = ["for-each-ref", "--format=%(objectname) %(refname)"];
        let listed = self.sealed(self.here())?.args(asked).args([format!("{HOME}/{name}")]).read()?;
        let (mut left, mut wanted) = (Vec::new(), String::new());
        for line in String::from_utf8_lossy(&listed).lines() {
            let Some((commit, kept)) = line.split_once(' ') else { continue };
            let Some((of, number)) = kept.strip_prefix(HOME).and_then(|own| own.rsplit_once('/')) else {
                continue;
            };
            if !self.is_ancestor(commit, &format!("refs/heads/{branch}")).unwrap_or(false) {
                left.push(format!("{LEFT}{of}/fix-{number}"));
                wanted.extend(left.last().map(|left| format!("update {left}\0{commit}\0\0")));
            }
            wanted.push_str(&format!("delete {kept}\0{commit}\0"));
        }
        if !wanted.is_empty() {
            self.update_refs(wanted)?;
        }
        Ok(left)
    }

    /// Whether git has to be asked what is kept apart under a name: mostly files tell that nothing is.
    fn may_keep_apart(&self, name: &str) -> bool {
        let packed = content(&self.common().join("packed-refs")).unwrap_or_default();
        let is_packed = || String::from_utf8_lossy(&packed).contains(&format!("{HOME}/{name}/"));
        let has_file = |file: String| self.common().join(file).is_dir();
        has_file(format!("{HOME}/{name}")) || has_file("reftable".to_owned()) || is_packed()
    }

    /// Keeps nothing any more under a name, and below it.
    pub fn forget_apart(&self, name: &str) -> Result<(), GitError> {
        let asked = ["for-each-ref", "--format=delete %(refname)%00%(objectname)%00"];
        let listed = self.sealed(self.here())?.args(asked).args([format!("{HOME}/{name}")]).read()?;
        let wanted: Vec<u8> = listed.into_iter().filter(|byte| *byte != b'\n').collect();
        if wanted.is_empty() {
            return Ok(());
        }
        self.sealed(self.here())?.args(["update-ref", "-z", "--stdin"]).input(wanted).read().map(drop)
    }

    /// Puts on top of `tip` what was done side by side since `from`, one after the other. What touches a file that one
    /// before it touched, or does not fit, is left out. No file and no ref is changed.
    pub fn put_together(
        &self,
        (from, tip): (&Commit, &Head),
        parts: &[(usize, Commit)],
        message: &str,
    ) -> Result<Together, GitError> {
        let mut together = Together { kept: Vec::new(), head: tip.clone() };
        let mut touched = HashSet::new();
        for (number, commit) in parts {
            // What git does not have any more is done again.
            let Ok(commit) = self.resolve(commit.as_str()) else { continue };
            let begun = self.merge_base(from.as_str(), commit.as_str())?.unwrap_or_else(|| from.clone());
            let files = self.files_between(begun.as_str(), commit.as_str())?;
            if !touched.is_disjoint(&files) {
                continue;
            }
            let replay = match self.replay_onto(&together.head, &commit, message) {
                // An agent can make commits that git makes no second time.
                Err(GitError::Failed { .. }) => continue,
                replay => replay?,
            };
            match replay {
                // Whether it is right together with the others is for the review that follows.
                Replay::As(Merge::Clean(head)) | Replay::Different(head) => together.head = head,
                Replay::As(Merge::Contained) => {}
                Replay::As(Merge::Conflicting { .. }) => continue,
            }
            touched.extend(files);
            together.kept.push(*number);
        }
        Ok(together)
    }
}
