//! What the person's checkout is like, to tell whether it changed while somebody else was at work.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use signoff_core::ids::Commit;

use super::status::Kind;
use super::{GitError, Repository};

/// Where the checkout is, and every file that is not as `HEAD` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckoutState {
    head: Option<Commit>,
    branch: Option<String>,
    files: BTreeMap<PathBuf, (Kind, Trace)>,
}

/// What a change of a file changes too.
type Trace = Option<(u64, Option<SystemTime>)>;

impl Repository {
    /// Looks at the person's checkout. Ignored files are not looked at.
    pub fn checkout_state(&self) -> Result<CheckoutState, GitError> {
        let status = self.status(self.here())?;
        let files = status.entries.into_iter().map(|entry| {
            let trace = trace(&self.checkout().join(&entry.path));
            (entry.path, (entry.kind, trace))
        });
        Ok(CheckoutState { head: status.head, branch: status.branch, files: files.collect() })
    }
}

impl CheckoutState {
    /// What is different from before, in words.
    pub fn changes_since(&self, before: &Self) -> Vec<String> {
        let mut changes = Vec::new();
        if self.branch != before.branch {
            let branch = self.branch.as_deref().unwrap_or("no branch");
            changes.push(format!("it is on {branch}"));
        }
        if self.head != before.head {
            let head = self.head.as_ref().map_or("nothing", Commit::as_str);
            changes.push(format!("it is at {head}"));
        }
        let both =
            self.files.keys().chain(before.files.keys().filter(|path| !self.files.contains_key(*path)));
        let changed = both.filter(|path| self.files.get(*path) != before.files.get(*path));
        changes.extend(changed.map(|path| path.display().to_string()));
        changes
    }
}

/// A directory changes with what is in it; only files tell something themselves.
fn trace(path: &Path) -> Trace {
    let found = fs::symlink_metadata(path).ok().filter(|found| !found.is_dir())?;
    Some((found.len(), found.modified().ok()))
}
