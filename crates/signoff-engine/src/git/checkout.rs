//! What the person's checkout is like, to tell whether it changed while somebody else was at work.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::time::SystemTime;

use signoff_core::ids::Commit;

use super::repository::{Place, path};
use super::stamp::Stamp;
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

/// A look at the checkout, and what tells that another one would show the same.
#[derive(Debug)]
pub(super) struct Looked {
    state: CheckoutState,
    /// All files that are not ignored, and the directories they lie in.
    paths: BTreeSet<PathBuf>,
    footprint: u64,
}

impl Repository {
    /// Looks at the person's checkout. Ignored files are not looked at.
    ///
    /// Git is asked only where a file, a directory or a ref is not as it was the last time: agents come and go often,
    /// and hardly ever is there anything to see.
    pub fn checkout_state(&self) -> Result<CheckoutState, GitError> {
        let mut looked = self.looked().lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) =
            looked.as_ref().filter(|last| last.footprint == self.footprint(self.here(), &last.paths))
        {
            return Ok(last.state.clone());
        }
        let paths = self.checkout_paths()?;
        // What changes from here on shows as a change the next time.
        let footprint = self.footprint(self.here(), &paths);
        let state = self.ask_for_state()?;
        *looked = Some(Looked { state: state.clone(), paths, footprint });
        Ok(state)
    }

    fn checkout_paths(&self) -> Result<BTreeSet<PathBuf>, GitError> {
        let asked = ["ls-files", "-z", "--full-name", "--cached", "--others", "--exclude-standard"];
        let listed = self.sealed(self.here())?.args(asked).read()?;
        let files = listed.split(|&byte| byte == 0).filter(|name| !name.is_empty()).map(path);
        Ok(files.flat_map(|file| file.ancestors().map(Path::to_owned).collect::<Vec<_>>()).collect())
    }

    /// What changes with any of these files, and with `HEAD`, the branch it names and the index.
    pub(super) fn footprint(&self, place: Place<'_>, paths: &BTreeSet<PathBuf>) -> u64 {
        let mut hasher = DefaultHasher::new();
        let head = fs::read_to_string(place.git_dir.join("HEAD")).unwrap_or_default();
        let branch = head.trim_end().strip_prefix("ref: ").map(|name| self.common().join(name));
        branch.and_then(|branch| fs::read(branch).ok()).hash(&mut hasher);
        head.hash(&mut hasher);
        let refs = ["packed-refs", "reftable/tables.list"].map(|name| self.common().join(name));
        let own = refs.into_iter().chain([place.git_dir.join("index")]);
        for path in own.chain(paths.iter().map(|path| place.work_tree.join(path))) {
            Stamp::of(&path).hash(&mut hasher);
        }
        hasher.finish()
    }

    fn ask_for_state(&self) -> Result<CheckoutState, GitError> {
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
