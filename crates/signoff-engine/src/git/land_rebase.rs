//! Rebases commits onto a target, instead of a merge commit.
//!
//! An approval applies to changes. If the rebased changes have the same patch id, the approval still holds;
//! otherwise they are reviewed again.

use signoff_core::ids::{Commit, Tree};
use signoff_core::machine::Head;

use super::{GitError, Merge, Repository};

/// The result of rebasing a branch onto its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replay {
    /// The same changes, or the result of a merge.
    Merged(Merge),
    /// The commits apply, but their changes differ from the approved ones.
    Different(Head),
}

/// A commit to be rebased.
#[derive(Debug)]
struct OriginalCommit {
    commit: Commit,
    parents: Vec<Commit>,
    author: [(&'static str, String); 3],
    message: String,
}

impl Repository {
    /// Rebases the commits of a branch onto its target, one by one. Changes no file and no ref.
    ///
    /// A branch that contains a merge with its target, made to resolve a conflict, becomes one commit, because
    /// its own commits do not apply without the merge.
    pub fn replay_onto(&self, onto: &Head, commit: &Commit, message: &str) -> Result<Replay, GitError> {
        let originals = self.originals(onto, commit)?;
        let Some(first) = originals.first() else { return Ok(Replay::Merged(Merge::Contained)) };
        let is_line = originals.iter().all(|original| original.parents.len() == 1);
        let replayed = if is_line { self.rebase_each(onto, &originals)? } else { None };
        let head = match replayed {
            Some(head) => head,
            None => match self.merge_onto(onto, commit, message)? {
                Merge::Clean(merged) => self.squash(onto, &merged, first)?,
                merge @ (Merge::Contained | Merge::Conflicting { .. }) => return Ok(Replay::Merged(merge)),
            },
        };
        if head.commit == onto.commit {
            return Ok(Replay::Merged(Merge::Contained));
        }
        let same = head.commit == *commit || self.is_same_change(onto, commit, &head)?;
        Ok(if same { Replay::Merged(Merge::Clean(head)) } else { Replay::Different(head) })
    }

    /// Returns `None` if one of them does not apply.
    fn rebase_each(&self, onto: &Head, originals: &[OriginalCommit]) -> Result<Option<Head>, GitError> {
        let mut tip = onto.clone();
        for original in originals {
            let Some(parent) = original.parents.first() else { return Ok(None) };
            let merged = self.merge_trees(Some(parent), (&tip.commit, &original.commit))?;
            if !merged.conflicts.is_empty() {
                return Ok(None);
            }
            let commit = match (*parent == tip.commit, merged.tree == tip.tree) {
                (true, _) => original.commit.clone(),
                // The target already contains its changes.
                (false, true) => continue,
                (false, false) => self.recommit(&merged.tree, &tip.commit, original)?,
            };
            tip = Head { commit, tree: merged.tree };
        }
        Ok(Some(tip))
    }

    fn squash(&self, onto: &Head, merged: &Head, first: &OriginalCommit) -> Result<Head, GitError> {
        let commit = self.recommit(&merged.tree, &onto.commit, first)?;
        Ok(Head { commit, tree: merged.tree.clone() })
    }

    /// Keeps author, date and message; only the committer changes. If git rejects the author, we become the author.
    fn recommit(&self, tree: &Tree, parent: &Commit, original: &OriginalCommit) -> Result<Commit, GitError> {
        match self.commit_with_author(&original.author, (tree, parent), &original.message) {
            Err(GitError::Failed { .. } | GitError::Io { .. }) => {
                self.commit_with_author(&[], (tree, parent), &original.message)
            }
            made => made,
        }
    }

    fn commit_with_author(
        &self,
        author: &[(&'static str, String)],
        (tree, parent): (&Tree, &Commit),
        message: &str,
    ) -> Result<Commit, GitError> {
        let command = self.isolated_git(self.checkout_place())?;
        let command = author.iter().fold(command, |command, (name, value)| command.env(name, value));
        let asked = ["commit-tree", "--no-gpg-sign", "-p", parent.as_str(), tree.as_str()];
        // A message may exceed the length limit of an argument.
        Ok(Commit::new(command.args(asked).input(message).read_line()?))
    }

    /// The commits that the target does not contain, oldest first.
    fn originals(&self, onto: &Head, commit: &Commit) -> Result<Vec<OriginalCommit>, GitError> {
        let range = format!("{}..{commit}", onto.commit);
        let asked = ["log", "-z", "--reverse", "--topo-order", "--no-show-signature", "--date=raw"];
        let format = "--format=%H%n%P%n%an%n%ae%n%ad%n%B";
        let printed = self.isolated_git(self.checkout_place())?.args(asked).args([format, &range, "--"]).read()?;
        let printed = String::from_utf8_lossy(&printed);
        Ok(printed.split('\0').filter_map(OriginalCommit::parse).collect())
    }

    /// Whether a branch makes the same changes on top of its target as on its own base.
    fn is_same_change(&self, onto: &Head, commit: &Commit, head: &Head) -> Result<bool, GitError> {
        let base = self.merge_base(onto.commit.as_str(), commit.as_str())?;
        let Some(base) = base else { return Ok(false) };
        Ok(self.patch_id(&base, commit)? == self.patch_id(&onto.commit, &head.commit)?)
    }

    fn patch_id(&self, from: &Commit, to: &Commit) -> Result<String, GitError> {
        let asked = ["diff-tree", "-r", "-p", "--full-index", "--no-ext-diff", "--no-textconv", "--no-renames"];
        let patch = self.isolated_git(self.checkout_place())?.args(asked).args([from.as_str(), to.as_str()]).read()?;
        let printed =
            self.isolated_git(self.checkout_place())?.args(["patch-id", "--stable"]).input(patch).read_line()?;
        Ok(printed.split(' ').next().unwrap_or_default().to_owned())
    }

    /// Whether a branch contains the changes of all commits up to this one, under any commit id.
    pub fn contains_changes(&self, branch: &str, commit: &Commit) -> Result<bool, GitError> {
        let range = format!("refs/heads/{branch}...{commit}");
        let asked = ["rev-list", "--cherry-pick", "--right-only", "--no-merges", "--max-count=1"];
        let missing = self.isolated_git(self.checkout_place())?.args(asked).args([&range, "--"]).read()?;
        Ok(missing.is_empty())
    }
}

impl OriginalCommit {
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
