//! The commits that a branch does not have, and how they came about.

use std::collections::{HashMap, HashSet};

use signoff_core::ids::{Commit, Tree};

use super::{GitError, Repository};

/// Commits beyond a branch, with their parents.
#[derive(Debug, Default)]
pub struct Lineage {
    parents: HashMap<Commit, Vec<Commit>>,
    /// All of them, parents first.
    order: Vec<Commit>,
}

/// A commit in a few words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    pub tree: Tree,
    pub subject: String,
}

impl Lineage {
    /// Those that lead to a commit, itself among them. None where the branch has it.
    pub fn reach(&self, commit: &Commit) -> HashSet<&Commit> {
        let mut found = HashSet::new();
        let mut next: Vec<&Commit> =
            self.parents.get_key_value(commit).map(|(own, _)| own).into_iter().collect();
        while let Some(commit) = next.pop() {
            if found.insert(commit) {
                let known =
                    self.parents(commit).iter().filter_map(|parent| self.parents.get_key_value(parent));
                next.extend(known.map(|(parent, _)| parent));
            }
        }
        found
    }

    /// Those that lead to one commit and not to another, parents first.
    pub fn between(&self, base: &Commit, tip: &Commit) -> Vec<&Commit> {
        let (before, all) = (self.reach(base), self.reach(tip));
        self.order.iter().filter(|commit| all.contains(commit) && !before.contains(commit)).collect()
    }

    /// Those that lead to a commit, parents first.
    pub fn up_to(&self, tip: &Commit) -> Vec<Commit> {
        let all = self.reach(tip);
        self.order.iter().filter(|commit| all.contains(commit)).cloned().collect()
    }

    /// The commits of the branch itself that these were made upon.
    pub fn roots<'a>(&'a self, commits: impl IntoIterator<Item = &'a Commit>) -> HashSet<&'a Commit> {
        let parents = commits.into_iter().flat_map(|commit| self.parents(commit));
        parents.filter(|parent| !self.holds(parent)).collect()
    }

    pub fn holds(&self, commit: &Commit) -> bool {
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
    /// All that leads to these commits and is not in a branch. Of commits that git does not have it says nothing.
    pub fn beyond(&self, branch: &str, tips: &[Commit]) -> Result<Lineage, GitError> {
        let tips: String = tips.iter().map(|tip| format!("{tip}\n")).collect();
        let asked = ["rev-list", "--topo-order", "--reverse", "--parents", "--ignore-missing", "--stdin"];
        let input = format!("{tips}^refs/heads/{branch}\n");
        let printed = self.sealed(self.here())?.args(asked).input(input).read()?;
        let mut lineage = Lineage::default();
        for line in String::from_utf8_lossy(&printed).lines() {
            let mut ids = line.split(' ').map(Commit::new);
            let Some(commit) = ids.next() else { continue };
            lineage.order.push(commit.clone());
            lineage.parents.insert(commit, ids.collect());
        }
        Ok(lineage)
    }

    /// The commits that lead to `tip` and to none of the others, oldest first, without merges.
    pub fn work_between(&self, others: &[Commit], tip: &Commit) -> Result<Vec<Commit>, GitError> {
        let others = others.iter().map(|other| format!("^{other}"));
        let asked = ["rev-list", "--topo-order", "--reverse", "--no-merges", tip.as_str()];
        let printed = self.sealed(self.here())?.args(asked).args(others).args(["--"]).read()?;
        Ok(String::from_utf8_lossy(&printed).lines().map(Commit::new).collect())
    }

    /// What these commits are.
    pub fn described<'a>(
        &self,
        commits: impl IntoIterator<Item = &'a Commit>,
    ) -> Result<HashMap<Commit, Described>, GitError> {
        let asked: String = commits.into_iter().map(|commit| format!("{commit}\n")).collect();
        if asked.is_empty() {
            return Ok(HashMap::new());
        }
        let command =
            ["log", "-z", "--no-walk=unsorted", "--no-show-signature", "--format=%H %T %s", "--stdin"];
        let printed = self.sealed(self.here())?.args(command).input(asked).read()?;
        let printed = String::from_utf8_lossy(&printed);
        let one = |record: &str| {
            let mut words = record.splitn(3, ' ');
            let (commit, tree) = (Commit::new(words.next()?), Tree::new(words.next()?));
            Some((commit, Described { tree, subject: words.next().unwrap_or_default().to_owned() }))
        };
        Ok(printed.split('\0').filter_map(one).collect())
    }

    /// Whether work that took in newer commits of a branch has, in a file which those change, something else than git
    /// makes of the two: then it may take back what they did, and whoever looked at it from `base` was not shown that.
    pub fn takes_back(&self, base: &Commit, newer: &Commit, tip: &Commit) -> Result<bool, GitError> {
        let together = if self.is_ancestor(base.as_str(), newer.as_str())? {
            newer.to_string()
        } else {
            match self.merge_trees(None, (base, newer)) {
                Ok(merged) if merged.files.is_empty() => merged.tree.to_string(),
                Ok(_) | Err(GitError::Failed { .. }) => return Ok(true),
                Err(error) => return Err(error),
            }
        };
        let brought = self.files_between(base.as_str(), &together)?;
        Ok(!brought.is_disjoint(&self.files_between(&together, tip.as_str())?))
    }

    /// The files that differ between two commits or trees.
    pub fn files_between(&self, from: &str, to: &str) -> Result<HashSet<Vec<u8>>, GitError> {
        let asked = ["diff-tree", "-r", "-z", "--name-only", "--no-renames", from, to];
        let printed = self.sealed(self.here())?.args(asked).read()?;
        Ok(printed.split(|&byte| byte == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect())
    }

    /// Whether a merge of two commits has exactly the tree that git makes of them, without a conflict.
    pub fn adds_nothing(&self, parents: (&Commit, &Commit), tree: &Tree) -> Result<bool, GitError> {
        match self.merge_trees(None, (parents.1, parents.0)) {
            Ok(merged) => Ok(merged.files.is_empty() && merged.tree == *tree),
            // Such as two that have nothing in common.
            Err(GitError::Failed { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
