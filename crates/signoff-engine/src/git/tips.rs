//! Where branches are, read without starting git: for lists that must come at once.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Git, Repository};

/// The branches of a repository.
#[derive(Debug)]
pub struct Tips {
    root: PathBuf,
    common: PathBuf,
    /// What has no file of its own; read when it is first needed.
    others: Option<HashMap<String, String>>,
}

impl Tips {
    /// The branches of the repository whose main worktree, or bare directory, is `root`.
    pub fn of(root: &Path) -> Self {
        Self { root: root.to_owned(), common: common(root), others: None }
    }

    pub(super) fn of_common(common: &Path) -> Self {
        Self { root: common.to_owned(), common: common.to_owned(), others: None }
    }

    /// The commit a branch is at. None if there is no such branch.
    pub fn of_branch(&mut self, branch: &str, git: &Git) -> Option<String> {
        if self.others.is_none() && self.common.join("reftable").is_dir() {
            // Refs that are kept in tables are git's to read.
            self.others = Some(parse(&asked(&self.root, git).unwrap_or_default()));
        }
        self.of_file(branch)
    }

    /// The same, as far as files tell it.
    pub(super) fn of_file(&mut self, branch: &str) -> Option<String> {
        let name = format!("refs/heads/{branch}");
        let loose = fs::read_to_string(self.common.join(&name)).ok();
        let loose = loose.map(|text| text.trim_end().to_owned());
        loose.or_else(|| self.others().get(&name).cloned()).filter(|id| is_id(id))
    }

    fn others(&mut self) -> &HashMap<String, String> {
        let packed = self.common.join("packed-refs");
        self.others.get_or_insert_with(|| parse(&fs::read_to_string(packed).unwrap_or_default()))
    }
}

/// The git directory of a main worktree: `.git`, or where a file of that name points.
fn common(root: &Path) -> PathBuf {
    let inside = root.join(".git");
    let pointed = fs::read_to_string(&inside).ok();
    match pointed.as_deref().and_then(|text| text.trim_end().strip_prefix("gitdir: ")) {
        Some(elsewhere) => root.join(elsewhere),
        None if inside.is_dir() => inside,
        None => root.to_owned(),
    }
}

fn asked(root: &Path, git: &Git) -> Option<String> {
    let repository = Repository::discover(git, root).ok()?;
    let asked = ["for-each-ref", "--format=%(objectname) %(refname)", "refs/heads/signoff"];
    let printed = repository.sealed(repository.here()).ok()?.args(asked).read().ok()?;
    Some(String::from_utf8_lossy(&printed).into_owned())
}

/// A line for each ref: id and name.
fn parse(text: &str) -> HashMap<String, String> {
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs.map(|(id, name)| (name.to_owned(), id.to_owned())).collect()
}

pub(super) fn is_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
