//! The commits that a branch does not contain, with their ancestry.

use std::collections::{HashMap, HashSet};

use signoff_core::ids::{Commit, Tree};

use super::{GitError, Repository};

/// Commits that a branch does not contain, with their parents.
#[derive(Debug, Default)]
pub struct Lineage {
    parents: HashMap<Commit, Vec<Commit>>,
    /// All commits, parents first.
    order: Vec<Commit>,
}

/// Tree and subject of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitInfo {
    pub tree: Tree,
    pub subject: String,
}

impl Lineage {
    /// The ancestors of a commit, including itself. Empty if the branch contains it.
    pub fn ancestors(&self, commit: &Commit) -> HashSet<&Commit> {
        let mut found = HashSet::new();
        let mut next: Vec<&Commit> = self.parents.get_key_value(commit).map(|(own, _)| own).into_iter().collect();
        while let Some(commit) = next.pop() {
            if found.insert(commit) {
                let known = self.parents(commit).iter().filter_map(|parent| self.parents.get_key_value(parent));
                next.extend(known.map(|(parent, _)| parent));
            }
        }
        found
    }

    /// The ancestors of `tip` that are not ancestors of `base`, parents first.
    pub fn between(&self, base: &Commit, tip: &Commit) -> Vec<&Commit> {
        let (before, all) = (self.ancestors(base), self.ancestors(tip));
        self.order.iter().filter(|commit| all.contains(commit) && !before.contains(commit)).collect()
    }

    /// The ancestors of a commit, including itself, parents first.
    pub fn up_to(&self, tip: &Commit) -> Vec<Commit> {
        let all = self.ancestors(tip);
        self.order.iter().filter(|commit| all.contains(commit)).cloned().collect()
    }

    /// The commits of the branch that are parents of these.
    pub fn roots<'a>(&'a self, commits: impl IntoIterator<Item = &'a Commit>) -> HashSet<&'a Commit> {
        let parents = commits.into_iter().flat_map(|commit| self.parents(commit));
        parents.filter(|parent| !self.contains(parent)).collect()
    }

    pub fn contains(&self, commit: &Commit) -> bool {
        self.parents.contains_key(commit)
    }

    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    pub fn parents(&self, commit: &Commit) -> &[Commit] {
        self.parents.get(commit).map_or(&[], Vec::as_slice)
    }
}

impl Repository {
    /// All ancestors of these commits that a branch does not contain. Ignores commits that the repository does
    /// not have.
    pub fn commits_beyond(&self, branch: &str, tips: &[Commit]) -> Result<Lineage, GitError> {
        let tips: String = tips.iter().map(|tip| format!("{tip}\n")).collect();
        let asked = ["rev-list", "--topo-order", "--reverse", "--parents", "--ignore-missing", "--stdin"];
        let input = format!("{tips}^refs/heads/{branch}\n");
        let printed = self.isolated_git(self.checkout_place())?.args(asked).input(input).read()?;
        let mut lineage = Lineage::default();
        for line in String::from_utf8_lossy(&printed).lines() {
            let mut ids = line.split(' ').map(Commit::new);
            let Some(commit) = ids.next() else { continue };
            lineage.order.push(commit.clone());
            lineage.parents.insert(commit, ids.collect());
        }
        Ok(lineage)
    }

    /// The commits reachable from `tip` but from none of the others, oldest first, without merges.
    pub fn commits_excluding(&self, others: &[Commit], tip: &Commit) -> Result<Vec<Commit>, GitError> {
        let others = others.iter().map(|other| format!("^{other}"));
        let asked = ["rev-list", "--topo-order", "--reverse", "--no-merges", tip.as_str()];
        let printed = self.isolated_git(self.checkout_place())?.args(asked).args(others).args(["--"]).read()?;
        Ok(String::from_utf8_lossy(&printed).lines().map(Commit::new).collect())
    }

    /// Tree and subject of these commits.
    pub fn commit_infos<'a>(
        &self,
        commits: impl IntoIterator<Item = &'a Commit>,
    ) -> Result<HashMap<Commit, CommitInfo>, GitError> {
        let asked: String = commits.into_iter().map(|commit| format!("{commit}\n")).collect();
        if asked.is_empty() {
            return Ok(HashMap::new());
        }
        let command = ["log", "-z", "--no-walk=unsorted", "--no-show-signature", "--format=%H %T %s", "--stdin"];
        let printed = self.isolated_git(self.checkout_place())?.args(command).input(asked).read()?;
        let printed = String::from_utf8_lossy(&printed);
        let one = |record: &str| {
            let mut words = record.splitn(3, ' ');
            let (commit, tree) = (Commit::new(words.next()?), Tree::new(words.next()?));
            Some((commit, CommitInfo { tree, subject: words.next().unwrap_or_default().to_owned() }))
        };
        Ok(printed.split('\0').filter_map(one).collect())
    }

    /// Whether work that merged newer commits of a branch differs, in files those commits change, from git's
    /// own merge. Then it may revert their changes, and a reviewer who saw the diff from `base` did not see
    /// that.
    pub fn may_revert(&self, base: &Commit, newer: &Commit, tip: &Commit) -> Result<bool, GitError> {
        let merged = if self.is_ancestor(base.as_str(), newer.as_str())? {
            newer.to_string()
        } else {
            match self.merge_trees(None, (base, newer)) {
                Ok(merged) if merged.conflicts.is_empty() => merged.tree.to_string(),
                Ok(_) | Err(GitError::Failed { .. }) => return Ok(true),
                Err(error) => return Err(error),
            }
        };
        let brought = self.changed_files(base.as_str(), &merged)?;
        Ok(!brought.is_disjoint(&self.changed_files(&merged, tip.as_str())?))
    }

    /// The files that differ between two commits or trees.
    pub fn changed_files(&self, from: &str, to: &str) -> Result<HashSet<Vec<u8>>, GitError> {
        let asked = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", from, to];
        let printed = self.isolated_git(self.checkout_place())?.args(asked).read()?;
        Ok(printed.split(|&byte| byte == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect())
    }

    /// Whether a merge commit's tree is exactly the one git creates, without a conflict.
    pub fn is_plain_merge(&self, parents: (&Commit, &Commit), tree: &Tree) -> Result<bool, GitError> {
        match self.merge_trees(None, (parents.1, parents.0)) {
            Ok(merged) => Ok(merged.conflicts.is_empty() && merged.tree == *tree),
            // For example, two commits without a common ancestor.
            Err(GitError::Failed { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
