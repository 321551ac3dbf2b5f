//! The same changes on top of a target, in place of a merge commit.
//!
//! An approval is of changes. Where they are the same on top of the target, by their patch id, it still holds; where
//! they are not, somebody has to look again.

use signoff_core::ids::{Commit, Tree};
use signoff_core::machine::Head;

use super::{GitError, Merge, Repository};

/// What came of putting the commits of a branch on top of its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replay {
    /// As in a merge.
    As(Merge),
    /// It fits, but what it changes is not what was approved.
    Different(Head),
}

/// A commit to be made again.
#[derive(Debug)]
struct Original {
    commit: Commit,
    parents: Vec<Commit>,
    author: [(&'static str, String); 3],
    message: String,
}

impl Repository {
    /// Puts the commits of a branch on top of its target, one by one. No file and no ref is changed.
    ///
    /// A branch that was merged with its target before, to resolve a conflict, comes as one commit: its own commits
    /// alone do not fit.
    pub fn replay_onto(&self, onto: &Head, commit: &Commit, message: &str) -> Result<Replay, GitError> {
        let originals = self.originals(onto, commit)?;
        let Some(first) = originals.first() else { return Ok(Replay::As(Merge::Contained)) };
        let is_line = originals.iter().all(|original| original.parents.len() == 1);
        let replayed = if is_line { self.one_by_one(onto, &originals)? } else { None };
        let head = match replayed {
            Some(head) => head,
            None => match self.merge_onto(onto, commit, message)? {
                Merge::Clean(merged) => self.as_one(onto, &merged, first)?,
                merge @ (Merge::Contained | Merge::Conflicting { .. }) => return Ok(Replay::As(merge)),
            },
        };
        if head.commit == onto.commit {
            return Ok(Replay::As(Merge::Contained));
        }
        let same = head.commit == *commit || self.is_same_change(onto, commit, &head)?;
        Ok(if same { Replay::As(Merge::Clean(head)) } else { Replay::Different(head) })
    }

    /// None if one of them does not fit.
    fn one_by_one(&self, onto: &Head, originals: &[Original]) -> Result<Option<Head>, GitError> {
        let mut tip = onto.clone();
        for original in originals {
            let Some(parent) = original.parents.first() else { return Ok(None) };
            let merged = self.merge_trees(Some(parent), (&tip.commit, &original.commit))?;
            if !merged.files.is_empty() {
                return Ok(None);
            }
            let commit = match (*parent == tip.commit, merged.tree == tip.tree) {
                (true, _) => original.commit.clone(),
                // Its changes are there already.
                (false, true) => continue,
                (false, false) => self.commit_again(&merged.tree, &tip.commit, original)?,
            };
            tip = Head { commit, tree: merged.tree };
        }
        Ok(Some(tip))
    }

    fn as_one(&self, onto: &Head, merged: &Head, first: &Original) -> Result<Head, GitError> {
        let commit = self.commit_again(&merged.tree, &onto.commit, first)?;
        Ok(Head { commit, tree: merged.tree.clone() })
    }

    /// Who wrote it, when and why stays; only who commits it is another. An author that git does not take, which a
    /// commit can have all the same, is us.
    fn commit_again(&self, tree: &Tree, parent: &Commit, original: &Original) -> Result<Commit, GitError> {
        match self.commit_by(&original.author, (tree, parent), &original.message) {
            Err(GitError::Failed { .. } | GitError::Io { .. }) => {
                self.commit_by(&[], (tree, parent), &original.message)
            }
            made => made,
        }
    }

    fn commit_by(
        &self,
        author: &[(&'static str, String)],
        (tree, parent): (&Tree, &Commit),
        message: &str,
    ) -> Result<Commit, GitError> {
        let command = self.sealed(self.here())?;
        let command = author.iter().fold(command, |command, (name, value)| command.env(name, value));
        let asked = ["commit-tree", "--no-gpg-sign", "-p", parent.as_str(), tree.as_str()];
        // A message may be longer than an argument.
        Ok(Commit::new(command.args(asked).input(message).read_line()?))
    }

    /// The commits that the target does not have, oldest first.
    fn originals(&self, onto: &Head, commit: &Commit) -> Result<Vec<Original>, GitError> {
        let range = format!("{}..{commit}", onto.commit);
        let asked = ["log", "-z", "--reverse", "--topo-order", "--no-show-signature", "--date=raw"];
        let format = "--format=%H%n%P%n%an%n%ae%n%ad%n%B";
        let printed = self.sealed(self.here())?.args(asked).args([format, &range, "--"]).read()?;
        let printed = String::from_utf8_lossy(&printed);
        Ok(printed.split('\0').filter_map(Original::parse).collect())
    }

    /// Whether a branch changes the same on top of its target as where it was approved.
    fn is_same_change(&self, onto: &Head, commit: &Commit, head: &Head) -> Result<bool, GitError> {
        let base = self.merge_base(onto.commit.as_str(), commit.as_str())?;
        let Some(base) = base else { return Ok(false) };
        Ok(self.patch_id(&base, commit)? == self.patch_id(&onto.commit, &head.commit)?)
    }

    fn patch_id(&self, from: &Commit, to: &Commit) -> Result<String, GitError> {
        let asked =
            ["diff-tree", "-r", "-p", "--full-index", "--no-ext-diff", "--no-textconv", "--no-renames"];
        let patch = self.sealed(self.here())?.args(asked).args([from.as_str(), to.as_str()]).read()?;
        let printed = self.sealed(self.here())?.args(["patch-id", "--stable"]).input(patch).read_line()?;
        Ok(printed.split(' ').next().unwrap_or_default().to_owned())
    }

    /// Whether a branch has the changes of all commits that lead to this one, under whatever name.
    pub fn has_changes_of(&self, branch: &str, commit: &Commit) -> Result<bool, GitError> {
        let range = format!("refs/heads/{branch}...{commit}");
        let asked = ["rev-list", "--cherry-pick", "--right-only", "--no-merges", "--max-count=1"];
        let missing = self.sealed(self.here())?.args(asked).args([&range, "--"]).read()?;
        Ok(missing.is_empty())
    }
}

impl Original {
    fn parse(record: &str) -> Option<Self> {
        let mut fields = record.splitn(6, '\n');
        let mut next = || fields.next();
        let (commit, parents) = (Commit::new(next()?.trim()), next()?);
        let parents = parents.split_whitespace().map(Commit::new).collect();
        let author = [
            ("GIT_AUTHOR_NAME", next()?.to_owned()),
            ("GIT_AUTHOR_EMAIL", next()?.to_owned()),
            ("GIT_AUTHOR_DATE", next()?.to_owned()),
        ];
        let message = format!("{}\n", next()?.trim_end());
        Some(Self { commit, parents, author, message })
    }
}
