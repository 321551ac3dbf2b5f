//! What commits change, line by line: to recognise a change that was made again elsewhere.

use std::collections::HashMap;

use sha2::{Digest, Sha256};
use signoff_core::ids::Commit;

use super::tips::is_id;
use super::{GitError, Repository};

const ASKED: [&str; 7] =
    ["diff-tree", "-r", "-p", "--full-index", "--no-ext-diff", "--no-textconv", "--no-renames"];

/// What a commit changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    lines: Vec<Vec<u8>>,
}

/// Two patches with the same one change the same, wherever in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PatchDigest([u8; 32]);

impl Repository {
    /// The patches of commits that have one parent and change something; others have none.
    pub fn patches(&self, commits: &[Commit]) -> Result<HashMap<Commit, Patch>, GitError> {
        let asked: String = commits.iter().map(|commit| format!("{commit}\n")).collect();
        let printed = self.sealed(self.here())?.args(ASKED).args(["--stdin"]).input(asked).read()?;
        let mut patches: HashMap<Commit, Patch> = HashMap::new();
        let mut current = None;
        for line in lines(&printed) {
            // A line of a patch begins with a sign or a word.
            match std::str::from_utf8(&line).ok().filter(|line| is_id(line)) {
                Some(id) => current = Some(Commit::new(id)),
                None => {
                    if let Some(commit) = &current {
                        let patch = patches.entry(commit.clone()).or_insert(Patch { lines: Vec::new() });
                        patch.lines.push(line);
                    }
                }
            }
        }
        Ok(patches)
    }

    /// All that changed from one commit to another.
    pub fn patch_between(&self, from: &Commit, to: &Commit) -> Result<Patch, GitError> {
        let printed = self.sealed(self.here())?.args(ASKED).args([from.as_str(), to.as_str()]).read()?;
        Ok(Patch { lines: lines(&printed).collect() })
    }
}

impl Patch {
    pub fn digest(&self) -> PatchDigest {
        let mut digest = Sha256::new();
        for (line, next) in self.lines.iter().zip(self.lines.iter().skip(1).map(Some).chain([None])) {
            // Where it stands may be another, and what the whole file is, where its lines are shown.
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

    /// The lines that it puts in place of others, each with the one that was there; none if it does anything else.
    pub fn replaced(&self) -> Option<Vec<(&[u8], &[u8])>> {
        let (mut pairs, mut old, mut new) = (Vec::new(), Vec::new(), Vec::new());
        let mut ends = [false; 2];
        let mut within = false;
        for line in self.lines.iter().map(Vec::as_slice).chain([b"diff --git ".as_slice()]) {
            match line.first() {
                _ if !within && is_heading(line) => {}
                Some(b'-') if within => old.push(&line[1..]),
                Some(b'+') if within => new.push(&line[1..]),
                // The last line has no end: on both sides, or something else was changed too.
                Some(b'\\') if within => ends[usize::from(!new.is_empty())] ^= !old.is_empty(),
                Some(b'@' | b' ' | b'd') if is_border(line) => {
                    if old.len() != new.len() || ends[0] != ends[1] {
                        return None;
                    }
                    pairs.extend(old.drain(..).zip(new.drain(..)));
                    (ends, within) = ([false; 2], line.first() != Some(&b'd'));
                }
                Some(_) | None => return None,
            }
        }
        (!pairs.is_empty()).then_some(pairs)
    }
}

/// Whether what is replaced ends before this line.
fn is_border(line: &[u8]) -> bool {
    line.starts_with(b"diff --git ") || line.starts_with(b"@@ ") || line.starts_with(b" ")
}

/// Whether it says no more than which file it is about.
fn is_heading(line: &[u8]) -> bool {
    let headings = [b"index ".as_slice(), b"--- a/", b"+++ b/", b"--- \"a/", b"+++ \"b/"];
    headings.iter().any(|start| line.starts_with(start))
}

fn lines(printed: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let printed = printed.strip_suffix(b"\n").unwrap_or(printed);
    printed.split(|&byte| byte == b'\n').map(<[u8]>::to_vec)
}
