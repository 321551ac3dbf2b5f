//! Merges a branch and its target without a worktree: writes only objects until a ref moves.
//!
//! A merge with conflicts is an object too: its tree contains the conflict markers, which a fixer edits away.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use signoff_core::ids::{Commit, Tree};
use signoff_core::machine::Head;

use super::disk::content;
use super::repository::path;
use super::{BranchTips, GitError, Repository};

/// The result of merging a branch and its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merge {
    /// The target already contains everything.
    Contained,
    /// A commit on top of the target's tip.
    Clean(Head),
    /// A commit on top of the branch whose tree contains the conflict markers.
    Conflicting { head: Head, files: Vec<GitConflict> },
}

/// A file with a merge conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitConflict {
    pub path: PathBuf,
    /// Git's message about it, which names the sides by their commits.
    pub message: String,
}

/// A branch that work lands on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandTarget {
    pub branch: String,
    pub tip: Head,
    /// The worktree it is checked out in.
    pub worktree: Option<PathBuf>,
}

impl Repository {
    /// The current state of a branch, or `None` if it does not exist.
    pub fn land_target(&self, branch: &str) -> Result<Option<LandTarget>, GitError> {
        if let Some(tip) = self.tip_if_not_checked_out(branch) {
            return Ok(Some(LandTarget { branch: branch.to_owned(), tip, worktree: None }));
        }
        let known = self.branch_refs(branch)?;
        let of = |tip| LandTarget { branch: branch.to_owned(), tip, worktree: known.used_by.clone() };
        Ok(known.tip.map(of))
    }

    /// The tip of a branch, if files show it and that it is checked out nowhere. Every landing asks, so this
    /// avoids a git process.
    fn tip_if_not_checked_out(&self, branch: &str) -> Option<Head> {
        let commit = Commit::new(BranchTips::from_common_dir(self.common()).commit_from_files(branch)?);
        let tree = self.trees().get(&commit)?;
        let worktrees = fs::read_dir(self.common().join("worktrees")).ok().into_iter().flatten().flatten();
        let heads = worktrees.map(|entry| entry.path()).chain([self.common().to_owned()]);
        let named = format!("ref: refs/heads/{branch}");
        let uses = |git_dir: PathBuf| {
            content(&git_dir.join("HEAD")).is_none_or(|head| head.trim_ascii_end() == named.as_bytes())
        };
        (!heads.into_iter().any(uses)).then_some(Head { commit, tree })
    }

    /// Whether a branch is at this commit, as far as ref files show.
    pub fn is_at(&self, branch: &str, commit: &Commit) -> bool {
        BranchTips::from_common_dir(self.common()).commit_from_files(branch).as_deref() == Some(commit.as_str())
    }

    /// Creates a branch for the work of a run to land on. Accepts an existing one.
    pub fn create_target(&self, branch: &str, at: &Commit) -> Result<(), GitError> {
        match self.with_lock(|| self.create_branch(branch, at)) {
            Err(_) if self.has_branch(branch)? => Ok(()),
            made => made,
        }
    }

    /// Path of the lock file that every landing holds, in any signoff process.
    pub fn landing_lock(&self) -> PathBuf {
        self.common().join("signoff/landing.lock")
    }

    /// For each of these files, the first line with a conflict marker that ends with one of the marks.
    pub fn conflict_marker_lines(
        &self,
        commit: &Commit,
        marks: &[String],
        files: &[PathBuf],
    ) -> Result<BTreeMap<PathBuf, u32>, GitError> {
        let words = marks.iter().flat_map(|mark| ["<<<<<<<", ">>>>>>>"].map(|sign| format!("{sign} {mark}")));
        let words = words.flat_map(|word| ["-e".to_owned(), word]);
        let asked = ["grep", "-z", "-n", "-a", "-F", "--full-name", "--no-color"];
        let command = self.isolated_git(self.checkout_place())?.args(asked).args(words).args([commit.as_str(), "--"]);
        let ended = files.iter().fold(command, |command, file| command.arg_path(file)).run()?;
        let found = ended.stdout.clone();
        ended.into_bool()?;
        Ok(parse_first_lines(&found, commit))
    }

    /// Merges a commit with the tip of its target. Changes no file and no ref.
    pub fn merge_onto(&self, onto: &Head, commit: &Commit, message: &str) -> Result<Merge, GitError> {
        let merged = self.merge_trees(None, (commit, &onto.commit))?;
        if merged.conflicts.is_empty() {
            // An unchanged tree alone does not show that the commit landed before.
            if merged.tree == onto.tree && self.is_ancestor(commit.as_str(), onto.commit.as_str())? {
                return Ok(Merge::Contained);
            }
            let commit = self.commit_tree(&merged.tree, &[&onto.commit, commit], message)?;
            return Ok(Merge::Clean(Head { commit, tree: merged.tree }));
        }
        let commit = self.commit_tree(&merged.tree, &[commit, &onto.commit], message)?;
        Ok(Merge::Conflicting { head: Head { commit, tree: merged.tree }, files: merged.conflicts })
    }

    /// Merges two commits' trees, relative to `base` or to their merge-base.
    pub(super) fn merge_trees(
        &self,
        base: Option<&Commit>,
        (ours, theirs): (&Commit, &Commit),
    ) -> Result<MergeTreeOutput, GitError> {
        let asked = ["merge-tree", "--write-tree", "-z", "--name-only", "--messages"];
        // An agent may have written merge attributes, so none are used.
        let command = self.isolated_git(self.checkout_place())?.env("GIT_ATTR_SOURCE", self.empty_tree()?);
        let base = base.map(|base| format!("--merge-base={base}"));
        let ended = command.args(asked).args(base).args([ours.as_str(), theirs.as_str()]).run()?;
        match ended.code() {
            Some(0 | 1) => Ok(MergeTreeOutput::parse(&ended.stdout)),
            Some(129) => Err(GitError::TooOldToMerge),
            Some(_) | None => Err(ended.into_error()),
        }
    }

    fn empty_tree(&self) -> Result<&'static str, GitError> {
        Ok(if self.isolated_dir()?.id_bytes() == 20 { EMPTY_TREE } else { EMPTY_TREE_SHA256 })
    }

    /// Creates a commit of a tree with these parents.
    pub(super) fn commit_tree(&self, tree: &Tree, parents: &[&Commit], message: &str) -> Result<Commit, GitError> {
        let parents = parents.iter().flat_map(|parent| ["-p", parent.as_str()]);
        let command = self.isolated_git(self.checkout_place())?.args(["commit-tree", "--no-gpg-sign"]).args(parents);
        let message = format!("{}\n", message.trim_end());
        let commit = Commit::new(command.args(["-m", &message, tree.as_str()]).read_line()?);
        self.trees().insert(&Head { commit: commit.clone(), tree: tree.clone() });
        Ok(commit)
    }

    /// Those of these commits that a branch does not contain.
    pub fn missing_from_branch(&self, branch: &str, commits: &[Commit]) -> Result<BTreeSet<Commit>, GitError> {
        self.missing_from(&format!("refs/heads/{branch}"), commits)
    }

    /// Those of these commits that a revision does not contain, whether the repository has them or not.
    pub fn missing_from(&self, revision: &str, commits: &[Commit]) -> Result<BTreeSet<Commit>, GitError> {
        if commits.is_empty() {
            return Ok(BTreeSet::new());
        }
        let wanted: String = commits.iter().map(|commit| format!("{commit}\n")).collect();
        let input = format!("{wanted}^{revision}\n");
        let ended =
            self.isolated_git(self.checkout_place())?.args(["rev-list", "--stdin"]).input(input.clone()).run()?;
        let (listed, gone) = match ended.code() {
            Some(0) => (ended.stdout, BTreeSet::new()),
            // Git names only the first missing commit.
            Some(_) | None => {
                let asked = ["rev-list", "--ignore-missing", "--stdin"];
                let listed = self.isolated_git(self.checkout_place())?.args(asked).input(input).read()?;
                (listed, self.missing_commits(commits)?)
            }
        };
        let listed: BTreeSet<Commit> = String::from_utf8_lossy(&listed).lines().map(Commit::new).collect();
        let is_missing = |commit: &&Commit| listed.contains(*commit) || gone.contains(*commit);
        Ok(commits.iter().filter(is_missing).cloned().collect())
    }

    /// Those of these commits that the repository does not have.
    pub fn missing_commits(&self, commits: &[Commit]) -> Result<BTreeSet<Commit>, GitError> {
        let asked: String = commits.iter().map(|commit| format!("{commit}\n")).collect();
        let command = self.isolated_git(self.checkout_place())?.args(["cat-file", "--batch-check"]).input(asked);
        let printed = command.read()?;
        let printed = String::from_utf8_lossy(&printed);
        Ok(printed.lines().filter_map(|line| line.strip_suffix(" missing")).map(Commit::new).collect())
    }

    /// Moves a branch if it is still at `from`. Returns `false` if it has moved.
    pub fn advance_branch(&self, branch: &str, from: &Commit, to: &Commit) -> Result<bool, GitError> {
        let transaction = format!("update refs/heads/{branch}\0{to}\0{from}\0");
        let asked = ["update-ref", "-m", "signoff: landed", "-z", "--stdin"];
        let ended = self.isolated_git(self.checkout_place())?.args(asked).input(transaction).run()?;
        let stderr = ended.stderr();
        let moved = stderr.contains("but expected") || stderr.contains("unable to resolve reference");
        if moved { Ok(false) } else { ended.success().map(|_| true) }
    }
}

/// Ids of the empty tree, which git knows without an object.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
const EMPTY_TREE_SHA256: &str = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321";

/// Parsed output of `git merge-tree`.
#[derive(Debug)]
pub(super) struct MergeTreeOutput {
    pub(super) tree: Tree,
    /// Empty if there is no conflict.
    pub(super) conflicts: Vec<GitConflict>,
}

impl MergeTreeOutput {
    /// Parses the tree, the conflicting files, an empty field, and messages with the files they refer to.
    fn parse(printed: &[u8]) -> Self {
        let mut fields = printed.split(|&byte| byte == 0);
        let tree = Tree::new(String::from_utf8_lossy(fields.next().unwrap_or_default()).trim_end());
        let paths: BTreeSet<PathBuf> = fields.by_ref().take_while(|name| !name.is_empty()).map(path).collect();
        let messages = parse_messages(&mut fields);
        let file = |path: PathBuf| {
            let about = messages.iter().filter(|(paths, _)| paths.contains(&path));
            let what: Vec<&str> = about.map(|(_, message)| message.as_str()).collect();
            GitConflict { message: what.join("; "), path }
        };
        Self { tree, conflicts: paths.into_iter().map(file).collect() }
    }
}

/// Parses `git grep -z -n` (commit and path, line, text) into the first line of each file.
fn parse_first_lines(printed: &[u8], commit: &Commit) -> BTreeMap<PathBuf, u32> {
    let mut lines = BTreeMap::new();
    let prefix = format!("{commit}:");
    for record in printed.split(|&byte| byte == b'\n') {
        let mut fields = record.splitn(3, |&byte| byte == 0);
        let name = fields.next().and_then(|name| name.strip_prefix(prefix.as_bytes()));
        let line = fields.next().and_then(|line| std::str::from_utf8(line).ok()?.parse().ok());
        if let Some((name, line)) = name.zip(line) {
            lines.entry(path(name)).or_insert(line);
        }
    }
    lines
}

type ConflictMessage = (Vec<PathBuf>, String);

/// Parses conflict messages: number of paths, the paths, the kind, the message.
fn parse_messages<'a>(fields: &mut impl Iterator<Item = &'a [u8]>) -> Vec<ConflictMessage> {
    let mut messages = Vec::new();
    while let Some(count) = fields.next().and_then(|count| std::str::from_utf8(count).ok()?.parse().ok()) {
        let paths: Vec<PathBuf> = fields.by_ref().take(count).map(path).collect();
        let (kind, message) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        let message = String::from_utf8_lossy(message);
        let message = message.trim_end().trim_start_matches("CONFLICT ").to_owned();
        if kind.starts_with(b"CONFLICT") {
            messages.push((paths, message));
        }
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflict_messages_are_grouped_by_file() {
        let printed = b"ab12\0f\0h\0\0\
            1\0f\0Auto-merging\0Auto-merging f\n\0\
            1\0f\0CONFLICT (contents)\0CONFLICT (content): Merge conflict in f\n\0\
            2\0h\0g\0CONFLICT (rename/delete)\0CONFLICT (rename/delete): g renamed to h in 1, but deleted in 2.\n\0";
        let merged = MergeTreeOutput::parse(printed);
        assert_eq!(merged.tree, Tree::new("ab12"));
        let conflict = |path: &str, what: &str| GitConflict { path: path.into(), message: what.to_owned() };
        assert_eq!(
            merged.conflicts,
            [
                conflict("f", "(content): Merge conflict in f"),
                conflict("h", "(rename/delete): g renamed to h in 1, but deleted in 2."),
            ]
        );
    }

    #[test]
    fn a_clean_merge_names_no_file() {
        assert_eq!(MergeTreeOutput::parse(b"ab12\0\0").conflicts, []);
    }
}
