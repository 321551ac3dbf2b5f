//! A repository in memory: commits, branches and worktrees, as far as stories need them.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{Hash, Hasher};

use signoff_core::ids::{Commit, Tree};
use signoff_core::machine::Head;

/// The content of files by their path.
pub type Files = BTreeMap<String, String>;

/// The default branch.
pub const MAIN: &str = "main";

/// Commits, branches and worktrees.
#[derive(Debug)]
pub struct MemoryRepository {
    commits: BTreeMap<Commit, MemoryCommit>,
    branches: BTreeMap<String, Commit>,
    /// The commit at which each branch starts.
    bases: BTreeMap<String, Commit>,
    /// The files of each worktree, committed or not.
    worktrees: BTreeMap<String, Files>,
    /// The last rejected landing of each branch.
    rejections: BTreeMap<String, RejectedMerge>,
}

/// A merge that was sent back to its branch.
#[derive(Debug, Clone)]
pub struct RejectedMerge {
    pub onto: Commit,
    pub head: Head,
    pub conflicts: Vec<String>,
}

#[derive(Debug, Clone, Hash)]
struct MemoryCommit {
    parents: Vec<Commit>,
    files: Files,
    subject: String,
}

/// The outcome of a merge onto a branch.
pub enum MemoryMerge {
    Contained,
    Clean(Head),
    Conflicting { head: Head, files: Vec<String> },
}

impl MemoryRepository {
    /// A repository with one commit on the default branch.
    pub(super) fn new() -> Self {
        let (branches, bases, rejections) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut this = Self { commits: BTreeMap::new(), branches, bases, worktrees: BTreeMap::new(), rejections };
        let start =
            this.commit(Vec::new(), Files::from([("README.md".to_owned(), "# A project\n".to_owned())]), "Start");
        this.branches.insert(MAIN.to_owned(), start);
        this
    }

    fn commit(&mut self, parents: Vec<Commit>, files: Files, subject: &str) -> Commit {
        let made = MemoryCommit { parents, files, subject: subject.to_owned() };
        let id = Commit::new(hash(&made));
        self.commits.insert(id.clone(), made);
        id
    }

    pub fn tip(&self, branch: &str) -> Option<Commit> {
        self.branches.get(branch).cloned()
    }

    pub fn head_of(&self, branch: &str) -> Option<Head> {
        self.tip(branch).map(|tip| self.head(&tip))
    }

    pub fn head(&self, commit: &Commit) -> Head {
        Head { commit: commit.clone(), tree: self.tree(commit) }
    }

    pub fn tree(&self, commit: &Commit) -> Tree {
        Tree::new(hash(&self.files(commit)))
    }

    /// The files of a commit.
    pub fn files(&self, commit: &Commit) -> Files {
        self.commits.get(commit).map(|commit| commit.files.clone()).unwrap_or_default()
    }

    /// The subjects of a branch's own commits, oldest first, without those of merged branches.
    pub fn subjects(&self, branch: &str) -> Vec<String> {
        let mut subjects = Vec::new();
        let mut next = self.tip(branch);
        while let Some(commit) = next.and_then(|commit| self.commits.get(&commit)) {
            subjects.push(commit.subject.clone());
            next = commit.parents.first().cloned();
        }
        subjects.pop();
        subjects.reverse();
        subjects
    }

    /// The tip of a branch, which begins at `start` if it is missing.
    pub fn ensure_branch(&mut self, branch: &str, start: &Commit) -> Commit {
        if let Some(tip) = self.tip(branch) {
            return tip;
        }
        self.branches.insert(branch.to_owned(), start.clone());
        self.bases.insert(branch.to_owned(), start.clone());
        start.clone()
    }

    /// The commit at which a branch starts.
    pub fn base_of(&self, branch: &str) -> Option<Commit> {
        self.bases.get(branch).cloned()
    }

    /// Creates a worktree with the files of a commit, or keeps the one that is there.
    pub fn ensure_worktree(&mut self, path: &str, commit: &Commit) {
        let files = self.files(commit);
        self.worktrees.entry(path.to_owned()).or_insert(files);
    }

    pub fn remove_worktree(&mut self, path: &str) {
        self.worktrees.remove(path);
    }

    pub fn worktrees(&self) -> Vec<&str> {
        self.worktrees.keys().map(String::as_str).collect()
    }

    /// The files of a worktree, to be changed by an agent.
    pub fn worktree(&mut self, path: &str) -> &mut Files {
        self.worktrees.entry(path.to_owned()).or_default()
    }

    /// Commits the files of a worktree on top of `parent`. Returns `parent` if they are the same.
    pub fn commit_worktree(&mut self, path: &str, parent: &Commit, subject: &str) -> Commit {
        let files = self.worktrees.get(path).cloned().unwrap_or_else(|| self.files(parent));
        if files == self.files(parent) {
            return parent.clone();
        }
        self.commit(vec![parent.clone()], files, subject)
    }

    /// Moves a branch, and the files of a worktree with it.
    pub fn move_branch(&mut self, branch: &str, to: &Commit, worktree: Option<&str>) {
        self.branches.insert(branch.to_owned(), to.clone());
        let files = self.files(to);
        if let Some(known) = worktree.and_then(|path| self.worktrees.get_mut(path)) {
            *known = files;
        }
    }

    /// Makes a merge with conflicts the head of a branch. A restarted process recognizes it as its own.
    pub fn reject(&mut self, branch: &str, worktree: &str, rejected: RejectedMerge) {
        self.move_branch(branch, &rejected.head.commit, Some(worktree));
        self.rejections.insert(branch.to_owned(), rejected);
    }

    /// The merge that was sent back to a branch, if it is the branch's head.
    pub fn rejected(&self, branch: &str) -> Option<RejectedMerge> {
        let tip = self.tip(branch);
        self.rejections.get(branch).filter(|rejected| Some(&rejected.head.commit) == tip.as_ref()).cloned()
    }

    /// Merges a commit onto another one.
    pub fn merge(&mut self, onto: &Commit, commit: &Commit, subject: &str) -> MemoryMerge {
        if self.is_ancestor(commit, onto) {
            return MemoryMerge::Contained;
        }
        let base = self.merge_base(onto, commit).map(|base| self.files(&base)).unwrap_or_default();
        let MergedFiles { files, conflicts } = merge_files(&base, &self.files(onto), &self.files(commit));
        let merged = self.commit(vec![onto.clone(), commit.clone()], files, subject);
        let head = self.head(&merged);
        if conflicts.is_empty() {
            MemoryMerge::Clean(head)
        } else {
            MemoryMerge::Conflicting { head, files: conflicts }
        }
    }

    pub fn is_ancestor(&self, one: &Commit, of: &Commit) -> bool {
        self.ancestors(of).contains(one)
    }

    /// A commit and everything that leads to it, nearest first.
    fn ancestors(&self, commit: &Commit) -> Vec<Commit> {
        let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
        let mut left = VecDeque::from([commit.clone()]);
        while let Some(next) = left.pop_front() {
            if seen.insert(next.clone()) {
                left.extend(self.commits.get(&next).map(|one| one.parents.clone()).unwrap_or_default());
                found.push(next);
            }
        }
        found
    }

    fn merge_base(&self, one: &Commit, other: &Commit) -> Option<Commit> {
        let known = self.ancestors(one);
        self.ancestors(other).into_iter().find(|commit| known.contains(commit))
    }
}

/// 40 hexadecimal digits. Equal values have equal hashes, in every process.
fn hash(value: &impl Hash) -> String {
    let digits = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, value).hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    };
    [digits(0), digits(1), digits(2)].concat()[..40].to_owned()
}

/// Merged files. Conflicting ones contain both sides between markers.
struct MergedFiles {
    files: Files,
    conflicts: Vec<String>,
}

/// A three-way merge of whole files.
fn merge_files(base: &Files, ours: &Files, theirs: &Files) -> MergedFiles {
    let names: BTreeSet<&String> = base.keys().chain(ours.keys()).chain(theirs.keys()).collect();
    let (mut files, mut conflicts) = (Files::new(), Vec::new());
    for name in names {
        let (was, own, other) = (base.get(name), ours.get(name), theirs.get(name));
        let merged = if own == other || was == other {
            own.cloned()
        } else if was == own {
            other.cloned()
        } else {
            conflicts.push(name.clone());
            let side = |text: Option<&String>| text.cloned().unwrap_or_default();
            Some(format!("<<<<<<< ours\n{}=======\n{}>>>>>>> theirs\n", side(own), side(other)))
        };
        files.extend(merged.map(|text| (name.clone(), text)));
    }
    MergedFiles { files, conflicts }
}
