//! Throw-away worktrees: for a merge that is checked, and for parallel fixes, whose commits become one history.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use signoff_core::ids::Commit;
use signoff_core::machine::Head;

use super::disk::{canonical_path, content, is_directory, is_not_directory, remove_if_exists};
use super::repository::path as path_of;
use super::worktree::{check_vacant, has_valid_head, is_ours, read_marker};
use super::{GitError, MergeOutcome, Repository, Worktree};

/// Prefix of the refs that hold the commits of parallel fixes until they are combined.
const PARALLEL_REFS: &str = "refs/signoff/apart";

/// Prefix of the refs that hold commits removed from a branch.
const ABANDONED_REFS: &str = "refs/signoff/left";

fn parallel_ref(name: &str) -> String {
    format!("{PARALLEL_REFS}/{name}")
}

/// The parallel fixes that could be combined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CombinedFixes {
    /// Numbers of the fixes that are included.
    #[serde(rename = "kept")]
    pub included: Vec<usize>,
    pub head: Head,
}

impl Repository {
    /// Creates a throw-away worktree at a commit.
    pub fn add_detached(&self, path: &Path, commit: &Commit) -> Result<Worktree, GitError> {
        let path = canonical_path(path)?;
        let made = self.with_lock(|| {
            self.remove_unfinished(&path)?;
            match self.registered_git_dir(&path)? {
                Some(_) => Err(GitError::NotOurs(path.clone())),
                None => check_vacant(&path).and_then(|()| self.git_worktree_add(&path, None, commit.as_str())),
            }
        });
        made?.check_out_files()
    }

    /// The throw-away worktree at `path`, or a new one at the commit.
    pub fn detached(
        &self,
        path: &Path,
        commit: impl FnOnce() -> Result<Commit, GitError>,
    ) -> Result<Worktree, GitError> {
        let path = canonical_path(path)?;
        self.with_lock(|| self.remove_unfinished(&path))?;
        let registered = self.registered_git_dir(&path)?.filter(|git_dir| is_ours(git_dir, None));
        match registered {
            Some(git_dir) if is_directory(&path) => {
                return self.with_lock(|| self.claim(&path, git_dir, None))?.check_out_files();
            }
            Some(git_dir) if !is_not_directory(&path) => self.with_lock(|| remove_if_exists(&git_dir))?,
            Some(_) | None => {}
        }
        self.add_detached(&path, &commit()?)
    }

    /// The worktree in which a merge is checked, at this commit. Ignored files stay between landings, so that
    /// builds are incremental.
    pub fn integration_worktree(&self, path: &Path, commit: &Commit) -> Result<Worktree, GitError> {
        match self.worktree(path) {
            Ok(found) if found.exists() && found.branch().is_none() => {
                found.check_out_clean(commit)?;
                Ok(found)
            }
            Ok(_) | Err(GitError::WorktreeGone(_) | GitError::NotOurs(_)) => {
                let path = canonical_path(path)?;
                match self.registered_git_dir(&path)? {
                    // A killed process left an incomplete one.
                    Some(git_dir) if is_ours(&git_dir, None) => self.delete_worktree(&path, &git_dir)?,
                    Some(_) => return Err(GitError::NotOurs(path)),
                    None => {}
                }
                self.add_detached(&path, commit)
            }
            Err(error) => Err(error),
        }
    }

    /// The throw-away worktree at `path`, or a new one at `commit`. Removes anything else at that path.
    pub fn parallel_worktree(
        &self,
        path: &Path,
        commit: impl FnOnce() -> Result<Commit, GitError>,
    ) -> Result<Worktree, GitError> {
        let path = canonical_path(path)?;
        let is_ours = |git_dir: &Path| has_valid_head(git_dir) && read_marker(git_dir) == Some(None);
        let is_usable = self.registered_git_dir(&path)?.is_some_and(|git_dir| is_ours(&git_dir)) && is_directory(&path);
        if !is_usable {
            self.remove_parallel_worktree(&path)?;
        }
        self.detached(&path, commit)
    }

    /// Removes a worktree of a parallel fix, and anything that replaced it.
    pub fn remove_parallel_worktree(&self, path: &Path) -> Result<(), GitError> {
        let path = canonical_path(path)?;
        let git_dir = self.registered_git_dir(&path)?;
        git_dir.map_or_else(|| remove_if_exists(&path), |git_dir| self.delete_worktree(&path, &git_dir))
    }

    /// Keeps the commit of a parallel fix from garbage collection.
    pub fn keep_parallel_commit(&self, name: &str, commit: &Commit) -> Result<(), GitError> {
        self.isolated_git("update-ref")?.args([parallel_ref(name).as_str(), commit.as_str()]).execute()
    }

    /// The commit that is kept under a name.
    pub fn parallel_commit(&self, name: &str) -> Result<Option<Commit>, GitError> {
        match self.resolve(&parallel_ref(name)) {
            Ok(commit) => Ok(Some(commit)),
            Err(GitError::UnknownRevision(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Paths of all worktrees known to git, even if their directories are gone.
    pub(crate) fn worktree_paths(&self) -> Vec<PathBuf> {
        let links = self.git_dirs().filter_map(|git_dir| content(&git_dir.join("gitdir")));
        links.filter_map(|link| Some(path_of(link.trim_ascii_end()).parent()?.to_owned())).collect()
    }

    /// Keeps a commit that is on no branch any more from garbage collection. Returns the ref that holds it.
    pub fn keep_abandoned_commit(&self, name: &str, commit: &Commit) -> Result<String, GitError> {
        let name = format!("{ABANDONED_REFS}/{name}");
        self.isolated_git("update-ref")?.args([name.as_str(), commit.as_str()]).execute()?;
        Ok(name)
    }

    /// Renames the refs of parallel commits below `name` that the branch does not contain, so that they are kept as
    /// abandoned commits. Deletes the other refs. Returns the new names.
    pub fn abandon_parallel_commits(&self, name: &str, branch: &str) -> Result<Vec<String>, GitError> {
        if !self.may_have_parallel_refs(name) {
            return Ok(Vec::new());
        }
        let format = "--format=%(objectname) %(refname)";
        let listed = self.isolated_git("for-each-ref")?.args([format, &parallel_ref(name)]).read_text()?;
        let (mut left, mut wanted) = (Vec::new(), String::new());
        for line in listed.lines() {
            let Some((commit, kept)) = line.split_once(' ') else { continue };
            let Some((of, number)) = kept.strip_prefix(PARALLEL_REFS).and_then(|own| own.rsplit_once('/')) else {
                continue;
            };
            if !self.is_ancestor(commit, &format!("refs/heads/{branch}")).unwrap_or(false) {
                left.push(format!("{ABANDONED_REFS}{of}/fix-{number}"));
                wanted.extend(left.last().map(|left| format!("update {left}\0{commit}\0\0")));
            }
            wanted.push_str(&format!("delete {kept}\0{commit}\0"));
        }
        if !wanted.is_empty() {
            self.update_refs(wanted)?;
        }
        Ok(left)
    }

    /// Whether there may be refs of parallel commits. Usually files show that there are none, without a git
    /// process.
    fn may_have_parallel_refs(&self, name: &str) -> bool {
        let packed = content(&self.common().join("packed-refs")).unwrap_or_default();
        let is_packed = || String::from_utf8_lossy(&packed).contains(&format!("{PARALLEL_REFS}/{name}/"));
        let has_file = |file: String| self.common().join(file).is_dir();
        has_file(parallel_ref(name)) || has_file("reftable".to_owned()) || is_packed()
    }

    /// Deletes all refs of parallel commits below `name`.
    pub fn delete_parallel_refs(&self, name: &str) -> Result<(), GitError> {
        let format = "--format=delete %(refname)%00%(objectname)%00";
        let listed = self.isolated_git("for-each-ref")?.args([format, &parallel_ref(name)]).read_text()?;
        if listed.is_empty() { Ok(()) } else { self.update_refs(listed.replace('\n', "")) }
    }

    /// Replays the parallel fixes made since `from` on top of `tip`, one after the other. Skips a fix that
    /// touches a file of an earlier one or does not apply. Changes no file and no ref.
    pub fn combine_fixes(
        &self,
        from: &Commit,
        tip: &Head,
        fixes: &[(usize, Commit)],
        message: &str,
    ) -> Result<CombinedFixes, GitError> {
        let mut combined = CombinedFixes { included: Vec::new(), head: tip.clone() };
        let mut touched = BTreeSet::new();
        for (number, commit) in fixes {
            // If git does not have the commit any more, the fix is made again.
            let Ok(commit) = self.resolve(commit.as_str()) else { continue };
            let fix_base = self.merge_base(from.as_str(), commit.as_str())?.unwrap_or_else(|| from.clone());
            let files = self.changed_files(fix_base.as_str(), commit.as_str())?;
            if !touched.is_disjoint(&files) {
                continue;
            }
            let replay = match self.replay_onto(&combined.head, &commit, message) {
                // An agent can create commits that git refuses to create again.
                Err(GitError::Failed { .. }) => continue,
                replay => replay?,
            };
            match replay {
                // The following review decides whether it is correct together with the others.
                MergeOutcome::Clean(head) | MergeOutcome::Different(head) => combined.head = head,
                MergeOutcome::Contained => {}
                MergeOutcome::Conflicting { .. } => continue,
            }
            touched.extend(files);
            combined.included.push(*number);
        }
        Ok(combined)
    }
}

impl Worktree {
    /// Sets files, index and `HEAD` to a commit, and removes everything else that is not ignored.
    fn check_out_clean(&self, commit: &Commit) -> Result<(), GitError> {
        self.restore_git_file()?;
        self.clear_stale_lock()?;
        self.isolated_git("update-ref --no-deref HEAD")?.args([commit.as_str()]).execute()?;
        self.reset_to(commit.as_str())?;
        self.isolated_git("clean -ffdq")?.execute()
    }
}
