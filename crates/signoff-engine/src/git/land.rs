//! Putting a branch and its target together, without any worktree: only objects are written until a ref moves.
//!
//! A merge that does not fit is an object too: its tree holds the conflict markers. Whoever resolves it edits files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use signoff_core::ids::{Commit, Tree};
use signoff_core::machine::Head;

use super::disk::content;
use super::repository::path;
use super::{GitError, Repository, Tips};

/// What came of putting a branch and its target together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merge {
    /// Everything is in the target already.
    Contained,
    /// On top of the target's tip.
    Clean(Head),
    /// On top of the branch: the tree holds the conflict markers.
    Conflicting { head: Head, files: Vec<Conflict> },
}

/// A file that both sides changed in ways that exclude each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    pub path: PathBuf,
    /// What git says about it; the two sides are named by their commits.
    pub what: String,
}

/// A branch that work is to be brought into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub branch: String,
    pub tip: Head,
    /// The worktree it is checked out in.
    pub used_by: Option<PathBuf>,
}

impl Repository {
    /// A branch as it is now; none if there is no such branch.
    pub fn target(&self, branch: &str) -> Result<Option<Target>, GitError> {
        if let Some(tip) = self.tip_nobody_uses(branch) {
            return Ok(Some(Target { branch: branch.to_owned(), tip, used_by: None }));
        }
        let known = self.known(branch)?;
        let of = |tip| Target { branch: branch.to_owned(), tip, used_by: known.used_by.clone() };
        Ok(known.tip.map(of))
    }

    /// The tip of a branch, where files tell it and say that it is checked out nowhere. One landing follows another,
    /// and each of them asks.
    fn tip_nobody_uses(&self, branch: &str) -> Option<Head> {
        let commit = Commit::new(Tips::of_common(self.common()).of_file(branch)?);
        let tree = self.trees().of(&commit)?;
        let worktrees = fs::read_dir(self.common().join("worktrees")).ok().into_iter().flatten().flatten();
        let heads = worktrees.map(|entry| entry.path()).chain([self.common().to_owned()]);
        let named = format!("ref: refs/heads/{branch}");
        let uses = |git_dir: PathBuf| {
            content(&git_dir.join("HEAD")).is_none_or(|head| head.trim_ascii_end() == named.as_bytes())
        };
        (!heads.into_iter().any(uses)).then_some(Head { commit, tree })
    }

    /// Whether a branch is at this commit, as far as files tell it.
    pub fn is_at(&self, branch: &str, commit: &Commit) -> bool {
        Tips::of_common(self.common()).of_file(branch).as_deref() == Some(commit.as_str())
    }

    /// Makes a branch of ours for the work of a run to be brought into. It may be there already.
    pub fn make_target(&self, branch: &str, at: &Commit) -> Result<(), GitError> {
        match self.in_turn(|| self.create_branch(branch, at)) {
            Err(_) if self.has_branch(branch)? => Ok(()),
            made => made,
        }
    }

    /// Locked by whoever lands something, in whatever program.
    pub fn landing_lock(&self) -> PathBuf {
        self.common().join("signoff/landing.lock")
    }

    /// The first line of each of these files that has one of the marks at the end of a conflict marker.
    pub fn marked_lines(
        &self,
        commit: &Commit,
        marks: &[String],
        files: &[PathBuf],
    ) -> Result<BTreeMap<PathBuf, u32>, GitError> {
        let words = marks.iter().flat_map(|mark| ["<<<<<<<", ">>>>>>>"].map(|sign| format!("{sign} {mark}")));
        let words = words.flat_map(|word| ["-e".to_owned(), word]);
        let asked = ["grep", "-z", "-n", "-a", "-F", "--full-name", "--no-color"];
        let command = self.sealed(self.here())?.args(asked).args(words).args([commit.as_str(), "--"]);
        let ended = files.iter().fold(command, |command, file| command.arg_path(file)).run()?;
        let found = ended.stdout.clone();
        ended.yes()?;
        Ok(first_lines(&found, commit))
    }

    /// Merges a commit onto the tip of its target. No file and no ref is changed.
    pub fn merge_onto(&self, onto: &Head, commit: &Commit, message: &str) -> Result<Merge, GitError> {
        let merged = self.merge_trees(None, (commit, &onto.commit))?;
        if merged.files.is_empty() {
            // Nothing new in the tree is the rule only where it landed before.
            if merged.tree == onto.tree && self.is_ancestor(commit.as_str(), onto.commit.as_str())? {
                return Ok(Merge::Contained);
            }
            let commit = self.commit_tree(&merged.tree, &[&onto.commit, commit], message)?;
            return Ok(Merge::Clean(Head { commit, tree: merged.tree }));
        }
        let commit = self.commit_tree(&merged.tree, &[commit, &onto.commit], message)?;
        Ok(Merge::Conflicting { head: Head { commit, tree: merged.tree }, files: merged.files })
    }

    /// The tree of two commits together; seen from `base`, or from where they parted.
    pub(super) fn merge_trees(
        &self,
        base: Option<&Commit>,
        (ours, theirs): (&Commit, &Commit),
    ) -> Result<Merged, GitError> {
        let asked = ["merge-tree", "--write-tree", "-z", "--name-only", "--messages"];
        // What files say about how they are merged is what an agent may have written there.
        let command = self.sealed(self.here())?.env("GIT_ATTR_SOURCE", self.empty_tree()?);
        let base = base.map(|base| format!("--merge-base={base}"));
        let ended = command.args(asked).args(base).args([ours.as_str(), theirs.as_str()]).run()?;
        match ended.code() {
            Some(0 | 1) => Ok(Merged::parse(&ended.stdout)),
            Some(129) => Err(GitError::TooOldToMerge),
            Some(_) | None => Err(ended.failure()),
        }
    }

    fn empty_tree(&self) -> Result<&'static str, GitError> {
        Ok(if self.seal()?.id_bytes() == 20 { EMPTY_TREE } else { EMPTY_TREE_SHA256 })
    }

    /// A commit of a tree with these parents.
    pub(super) fn commit_tree(
        &self,
        tree: &Tree,
        parents: &[&Commit],
        message: &str,
    ) -> Result<Commit, GitError> {
        let parents = parents.iter().flat_map(|parent| ["-p", parent.as_str()]);
        let command = self.sealed(self.here())?.args(["commit-tree", "--no-gpg-sign"]).args(parents);
        let message = format!("{}\n", message.trim_end());
        let commit = Commit::new(command.args(["-m", &message, tree.as_str()]).read_line()?);
        self.trees().keep(&Head { commit: commit.clone(), tree: tree.clone() });
        Ok(commit)
    }

    /// Those of these commits that a branch does not have.
    pub fn not_in(&self, branch: &str, commits: &[Commit]) -> Result<BTreeSet<Commit>, GitError> {
        self.missing_from(&format!("refs/heads/{branch}"), commits)
    }

    /// Those of these commits that are not in a revision, whether git has them or not.
    pub fn missing_from(&self, revision: &str, commits: &[Commit]) -> Result<BTreeSet<Commit>, GitError> {
        if commits.is_empty() {
            return Ok(BTreeSet::new());
        }
        let wanted: String = commits.iter().map(|commit| format!("{commit}\n")).collect();
        let input = format!("{wanted}^{revision}\n");
        let ended = self.sealed(self.here())?.args(["rev-list", "--stdin"]).input(input.clone()).run()?;
        let (listed, gone) = match ended.code() {
            Some(0) => (ended.stdout, BTreeSet::new()),
            // Git names only the first commit that it does not have.
            Some(_) | None => {
                let asked = ["rev-list", "--ignore-missing", "--stdin"];
                let listed = self.sealed(self.here())?.args(asked).input(input).read()?;
                (listed, self.gone(commits)?)
            }
        };
        let listed: BTreeSet<Commit> = String::from_utf8_lossy(&listed).lines().map(Commit::new).collect();
        let is_missing = |commit: &&Commit| listed.contains(*commit) || gone.contains(*commit);
        Ok(commits.iter().filter(is_missing).cloned().collect())
    }

    /// Those of these commits that git does not have.
    pub fn gone(&self, commits: &[Commit]) -> Result<BTreeSet<Commit>, GitError> {
        let asked: String = commits.iter().map(|commit| format!("{commit}\n")).collect();
        let command = self.sealed(self.here())?.args(["cat-file", "--batch-check"]).input(asked);
        let printed = command.read()?;
        let printed = String::from_utf8_lossy(&printed);
        Ok(printed.lines().filter_map(|line| line.strip_suffix(" missing")).map(Commit::new).collect())
    }

    /// Moves a branch, if it still is where it was. False: somebody else moved it.
    pub fn advance(&self, branch: &str, from: &Commit, to: &Commit) -> Result<bool, GitError> {
        let transaction = format!("update refs/heads/{branch}\0{to}\0{from}\0");
        let asked = ["update-ref", "-m", "signoff: landed", "-z", "--stdin"];
        let ended = self.sealed(self.here())?.args(asked).input(transaction).run()?;
        let said = ended.stderr();
        let moved = said.contains("but expected") || said.contains("unable to resolve reference");
        if moved { Ok(false) } else { ended.success().map(|_| true) }
    }
}

/// What no repository needs to hold for git to know it.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
const EMPTY_TREE_SHA256: &str = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321";

/// What `git merge-tree` printed.
#[derive(Debug)]
pub(super) struct Merged {
    pub(super) tree: Tree,
    /// None if it fits.
    pub(super) files: Vec<Conflict>,
}

impl Merged {
    /// The tree, the files in conflict, an empty field; then messages, each with the files it is about.
    fn parse(printed: &[u8]) -> Self {
        let mut fields = printed.split(|&byte| byte == 0);
        let tree = Tree::new(String::from_utf8_lossy(fields.next().unwrap_or_default()).trim_end());
        let paths: BTreeSet<PathBuf> =
            fields.by_ref().take_while(|name| !name.is_empty()).map(path).collect();
        let messages = messages(&mut fields);
        let file = |path: PathBuf| {
            let about = messages.iter().filter(|(paths, _)| paths.contains(&path));
            let what: Vec<&str> = about.map(|(_, message)| message.as_str()).collect();
            Conflict { what: what.join("; "), path }
        };
        Self { tree, files: paths.into_iter().map(file).collect() }
    }
}

/// Of each file the first line of what `git grep -z -n` printed: commit and path, line, text.
fn first_lines(printed: &[u8], commit: &Commit) -> BTreeMap<PathBuf, u32> {
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

type Message = (Vec<PathBuf>, String);

/// The messages about conflicts: how many paths, the paths, a word for it, the message.
fn messages<'a>(fields: &mut impl Iterator<Item = &'a [u8]>) -> Vec<Message> {
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
    fn what_git_says_of_a_merge_is_sorted_by_file() {
        let printed = b"ab12\0f\0h\0\0\
            1\0f\0Auto-merging\0Auto-merging f\n\0\
            1\0f\0CONFLICT (contents)\0CONFLICT (content): Merge conflict in f\n\0\
            2\0h\0g\0CONFLICT (rename/delete)\0CONFLICT (rename/delete): g renamed to h in 1, but deleted in 2.\n\0";
        let merged = Merged::parse(printed);
        assert_eq!(merged.tree, Tree::new("ab12"));
        let conflict = |path: &str, what: &str| Conflict { path: path.into(), what: what.to_owned() };
        assert_eq!(
            merged.files,
            [
                conflict("f", "(content): Merge conflict in f"),
                conflict("h", "(rename/delete): g renamed to h in 1, but deleted in 2."),
            ]
        );
    }

    #[test]
    fn a_merge_that_fits_names_no_file() {
        assert_eq!(Merged::parse(b"ab12\0\0").files, []);
    }
}
