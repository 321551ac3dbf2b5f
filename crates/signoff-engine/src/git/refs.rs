//! Reads branch refs from files, without a git process, for lists that must be fast.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Git, Repository};

/// The commits that a repository's branches point to.
#[derive(Debug)]
pub struct BranchTips {
    root: PathBuf,
    common: PathBuf,
    /// Refs without a file of their own. Read on first use.
    packed: Option<HashMap<String, String>>,
}

impl BranchTips {
    /// The branches of the repository whose main worktree, or bare directory, is `root`.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), common: common_dir(root), packed: None }
    }

    pub(super) fn from_common_dir(common: &Path) -> Self {
        Self { root: common.to_owned(), common: common.to_owned(), packed: None }
    }

    /// The commit of a branch, or `None` if the branch does not exist.
    pub fn commit(&mut self, branch: &str, git: &Git) -> Option<String> {
        if self.packed.is_none() && self.common.join("reftable").is_dir() {
            // Only git can read the reftable format.
            self.packed = Some(parse(&list_branches(&self.root, git).unwrap_or_default()));
        }
        self.commit_from_files(branch)
    }

    /// The commit of a branch as far as ref files contain it.
    pub(super) fn commit_from_files(&mut self, branch: &str) -> Option<String> {
        let name = format!("refs/heads/{branch}");
        let loose = fs::read_to_string(self.common.join(&name)).ok();
        let loose = loose.map(|text| text.trim_end().to_owned());
        loose.or_else(|| self.packed().get(&name).cloned()).filter(|id| is_id(id))
    }

    fn packed(&mut self) -> &HashMap<String, String> {
        let packed = self.common.join("packed-refs");
        self.packed.get_or_insert_with(|| parse(&fs::read_to_string(packed).unwrap_or_default()))
    }
}

/// The git directory of a main worktree: `.git`, or the target of a `.git` file.
fn common_dir(root: &Path) -> PathBuf {
    let inside = root.join(".git");
    let pointed = fs::read_to_string(&inside).ok();
    match pointed.as_deref().and_then(|text| text.trim_end().strip_prefix("gitdir: ")) {
        Some(elsewhere) => root.join(elsewhere),
        None if inside.is_dir() => inside,
        None => root.to_owned(),
    }
}

fn list_branches(root: &Path, git: &Git) -> Option<String> {
    let repository = Repository::discover(git, root).ok()?;
    let asked = ["for-each-ref", "--format=%(objectname) %(refname)", "refs/heads/signoff"];
    let printed = repository.isolated_git(repository.checkout_place()).ok()?.args(asked).read().ok()?;
    Some(String::from_utf8_lossy(&printed).into_owned())
}

/// Parses lines of id and ref name.
fn parse(text: &str) -> HashMap<String, String> {
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs.map(|(id, name)| (name.to_owned(), id.to_owned())).collect()
}

pub(super) fn is_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
