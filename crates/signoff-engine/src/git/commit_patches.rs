//! The patches of commits, to recognize a change that was committed again elsewhere.

use std::collections::HashMap;

use sha2::{Digest, Sha256};
use signoff_core::ids::Commit;

use super::refs::is_id;
use super::{GitError, Repository};

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
        let asked: String = commits.iter().map(|commit| format!("{commit}\n")).collect();
        let printed =
            self.isolated_git(self.checkout_place())?.args(DIFF_TREE_ARGS).args(["--stdin"]).input(asked).read()?;
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
        let printed =
            self.isolated_git(self.checkout_place())?.args(DIFF_TREE_ARGS).args([from.as_str(), to.as_str()]).read()?;
        Ok(CommitPatch { lines: lines(&printed).collect() })
    }
}

impl CommitPatch {
    pub fn digest(&self) -> PatchDigest {
        let mut digest = Sha256::new();
        for (line, next) in self.lines.iter().zip(self.lines.iter().skip(1).map(Some).chain([None])) {
            // Ignores positions, and blob ids if the patch shows the lines.
            let shown = next.is_some_and(|next| next.starts_with(b"--- "));
            let line: &[u8] = match line.as_slice() {
                line if line.starts_with(b"index ") && shown => b"index",
                line if line.starts_with(b"@@ ") => b"@@",
                line => line,
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
        let mut in_hunk = false;
        for line in self.lines.iter().map(Vec::as_slice).chain([b"diff --git ".as_slice()]) {
            match line.first() {
                _ if !in_hunk && is_heading(line) => {}
                Some(b'-') if in_hunk => old.push(&line[1..]),
                Some(b'+') if in_hunk => new.push(&line[1..]),
                // The missing newline at the end must be on both sides; otherwise the patch changes more.
                Some(b'\\') if in_hunk => ends[usize::from(!new.is_empty())] ^= !old.is_empty(),
                Some(b'@' | b' ' | b'd') if ends_block(line) => {
                    if old.len() != new.len() || ends[0] != ends[1] {
                        return None;
                    }
                    pairs.extend(old.drain(..).zip(new.drain(..)));
                    (ends, in_hunk) = ([false; 2], line.first() != Some(&b'd'));
                }
                Some(_) | None => return None,
            }
        }
        (!pairs.is_empty()).then_some(pairs)
    }
}

/// Whether a block of replaced lines ends before this line.
fn ends_block(line: &[u8]) -> bool {
    line.starts_with(b"diff --git ") || line.starts_with(b"@@ ") || line.starts_with(b" ")
}

/// Whether this line only names the file.
fn is_heading(line: &[u8]) -> bool {
    let headings = [b"index ".as_slice(), b"--- a/", b"+++ b/", b"--- \"a/", b"+++ \"b/"];
    headings.iter().any(|start| line.starts_with(start))
}

fn lines(printed: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let printed = printed.strip_suffix(b"\n").unwrap_or(printed);
    printed.split(|&byte| byte == b'\n').map(<[u8]>::to_vec)
}
