//! Rebases commits onto a target, and compares their patches.
//!
//! An approval applies to changes. If the rebased changes have the same patch id, the approval still holds;
//! otherwise they are reviewed again.

use std::collections::HashMap;

use sha2::{Digest, Sha256};
use signoff_core::ids::{Commit, Tree};
use signoff_core::machine::Head;
use signoff_core::patch::{PatchLineKind, PatchMark, PatchReader};

use super::branch::is_id;
use super::repository::id_lines;
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
            let merged = self.merge_trees(Some(parent), &tip.commit, &original.commit)?;
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
        let commit = |author: &[(&str, String)]| {
            let command = self.isolated_git(["commit-tree", "--no-gpg-sign", "-p", parent.as_str(), tree.as_str()])?;
            let command = author.iter().fold(command, |command, (name, value)| command.env(name, value));
            // A message may exceed the length limit of an argument.
            command.input(original.message.as_str()).read_line().map(Commit::new)
        };
        match commit(&original.author) {
            Err(GitError::Failed { .. } | GitError::Io { .. }) => commit(&[]),
            made => made,
        }
    }

    /// The commits that the target does not contain, oldest first.
    fn originals(&self, onto: &Head, commit: &Commit) -> Result<Vec<OriginalCommit>, GitError> {
        let range = format!("{}..{commit}", onto.commit);
        let asked = ["log", "-z", "--reverse", "--topo-order", "--no-show-signature", "--date=raw"];
        let format = "--format=%H%n%P%n%an%n%ae%n%ad%n%B";
        let printed = self.isolated_git(asked)?.args([format, &range, "--"]).read_text()?;
        Ok(printed.split('\0').filter_map(OriginalCommit::parse).collect())
    }

    /// Whether a branch makes the same changes on top of its target as on its own base.
    fn is_same_change(&self, onto: &Head, commit: &Commit, head: &Head) -> Result<bool, GitError> {
        let base = self.merge_base(onto.commit.as_str(), commit.as_str())?;
        let Some(base) = base else { return Ok(false) };
        Ok(self.patch_id(&base, commit)? == self.patch_id(&onto.commit, &head.commit)?)
    }

    fn patch_id(&self, from: &Commit, to: &Commit) -> Result<String, GitError> {
        let patch = self.isolated_git(DIFF_TREE_ARGS)?.args([from.as_str(), to.as_str()]).read()?;
        let printed = self.isolated_git(["patch-id", "--stable"])?.input(patch).read_line()?;
        Ok(printed.split(' ').next().unwrap_or_default().to_owned())
    }

    /// Whether a branch contains the changes of all commits up to this one, under any commit id.
    pub fn contains_changes(&self, branch: &str, commit: &Commit) -> Result<bool, GitError> {
        let range = format!("refs/heads/{branch}...{commit}");
        let asked = ["rev-list", "--cherry-pick", "--right-only", "--no-merges", "--max-count=1"];
        let missing = self.isolated_git(asked)?.args([&range, "--"]).read()?;
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

const DIFF_TREE_ARGS: [&str; 7] =
    ["diff-tree", "-r", "-p", "--full-index", "--no-ext-diff", "--no-textconv", "--no-renames"];

/// The lines of a commit's patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitPatch {
    lines: Vec<Vec<u8>>,
}

/// Equal for patches that make the same change, independent of its position in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PatchDigest([u8; 32]);

impl Repository {
    /// The patches of commits that have one parent and are not empty. Other commits have no entry.
    pub fn patches(&self, commits: &[Commit]) -> Result<HashMap<Commit, CommitPatch>, GitError> {
        let printed = self.isolated_git(DIFF_TREE_ARGS)?.args(["--stdin"]).input(id_lines(commits)).read()?;
        let mut patches: HashMap<Commit, CommitPatch> = HashMap::new();
        let mut current = None;
        for line in lines(&printed) {
            // No line of a patch looks like an id.
            match std::str::from_utf8(&line).ok().filter(|line| is_id(line)) {
                Some(id) => current = Some(Commit::new(id)),
                None => {
                    if let Some(commit) = &current {
                        let patch = patches.entry(commit.clone()).or_insert(CommitPatch { lines: Vec::new() });
                        patch.lines.push(line);
                    }
                }
            }
        }
        Ok(patches)
    }

    /// The patch from one commit to another.
    pub fn patch_between(&self, from: &Commit, to: &Commit) -> Result<CommitPatch, GitError> {
        let printed = self.isolated_git(DIFF_TREE_ARGS)?.args([from.as_str(), to.as_str()]).read()?;
        Ok(CommitPatch { lines: lines(&printed).collect() })
    }
}

impl CommitPatch {
    pub fn digest(&self) -> PatchDigest {
        let mut digest = Sha256::new();
        let kind = |line: &Vec<u8>| PatchReader::default().read(line).0;
        for (at, line) in self.lines.iter().enumerate() {
            // Ignores positions, and blob ids if the patch shows the lines.
            let line: &[u8] = match (kind(line), self.lines.get(at + 1).map(kind)) {
                (PatchLineKind::Header("index "), Some(PatchLineKind::Header("--- "))) => b"index",
                (PatchLineKind::Hunk, _) => b"@@",
                (_, _) => line,
            };
            digest.update(line);
            digest.update(b"\n");
        }
        PatchDigest(digest.finalize().into())
    }

    /// The replaced lines, each with its replacement. `None` if the patch makes any other change.
    pub fn replaced_lines(&self) -> Option<Vec<(&[u8], &[u8])>> {
        let (mut pairs, mut old, mut new) = (Vec::new(), Vec::new(), Vec::new());
        let mut ends = [false; 2];
        let mut reader = PatchReader::default();
        for line in self.lines.iter().map(Vec::as_slice).chain([b"diff --git ".as_slice()]) {
            let (kind, prefix) = reader.read(line);
            let text = &line[prefix..];
            match kind {
                PatchLineKind::Header("index ") => {}
                PatchLineKind::Header("--- ") if is_path_in(b"a/", text) => {}
                PatchLineKind::Header("+++ ") if is_path_in(b"b/", text) => {}
                PatchLineKind::Content(PatchMark::Removed) => old.push(text),
                PatchLineKind::Content(PatchMark::Added) => new.push(text),
                // The missing newline at the end must be on both sides; otherwise the patch changes more.
                PatchLineKind::Content(PatchMark::Remark) => ends[usize::from(!new.is_empty())] ^= !old.is_empty(),
                PatchLineKind::File | PatchLineKind::Hunk | PatchLineKind::Content(PatchMark::Kept) => {
                    if line.is_empty() || old.len() != new.len() || ends[0] != ends[1] {
                        return None;
                    }
                    pairs.extend(old.drain(..).zip(new.drain(..)));
                    ends = [false; 2];
                }
                PatchLineKind::Header(_) | PatchLineKind::Other => return None,
            }
        }
        (!pairs.is_empty()).then_some(pairs)
    }
}

/// Whether a path, quoted or not, is in `a/` or `b/`.
fn is_path_in(side: &[u8], path: &[u8]) -> bool {
    path.strip_prefix(b"\"").unwrap_or(path).starts_with(side)
}

fn lines(printed: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let printed = printed.strip_suffix(b"\n").unwrap_or(printed);
    printed.split(|&byte| byte == b'\n').map(<[u8]>::to_vec)
}
