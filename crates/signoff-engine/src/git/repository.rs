//! A git repository, found from a directory.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use signoff_core::ids::{Commit, Tree};

use super::checkout::CachedCheckoutState;
use super::head::TreeCache;
use super::invocation::GitCommand;
use super::isolated_dir::IsolatedGitDir;
use super::snapshot::FileHashCache;
use super::{Git, GitError, lock};

/// A git repository and the worktree the user is in. Clones refer to the same repository.
#[derive(Debug, Clone)]
pub struct Repository {
    inner: Arc<RepositoryInner>,
}

#[derive(Debug)]
struct RepositoryInner {
    git: Git,
    /// The `.git` directory that all worktrees share.
    common: PathBuf,
    /// The git directory of the checkout: `common`, or a directory below it for a linked worktree.
    git_dir: PathBuf,
    checkout: PathBuf,
    root: PathBuf,
    isolated_dir: OnceLock<IsolatedGitDir>,
    /// The result of the last [`Repository::checkout_state`].
    cached_state: Mutex<Option<CachedCheckoutState>>,
    hashes: Mutex<FileHashCache>,
    trees: TreeCache,
}

/// Where the checkout's `HEAD` points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckoutHead {
    Branch { name: String, commit: Commit },
    Detached { commit: Commit },
    Unborn { branch: String },
}

/// The directories and files a git command works with.
#[derive(Debug, Clone, Copy)]
pub(super) struct GitPlace<'a> {
    pub(super) git_dir: &'a Path,
    pub(super) work_tree: &'a Path,
    /// An index to use instead of the worktree's own.
    pub(super) index: Option<&'a Path>,
    /// Where new objects are written, if not to the repository. The repository's objects stay readable.
    pub(super) objects: Option<&'a Path>,
}

impl Repository {
    /// Finds the repository that contains `directory`.
    pub fn discover(git: &Git, directory: &Path) -> Result<Self, GitError> {
        if !directory.is_dir() {
            return Err(GitError::NotARepository(directory.to_owned()));
        }
        let real = std::fs::canonicalize(directory).map_err(GitError::at(directory))?;
        if real.to_str().is_none_or(|path| path.contains('\n')) {
            return Err(GitError::OddPath(real));
        }
        let asked = ["--is-bare-repository", "--git-common-dir", "--git-dir", "--show-toplevel"];
        let ended = git.command(directory).args(["rev-parse", "--path-format=absolute"]).args(asked).run()?;
        let lines: Vec<&[u8]> = ended.stdout.split(|&byte| byte == b'\n').collect();
        // A git that does not know the option prints it back.
        if lines.first() == Some(&b"--path-format=absolute".as_slice()) {
            return Err(GitError::TooOld);
        }
        match (ended.code(), lines.as_slice()) {
            (Some(0), [_, common, git_dir, checkout, _]) => {
                Ok(Self::open(git, path(common), path(git_dir), path(checkout)))
            }
            (_, [_, common, ..]) if !common.is_empty() => Err(GitError::Bare(path(common))),
            (Some(_) | None, _) if ended.stderr().contains("not a git repository") => {
                Err(GitError::NotARepository(directory.to_owned()))
            }
            (Some(_) | None, _) => Err(ended.into_error()),
        }
    }

    fn open(git: &Git, common: PathBuf, git_dir: PathBuf, checkout: PathBuf) -> Self {
        let root = main_worktree(&common, &git_dir, &checkout);
        let inner = RepositoryInner {
            git: git.clone(),
            common,
            git_dir,
            checkout,
            root,
            isolated_dir: OnceLock::new(),
            cached_state: Mutex::default(),
            hashes: Mutex::default(),
            trees: TreeCache::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The top directory of the main worktree, even from a linked one. For a bare repository, the repository
    /// itself.
    pub fn root(&self) -> &Path {
        &self.inner.root
    }

    /// The top directory of the worktree the user is in.
    pub fn checkout(&self) -> &Path {
        &self.inner.checkout
    }

    /// The user's name as in their commits.
    pub fn user_name(&self) -> Option<String> {
        let asked = self.isolated_git(self.checkout_place()).ok()?.args(["config", "user.name"]);
        asked.read_line().ok().filter(|name| !name.is_empty())
    }

    /// Starts git processes and counts them.
    pub fn git(&self) -> &Git {
        &self.inner.git
    }

    pub(super) fn cached_state(&self) -> &Mutex<Option<CachedCheckoutState>> {
        &self.inner.cached_state
    }

    pub(super) fn hashes(&self) -> &Mutex<FileHashCache> {
        &self.inner.hashes
    }

    pub(super) fn trees(&self) -> &TreeCache {
        &self.inner.trees
    }

    pub(super) fn common(&self) -> &Path {
        &self.inner.common
    }

    /// The user's checkout, for reading.
    pub(super) fn checkout_place(&self) -> GitPlace<'_> {
        GitPlace { git_dir: &self.inner.git_dir, work_tree: &self.inner.checkout, index: None, objects: None }
    }

    /// A git command that uses the isolated directory, so it runs no command configured in the repository.
    pub(super) fn isolated_git(&self, place: GitPlace<'_>) -> Result<GitCommand<'_>, GitError> {
        let invocation = self.git().command(place.work_tree).with_shared_env(self.isolated_dir()?.environment());
        let invocation = invocation.env("GIT_DIR", place.git_dir).env("GIT_WORK_TREE", place.work_tree);
        let invocation = match place.index {
            Some(index) => invocation.env("GIT_INDEX_FILE", index),
            None => invocation,
        };
        Ok(match place.objects {
            Some(objects) => invocation
                .env("GIT_OBJECT_DIRECTORY", objects)
                .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", self.common().join("objects")),
            None => invocation,
        })
    }

    pub(super) fn isolated_dir(&self) -> Result<&IsolatedGitDir, GitError> {
        if let Some(sealed) = self.inner.isolated_dir.get() {
            return Ok(sealed);
        }
        let made = IsolatedGitDir::create(self.git(), self.common(), self.checkout())?;
        // If two threads created one, the slower thread drops its own.
        Ok(self.inner.isolated_dir.get_or_init(|| made))
    }

    /// Runs `work` while no other thread or process of ours changes the repository's refs and worktrees.
    pub(super) fn with_lock<T>(&self, work: impl FnOnce() -> Result<T, GitError>) -> Result<T, GitError> {
        lock::with_lock(self.git(), &self.common().join("signoff/lock"), work)
    }

    /// Where the checkout's `HEAD` points.
    pub fn checkout_head(&self) -> Result<CheckoutHead, GitError> {
        let asked = ["rev-parse", "-q", "HEAD", "--symbolic-full-name", "HEAD"];
        let ended = self.isolated_git(self.checkout_place())?.args(asked).run()?;
        if ended.code() != Some(0) {
            let branch =
                self.isolated_git(self.checkout_place())?.args(["symbolic-ref", "--short", "HEAD"]).read_line()?;
            return Ok(CheckoutHead::Unborn { branch });
        }
        let printed = String::from_utf8_lossy(&ended.stdout).into_owned();
        let mut lines = printed.lines();
        let commit = Commit::new(lines.next().unwrap_or_default());
        Ok(match lines.next().and_then(|name| name.strip_prefix("refs/heads/")) {
            Some(name) => CheckoutHead::Branch { name: name.to_owned(), commit },
            None => CheckoutHead::Detached { commit },
        })
    }

    /// The commit that a revision refers to.
    pub fn resolve(&self, revision: &str) -> Result<Commit, GitError> {
        let peeled = format!("{revision}^{{commit}}");
        let asked = ["rev-parse", "-q", "--verify", "--end-of-options", &peeled];
        let ended = self.isolated_git(self.checkout_place())?.args(asked).run()?;
        match ended.code() {
            Some(0) => Ok(Commit::new(String::from_utf8_lossy(&ended.stdout).trim_end())),
            Some(_) | None => Err(GitError::UnknownRevision(revision.to_owned())),
        }
    }

    /// The tree of a commit.
    pub fn tree_of(&self, commit: &Commit) -> Result<Tree, GitError> {
        if let Some(tree) = self.trees().get(commit) {
            return Ok(tree);
        }
        let peeled = format!("{commit}^{{tree}}");
        let asked = ["rev-parse", "-q", "--verify", "--end-of-options", &peeled];
        let ended = self.isolated_git(self.checkout_place())?.args(asked).run()?;
        match ended.code() {
            Some(0) => Ok(Tree::new(String::from_utf8_lossy(&ended.stdout).trim_end())),
            Some(_) | None => Err(GitError::UnknownRevision(commit.to_string())),
        }
    }

    /// The base of work that starts from `HEAD`: the merge-base with the default branch, or `HEAD` if there is
    /// none.
    pub fn base(&self) -> Result<Commit, GitError> {
        if let Some(commit) = self.on_default_branch()? {
            return Ok(commit);
        }
        let branches = self.branches()?;
        let head = match branches.checked_out {
            Some(commit) => commit,
            None => match self.checkout_head()? {
                CheckoutHead::Branch { commit, .. } | CheckoutHead::Detached { commit } => commit,
                CheckoutHead::Unborn { .. } => return Err(GitError::NoCommits),
            },
        };
        self.merge_base_or_head(branches.default, head)
    }

    /// The base of work that ends at `commit`.
    pub fn base_of(&self, commit: &Commit) -> Result<Commit, GitError> {
        self.merge_base_or_head(self.branches()?.default, commit.clone())
    }

    fn merge_base_or_head(&self, default: Option<(String, Commit)>, head: Commit) -> Result<Commit, GitError> {
        match default {
            Some((name, commit)) if commit != head => Ok(self.merge_base(head.as_str(), &name)?.unwrap_or(head)),
            Some(_) | None => Ok(head),
        }
    }

    /// The best common ancestor of two revisions, if they have one.
    pub fn merge_base(&self, one: &str, other: &str) -> Result<Option<Commit>, GitError> {
        let ended =
            self.isolated_git(self.checkout_place())?.args(["merge-base", "--end-of-options", one, other]).run()?;
        let printed = String::from_utf8_lossy(&ended.stdout).trim_end().to_owned();
        Ok(ended.into_bool()?.then(|| Commit::new(printed)))
    }

    /// Whether `descendant` contains every commit of `ancestor`.
    pub fn is_ancestor(&self, ancestor: &str, descendant: &str) -> Result<bool, GitError> {
        let asked = ["merge-base", "--is-ancestor", "--end-of-options", ancestor, descendant];
        self.isolated_git(self.checkout_place())?.args(asked).run()?.into_bool()
    }

    /// Paths of the submodules at `HEAD`.
    pub fn submodules(&self) -> Result<Vec<String>, GitError> {
        let listed = self.isolated_git(self.checkout_place())?.args(["ls-tree", "-r", "-z", "HEAD"]).read()?;
        let links = listed.split(|&byte| byte == 0).filter(|entry| entry.starts_with(b"160000 "));
        let paths = links.filter_map(|entry| entry.splitn(2, |&byte| byte == b'\t').nth(1));
        Ok(paths.map(|path| String::from_utf8_lossy(path).into_owned()).collect())
    }

    /// Subject lines of the commits after `base` up to `head`, newest first.
    pub fn log_subjects(&self, base: &Commit, head: &Commit) -> Result<Vec<String>, GitError> {
        let range = format!("{base}..{head}");
        let asked = ["log", "-z", "--format=%s", "--no-show-signature", "--end-of-options", &range, "--"];
        let printed = self.isolated_git(self.checkout_place())?.args(asked).read()?;
        Ok(String::from_utf8_lossy(&printed).split_terminator('\0').map(str::to_owned).collect())
    }
}

pub(super) fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

fn main_worktree(common: &Path, git_dir: &Path, checkout: &Path) -> PathBuf {
    if common == git_dir {
        return checkout.to_owned();
    }
    match (common.file_name(), common.parent()) {
        (Some(name), Some(parent)) if name == ".git" => parent.to_owned(),
        (_, _) => common.to_owned(),
    }
}
