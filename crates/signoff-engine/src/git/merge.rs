//! Merges a branch and its target without a worktree: writes only objects until a ref moves.
//!
//! A merge with conflicts is an object too: its tree contains the conflict markers, which a fixer edits away.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use signoff_core::ids::{Commit, Tree};
use signoff_core::machine::Head;

use super::repository::path;
use super::{GitError, Repository};

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

impl Repository {
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
        let command = self.isolated_git(asked)?.args(words).args([commit.as_str(), "--"]);
        let ended = files.iter().fold(command, |command, file| command.arg_path(file)).run()?;
        let found = ended.stdout.clone();
        ended.into_bool()?;
        Ok(parse_first_lines(&found, commit))
    }

    /// Merges a commit with the tip of its target. Changes no file and no ref.
    pub fn merge_onto(&self, onto: &Head, commit: &Commit, message: &str) -> Result<Merge, GitError> {
        let merged = self.merge_trees(None, commit, &onto.commit)?;
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
        ours: &Commit,
        theirs: &Commit,
    ) -> Result<MergeTreeOutput, GitError> {
        let base = base.map(|base| format!("--merge-base={base}"));
        let command = self.isolated_git(["merge-tree", "--write-tree", "-z", "--name-only", "--messages"])?.args(base);
        // An agent may have written merge attributes, so none are used.
        let command = command.env("GIT_ATTR_SOURCE", self.empty_tree()?);
        let ended = command.args([ours.as_str(), theirs.as_str()]).run()?;
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
        let command = self.isolated_git(["commit-tree", "--no-gpg-sign"])?.args(parents);
        let message = format!("{}\n", message.trim_end());
        let commit = Commit::new(command.args(["-m", &message, tree.as_str()]).read_line()?);
        self.trees().insert(&Head { commit: commit.clone(), tree: tree.clone() });
        Ok(commit)
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
