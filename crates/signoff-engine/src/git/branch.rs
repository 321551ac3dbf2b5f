//! Branches: ownership, commits, and the default branch.
//!
//! For each branch signoff creates there is a second ref, `refs/signoff/base/BRANCH`, created and deleted in the
//! same transaction. It marks the branch as ours and keeps the commit the work started from.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use signoff_core::ids::{Commit, Tree};
use signoff_core::machine::Head;

use super::head::HeadFile;
use super::repository::CheckoutHead;
use super::{Git, GitError, Repository};

/// Default branch names, tried in this order if neither the remote nor the configuration names an existing branch.
const COMMON_DEFAULT_BRANCHES: [&str; 3] = ["main", "master", "trunk"];

const REMOTE_HEAD: &str = "refs/remotes/origin/HEAD";

/// A ref with its full name and its commit.
#[derive(Debug)]
pub(super) struct RefTip {
    pub(super) name: String,
    pub(super) commit: Commit,
}

/// The default and the checked-out branch of a repository.
#[derive(Debug, Default)]
pub(super) struct Branches {
    /// The local default branch if it exists, otherwise the remote's.
    pub(super) default: Option<RefTip>,
    /// The commit of the checked-out branch. `None` if the branch has no commit yet or `HEAD` is detached.
    pub(super) checked_out: Option<Commit>,
}

/// The refs of one branch name.
#[derive(Debug, Default)]
pub(super) struct BranchRefs {
    pub(super) tip: Option<Head>,
    /// The worktree it is checked out in.
    pub(super) used_by: Option<PathBuf>,
    /// The commit it started from, if it is ours.
    pub(super) base: Option<Commit>,
}

impl Repository {
    /// The branch that work finally lands on.
    pub fn default_branch(&self) -> Result<String, GitError> {
        if let Some(RefTip { name, .. }) = self.branches()?.default {
            let short = name.strip_prefix("refs/heads/").or(name.strip_prefix("refs/remotes/origin/"));
            return Ok(short.unwrap_or(&name).to_owned());
        }
        match self.checkout_head()? {
            CheckoutHead::Branch { name, .. } | CheckoutHead::Unborn { branch: name } => Ok(name),
            CheckoutHead::Detached { .. } => Err(GitError::UnknownRevision("the default branch".to_owned())),
        }
    }

    pub(super) fn branches(&self) -> Result<Branches, GitError> {
        let format = "--format=%(HEAD)%00%(refname)%00%(objectname)%00%(symref)%00%(tree)";
        let command = self.isolated_git("for-each-ref")?;
        let printed = command.args([format, REMOTE_HEAD]).args(self.candidates()?).read_text()?;
        let refs: Vec<[&str; 5]> = nul_records(&printed).collect();
        for [_, _, commit, _, tree] in refs.iter().filter(|[.., tree]| !tree.is_empty()) {
            self.inner.trees.insert(&Head { commit: Commit::new(*commit), tree: Tree::new(*tree) });
        }
        let checked_out = refs.iter().find(|[mark, ..]| *mark == "*");
        let checked_out = checked_out.map(|[_, _, commit, ..]| Commit::new(*commit));
        Ok(Branches { default: self.default_of(&refs)?, checked_out })
    }

    /// The branches that may be checked out or the default one. A repository can have thousands of others.
    fn candidates(&self) -> Result<Vec<String>, GitError> {
        let head = HeadFile::read(self.checkout_dirs().git_dir);
        // With the reftable format, `HEAD` names no branch here, and all branches have to be listed.
        let Some(head) = head.branch().filter(|name| *name != ".invalid") else {
            return Ok(vec!["refs/heads".to_owned()]);
        };
        let remote = fs::read_to_string(self.common().join(REMOTE_HEAD)).unwrap_or_default();
        let names = self.default_names()?.chain(remote_branch(&remote)).chain([head]);
        Ok(names.map(|name| format!("refs/heads/{name}")).collect())
    }

    /// The commit of the checked-out branch, if it is the default branch and files show that without a git process.
    pub(super) fn on_default_branch(&self) -> Result<Option<Commit>, GitError> {
        let head = HeadFile::read(self.checkout_dirs().git_dir);
        let Some(head) = head.branch() else { return Ok(None) };
        let mut tips = BranchTips::from_common_dir(self.common());
        let remote = fs::read_to_string(self.common().join(REMOTE_HEAD)).unwrap_or_default();
        let default = match (remote_branch(&remote), remote.is_empty()) {
            (Some(name), _) => Some(name),
            (None, true) => self.default_names()?.find(|name| tips.commit_from_files(name).is_some()),
            (None, false) => None,
        };
        Ok(tips.commit_from_files(head).filter(|_| default == Some(head)).map(Commit::new))
    }

    /// Names that the default branch may have, the most likely first.
    fn default_names(&self) -> Result<impl Iterator<Item = &str>, GitError> {
        let configured = self.isolated_dir()?.default_branch.as_deref();
        Ok(configured.into_iter().chain(COMMON_DEFAULT_BRANCHES))
    }

    fn default_of(&self, refs: &[[&str; 5]]) -> Result<Option<RefTip>, GitError> {
        let local = |name: &str| {
            let name = format!("refs/heads/{name}");
            let found = refs.iter().find(|[_, existing, ..]| *existing == name);
            found.map(|[_, _, commit, ..]| RefTip { name, commit: Commit::new(*commit) })
        };
        if let Some([_, _, commit, target, _]) = refs.iter().find(|[_, name, ..]| *name == REMOTE_HEAD) {
            let short = target.strip_prefix("refs/remotes/origin/").unwrap_or(target);
            return Ok(Some(
                local(short).unwrap_or_else(|| RefTip { name: (*target).to_owned(), commit: Commit::new(*commit) }),
            ));
        }
        Ok(self.default_names()?.find_map(local))
    }

    /// The tip of a branch, or `None` if the branch does not exist.
    pub fn head_of(&self, branch: &str) -> Result<Option<Head>, GitError> {
        Ok(self.branch_refs(branch)?.tip)
    }

    /// The commit of a branch of ours. Creates the branch at `start` if it does not exist.
    pub fn ensure_branch(
        &self,
        branch: &str,
        start: impl FnOnce() -> Result<Commit, GitError>,
    ) -> Result<Commit, GitError> {
        if let Some(tip) = self.branch_file_tip(branch) {
            return Ok(tip);
        }
        self.with_lock(|| {
            // Another thread may have created it.
            if let Some(head) = self.head_of(branch)? {
                return Ok(head.commit);
            }
            let start = start()?;
            self.create_branch(branch, &start, &start)?;
            Ok(start)
        })
    }

    /// The commit of a branch as far as ref files contain it.
    pub(super) fn branch_file_tip(&self, branch: &str) -> Option<Commit> {
        BranchTips::from_common_dir(self.common()).commit_from_files(branch).map(Commit::new)
    }

    /// Like [`Self::head_of`], for a branch that must exist.
    pub fn existing_head(&self, branch: &str) -> Result<Head, GitError> {
        self.head_of(branch)?.ok_or_else(|| GitError::BranchGone(branch.to_owned()))
    }

    /// The commit that a branch of ours started from.
    pub fn branch_base(&self, branch: &str) -> Result<Option<Commit>, GitError> {
        Ok(self.branch_refs(branch)?.base)
    }

    pub fn has_branch(&self, branch: &str) -> Result<bool, GitError> {
        Ok(self.branch_refs(branch)?.tip.is_some())
    }

    /// Whether a branch of ours has moved since it was created.
    pub fn has_work(&self, branch: &str) -> Result<bool, GitError> {
        let known = self.branch_refs(branch)?;
        Ok(known.tip.zip(known.base).is_some_and(|(tip, base)| tip.commit != base))
    }

    pub(super) fn branch_refs(&self, branch: &str) -> Result<BranchRefs, GitError> {
        let (tip, base) = ref_names(branch);
        let format = "--format=%(refname)%00%(objectname)%00%(tree)%00%(worktreepath)";
        let printed = self.isolated_git("for-each-ref")?.args([format, &tip, &base]).read_text()?;
        let mut refs = BranchRefs::default();
        for [name, commit, tree, worktree] in nul_records(&printed) {
            if name == tip {
                refs.tip = Some(Head { commit: Commit::new(commit), tree: Tree::new(tree) });
                refs.used_by = (!worktree.is_empty()).then(|| self.real_worktree(worktree)).transpose()?;
            } else if name == base {
                refs.base = Some(Commit::new(commit));
            }
        }
        Ok(refs)
    }

    /// Replaces the isolated directory, which git takes for the main worktree, by the main worktree's path.
    fn real_worktree(&self, worktree: &str) -> Result<PathBuf, GitError> {
        let path = PathBuf::from(worktree);
        Ok(if path.starts_with(&self.isolated_dir()?.directory) { self.root().to_owned() } else { path })
    }

    /// Creates a branch of ours at a commit, with `from` as its base.
    pub(super) fn create_branch(&self, branch: &str, at: &Commit, from: &Commit) -> Result<(), GitError> {
        let (tip, base) = ref_names(branch);
        self.update_refs(format!("create {tip}\0{at}\0update {base}\0{from}\0\0"))
    }

    /// Recreates a deleted branch of ours at its last known commit.
    pub fn restore_branch(&self, branch: &str, last: &Commit, base: &Commit) -> Result<(), GitError> {
        self.with_lock(|| {
            let known = self.branch_refs(branch)?;
            if known.tip.is_some() {
                return Ok(());
            }
            let branch_gone = |_| GitError::BranchGone(branch.to_owned());
            self.resolve(last.as_str()).map_err(branch_gone)?;
            self.create_branch(branch, last, &known.base.unwrap_or_else(|| base.clone()))
        })
    }

    pub(super) fn update_refs(&self, transaction: String) -> Result<(), GitError> {
        self.isolated_git("update-ref -z --stdin")?.input(transaction).execute()
    }
}

/// The branch of `origin` that a symbolic ref's text refers to.
fn remote_branch(text: &str) -> Option<&str> {
    text.trim_end().strip_prefix("ref: refs/remotes/origin/")
}

/// Lines of `N` fields that are separated by NUL.
fn nul_records<const N: usize>(printed: &str) -> impl Iterator<Item = [&str; N]> {
    printed.lines().filter_map(|line| line.split('\0').collect::<Vec<_>>().try_into().ok())
}

fn ref_names(branch: &str) -> (String, String) {
    (format!("refs/heads/{branch}"), format!("refs/signoff/base/{branch}"))
}

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

    fn from_common_dir(common: &Path) -> Self {
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
    fn commit_from_files(&mut self, branch: &str) -> Option<String> {
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
    let command = repository.isolated_git("for-each-ref").ok()?;
    command.args(["--format=%(objectname) %(refname)", "refs/heads/signoff"]).read_text().ok()
}

/// Parses lines of id and ref name.
fn parse(text: &str) -> HashMap<String, String> {
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs.map(|(id, name)| (name.to_owned(), id.to_owned())).collect()
}

pub(super) fn is_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
