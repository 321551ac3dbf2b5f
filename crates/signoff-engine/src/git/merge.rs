//! Merges or rebases a branch onto its target without a worktree: writes only objects until a ref moves.
//!
//! A merge with conflicts is an object too: its tree contains the conflict markers, which a fixer edits away.
//!
//! An approval applies to changes. If the rebased changes have the same patch id, the approval still holds;
//! otherwise they are reviewed again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use sha2::{Digest, Sha256};
use signoff_core::ids::{Commit, Tree};
use signoff_core::machine::Head;
use signoff_core::patch::{PatchLineKind, PatchMark, PatchReader};

use super::branch::is_id;
use super::repository::{id_lines, path, pathspec};
use super::{GitError, Repository};

/// The result of merging a branch and its target, or of rebasing it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeOutcome {
    /// The target already contains everything.
    Contained,
    /// A commit on top of the target's tip.
    Clean(Head),
    /// The rebased commits apply, but their changes differ from the approved ones.
    Different(Head),
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
        let patterns = marks.iter().flat_map(|mark| [format!("-e<<<<<<< {mark}"), format!("-e>>>>>>> {mark}")]);
        let command = self.isolated_git("grep -z -n -a -F --full-name --no-color")?;
        let command = command.args(patterns).args([commit.as_str(), "--"]);
        let ended = command.args(files.iter().map(|file| pathspec("top,literal", file))).run()?;
        let found = parse_first_lines(&ended.stdout, commit);
        ended.into_bool().map(|_| found)
    }

    /// Merges a commit with the tip of its target. Changes no file and no ref.
    pub fn merge_onto(&self, onto: &Head, commit: &Commit, message: &str) -> Result<MergeOutcome, GitError> {
        let merged = self.merge_trees(None, commit, &onto.commit)?;
        if merged.conflicts.is_empty() {
            // An unchanged tree alone does not show that the commit landed before.
            if merged.tree == onto.tree && self.is_ancestor(commit.as_str(), onto.commit.as_str())? {
                return Ok(MergeOutcome::Contained);
            }
            let commit = self.commit_tree(&merged.tree, &[&onto.commit, commit], message)?;
            return Ok(MergeOutcome::Clean(Head { commit, tree: merged.tree }));
        }
        let commit = self.commit_tree(&merged.tree, &[commit, &onto.commit], message)?;
        Ok(MergeOutcome::Conflicting { head: Head { commit, tree: merged.tree }, files: merged.conflicts })
    }

    /// Merges two commits' trees, relative to `base` or to their merge-base.
    pub(super) fn merge_trees(
        &self,
        base: Option<&Commit>,
        ours: &Commit,
        theirs: &Commit,
    ) -> Result<MergeTreeOutput, GitError> {
        let empty_tree = if self.isolated_dir()?.id_bytes == 20 { EMPTY_TREE } else { EMPTY_TREE_SHA256 };
        let base = base.map(|base| format!("--merge-base={base}"));
        let command = self.isolated_git("merge-tree --write-tree -z --name-only --messages")?.args(base);
        // An agent may have written merge attributes, so none are used.
        let command = command.env("GIT_ATTR_SOURCE", empty_tree);
        let ended = command.args([ours.as_str(), theirs.as_str()]).run()?;
        match ended.code() {
            Some(0 | 1) => Ok(MergeTreeOutput::parse(&ended.stdout)),
            Some(129) => Err(GitError::TooOldToMerge),
            Some(_) | None => Err(ended.into_error()),
        }
    }

    /// Creates a commit of a tree with these parents.
    pub(super) fn commit_tree(&self, tree: &Tree, parents: &[&Commit], message: &str) -> Result<Commit, GitError> {
        let parents = parents.iter().flat_map(|parent| ["-p", parent.as_str()]);
        let command = self.isolated_git("commit-tree --no-gpg-sign")?.args(parents);
        let message = format!("{}\n", message.trim_end());
        let commit = Commit::new(command.args(["-m", &message, tree.as_str()]).read_line()?);
        self.inner.trees.insert(&Head { commit: commit.clone(), tree: tree.clone() });
        Ok(commit)
    }
}

/// Ids of the empty tree, which exist in every repository.
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
    pub fn replay_onto(&self, onto: &Head, commit: &Commit, message: &str) -> Result<MergeOutcome, GitError> {
        let originals = self.originals(onto, commit)?;
        let Some(first) = originals.first() else { return Ok(MergeOutcome::Contained) };
        let is_line = originals.iter().all(|original| original.parents.len() == 1);
        let replayed = if is_line { self.rebase_each(onto, &originals)? } else { None };
        let head = match replayed {
            Some(head) => head,
            None => match self.merge_onto(onto, commit, message)? {
                MergeOutcome::Clean(Head { tree, .. }) => {
                    Head { commit: self.recommit(&tree, &onto.commit, first)?, tree }
                }
                merge @ (MergeOutcome::Contained | MergeOutcome::Different(_) | MergeOutcome::Conflicting { .. }) => {
                    return Ok(merge);
                }
            },
        };
        if head.commit == onto.commit {
            return Ok(MergeOutcome::Contained);
        }
        let same = head.commit == *commit || self.is_same_change(onto, commit, &head)?;
        Ok(if same { MergeOutcome::Clean(head) } else { MergeOutcome::Different(head) })
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

    /// Keeps author, date and message; only the committer changes. If git rejects the author, we become the author.
    fn recommit(&self, tree: &Tree, parent: &Commit, original: &OriginalCommit) -> Result<Commit, GitError> {
        let commit = |author: &[(&str, String)]| {
            let command = self.isolated_git("commit-tree --no-gpg-sign -p")?.args([parent.as_str(), tree.as_str()]);
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
        let format = "--format=%H%n%P%n%an%n%ae%n%ad%n%B";
        let command = self.isolated_git("log -z --reverse --topo-order --no-show-signature --date=raw")?;
        let printed = command.args([format, &range, "--"]).read_text()?;
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
        let printed = self.isolated_git("patch-id --stable")?.input(patch).read_line()?;
        Ok(printed.split(' ').next().unwrap_or_default().to_owned())
    }

    /// Whether a branch contains the changes of all commits up to this one, under any commit id.
    pub fn contains_changes(&self, branch: &str, commit: &Commit) -> Result<bool, GitError> {
        let range = format!("refs/heads/{branch}...{commit}");
        let command = self.isolated_git("rev-list --cherry-pick --right-only --no-merges --max-count=1")?;
        let missing = command.args([&range, "--"]).read()?;
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

const DIFF_TREE_ARGS: &str = "diff-tree -r -p --full-index --no-ext-diff --no-textconv --no-renames";

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
                (PatchLineKind::Hunk, _) => b"place",
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
