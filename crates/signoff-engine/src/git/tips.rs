//! Where branches are, read without starting git: for lists that must come at once.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The branches of a repository that keeps its refs in files. Of another one it knows nothing.
#[derive(Debug)]
pub struct Tips {
    common: PathBuf,
    /// What git has packed into one file; read when it is first needed.
    packed: Option<HashMap<String, String>>,
}

impl Tips {
    /// The branches of the repository whose main worktree, or bare directory, is `root`.
    pub fn of(root: &Path) -> Self {
        let inside = root.join(".git");
        Self { common: if inside.is_dir() { inside } else { root.to_owned() }, packed: None }
    }

    /// The commit a branch is at. None if there is no such branch, or if only git can tell.
    pub fn of_branch(&mut self, branch: &str) -> Option<String> {
        let name = format!("refs/heads/{branch}");
        let loose = fs::read_to_string(self.common.join(&name)).ok();
        let loose = loose.map(|text| text.trim_end().to_owned());
        loose.or_else(|| self.packed().get(&name).cloned()).filter(|id| is_id(id))
    }

    fn packed(&mut self) -> &HashMap<String, String> {
        let common = &self.common;
        self.packed.get_or_insert_with(|| {
            let text = fs::read_to_string(common.join("packed-refs")).unwrap_or_default();
            let pairs = text.lines().filter_map(|line| line.split_once(' '));
            pairs.map(|(id, name)| (name.to_owned(), id.to_owned())).collect()
        })
    }
}

fn is_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
