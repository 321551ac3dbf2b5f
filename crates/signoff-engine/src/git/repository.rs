//! A git repository, found from a directory or created in one.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use signoff_core::ids::{Commit, Tree};

use super::branch::{Branches, RefTip};
use super::command::GitCommand;
use super::head::TreeCache;
use super::isolated_dir::{IsolatedGitDir, ScratchPath};
use super::status::{CachedCheckoutState, FileHashCache};
use super::{Git, GitError};

/// A git repository and the worktree the user is in. Clones refer to the same repository.
#[derive(Debug, Clone)]
pub struct Repository {
    pub(super) inner: Arc<RepositoryInner>,
}

#[derive(Debug)]
pub(super) struct RepositoryInner {
    git: Git,
    /// The `.git` directory that all worktrees share.
    common: PathBuf,
    /// The git directory of the checkout: `common`, or a directory below it for a linked worktree.
    git_dir: PathBuf,
    checkout: PathBuf,
    root: PathBuf,
    isolated_dir: OnceLock<IsolatedGitDir>,
    /// The result of the last [`Repository::checkout_state`].
    pub(super) cached_state: Mutex<Option<CachedCheckoutState>>,
    pub(super) hashes: Mutex<FileHashCache>,
    pub(super) trees: TreeCache,
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
pub(super) struct GitDirs<'a> {
    pub(super) git_dir: &'a Path,
    pub(super) work_tree: &'a Path,
    /// An index to use instead of the worktree's own.
    pub(super) index: Option<&'a Path>,
    /// Where new objects are written, if not to the repository. The repository's objects stay readable.
    pub(super) objects: Option<&'a Path>,
}

impl<'a> GitDirs<'a> {
    pub(super) fn new(git_dir: &'a Path, work_tree: &'a Path) -> Self {
        Self { git_dir, work_tree, index: None, objects: None }
    }

    pub(super) fn with_index(self, index: &'a ScratchPath) -> Self {
        Self { index: Some(&index.path), ..self }
    }
}

impl Repository {
    /// Finds the repository that contains `directory`.
    pub fn discover(git: &Git, directory: &Path) -> Result<Self, GitError> {
        if !directory.is_dir() {
            return Err(GitError::NotARepository(directory.to_owned()));
        }
        let real = fs::canonicalize(directory).map_err(GitError::at(directory))?;
        if real.to_str().is_none_or(|path| path.contains('\n')) {
            return Err(GitError::UnsupportedPath(real));
        }
        let flags = ["--is-bare-repository", "--git-common-dir", "--git-dir", "--show-toplevel"];
        let ended = git.command(directory).args(["rev-parse", "--path-format=absolute"]).args(flags).run()?;
        let lines: Vec<&[u8]> = ended.stdout.split(|&byte| byte == b'\n').collect();
        // A git without this option prints it back.
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

    /// Creates a repository in a directory and commits everything in it.
    pub fn init(git: &Git, directory: &Path, message: &str) -> Result<Self, GitError> {
        git.command(directory).args(["init", "--quiet", "--initial-branch=main"]).execute()?;
        let repository = Self::discover(git, directory)?;
        repository.isolated_git("add --all")?.execute()?;
        repository.isolated_git("commit -q -F -")?.input(format!("{message}\n")).execute()?;
        Ok(repository)
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
        let command = self.isolated_git("config user.name").ok()?;
        command.read_line().ok().filter(|name| !name.is_empty())
    }

    /// Starts git processes and counts them.
    pub fn git(&self) -> &Git {
        &self.inner.git
    }

    pub(super) fn common(&self) -> &Path {
        &self.inner.common
    }

    /// The git directories of all worktrees.
    pub(super) fn git_dirs(&self) -> impl Iterator<Item = PathBuf> {
        let linked = fs::read_dir(self.common().join("worktrees")).into_iter().flatten().flatten();
        linked.map(|entry| entry.path()).chain([self.common().to_owned()])
    }

    /// The user's checkout, for reading.
    pub(super) fn checkout_dirs(&self) -> GitDirs<'_> {
        GitDirs::new(&self.inner.git_dir, &self.inner.checkout)
    }

    /// A git command in the user's checkout, like [`Self::isolated_git_at`].
    pub(super) fn isolated_git(&self, subcommand: &'static str) -> Result<GitCommand<'_>, GitError> {
        self.isolated_git_at(self.checkout_dirs(), subcommand)
    }

    /// A git command that uses the isolated directory, so it runs no command configured in the repository. Begins
    /// with this subcommand; anything that is not known here is added by [`GitCommand::args`].
    pub(super) fn isolated_git_at(
        &self,
        dirs: GitDirs<'_>,
        subcommand: &'static str,
    ) -> Result<GitCommand<'_>, GitError> {
        let GitDirs { git_dir, work_tree, index, objects } = dirs;
        let common_objects = self.common().join("objects");
        let replaced = [
            index.map(|index| ("GIT_INDEX_FILE", index)),
            objects.map(|objects| ("GIT_OBJECT_DIRECTORY", objects)),
            objects.map(|_| ("GIT_ALTERNATE_OBJECT_DIRECTORIES", common_objects.as_path())),
        ];
        let isolated = self.isolated_dir()?.environment.iter().map(|(name, value)| (name, value));
        let command = self.git().command(work_tree).envs(isolated).args(subcommand.split(' '));
        let command = command.env("GIT_DIR", git_dir).env("GIT_WORK_TREE", work_tree);
        Ok(command.envs(replaced.into_iter().flatten()))
    }

    pub(super) fn isolated_dir(&self) -> Result<&IsolatedGitDir, GitError> {
        if let Some(isolated) = self.inner.isolated_dir.get() {
            return Ok(isolated);
        }
        let made = IsolatedGitDir::create(self.git(), self.common(), self.checkout())?;
        // If two threads created one, the slower thread drops its own.
        Ok(self.inner.isolated_dir.get_or_init(|| made))
    }

    /// A temporary path for one caller.
    pub(super) fn scratch(&self) -> Result<ScratchPath, GitError> {
        self.isolated_dir().map(IsolatedGitDir::scratch)
    }

    /// Runs `work` while no other thread or process of ours changes the repository's refs and worktrees.
    pub(super) fn with_lock<T>(&self, work: impl FnOnce() -> Result<T, GitError>) -> Result<T, GitError> {
        self.git().with_lock(&self.common().join("signoff/lock"), work)
    }

    /// Where the checkout's `HEAD` points.
    pub fn checkout_head(&self) -> Result<CheckoutHead, GitError> {
        let ended = self.isolated_git("rev-parse -q HEAD --symbolic-full-name HEAD")?.run()?;
        if ended.code() != Some(0) {
            let branch = self.isolated_git("symbolic-ref --short HEAD")?.read_line()?;
            return Ok(CheckoutHead::Unborn { branch });
        }
        let printed = ended.line();
        let mut lines = printed.lines();
        let commit = Commit::new(lines.next().unwrap_or_default());
        Ok(match lines.next().and_then(|name| name.strip_prefix("refs/heads/")) {
            Some(name) => CheckoutHead::Branch { name: name.to_owned(), commit },
            None => CheckoutHead::Detached { commit },
        })
    }

    /// The commit that a revision refers to.
    pub fn resolve(&self, revision: &str) -> Result<Commit, GitError> {
        self.resolve_to(revision, "commit").map(Commit::new)
    }

    /// The tree of a commit.
    pub fn tree_of(&self, commit: &Commit) -> Result<Tree, GitError> {
        let known = self.inner.trees.get(commit);
        known.map_or_else(|| self.resolve_to(commit.as_str(), "tree").map(Tree::new), Ok)
    }

    /// The id of the object of a type that a revision refers to.
    fn resolve_to(&self, revision: &str, object_type: &str) -> Result<String, GitError> {
        let peeled = format!("{revision}^{{{object_type}}}");
        let ended = self.isolated_git("rev-parse -q --verify --end-of-options")?.args([&peeled]).run()?;
        match ended.code() {
            Some(0) => Ok(ended.line()),
            Some(_) | None => Err(GitError::UnknownRevision(revision.to_owned())),
        }
    }

    /// The base of work that starts from `HEAD`: the merge-base with the default branch, or `HEAD` if there is
    /// none.
    pub fn base(&self) -> Result<Commit, GitError> {
        if let Some(commit) = self.on_default_branch()? {
            return Ok(commit);
        }
        let branches = self.branches()?;
        let head = match &branches.checked_out {
            Some(commit) => commit.clone(),
            None => match self.checkout_head()? {
                CheckoutHead::Branch { commit, .. } | CheckoutHead::Detached { commit } => commit,
                CheckoutHead::Unborn { .. } => return Err(GitError::NoCommits),
            },
        };
        self.merge_base_or_head(&branches, head)
    }

    /// The base of work that ends at `commit`.
    pub fn base_of(&self, commit: &Commit) -> Result<Commit, GitError> {
        self.merge_base_or_head(&self.branches()?, commit.clone())
    }

    fn merge_base_or_head(&self, branches: &Branches, head: Commit) -> Result<Commit, GitError> {
        match &branches.default {
            Some(RefTip { name, commit }) if *commit != head => {
                Ok(self.merge_base(head.as_str(), name)?.unwrap_or(head))
            }
            Some(_) | None => Ok(head),
        }
    }

    /// The best common ancestor of two revisions, if they have one.
    pub fn merge_base(&self, one: &str, other: &str) -> Result<Option<Commit>, GitError> {
        let ended = self.isolated_git("merge-base --end-of-options")?.args([one, other]).run()?;
        let printed = ended.line();
        Ok(ended.into_bool()?.then(|| Commit::new(printed)))
    }

    /// Whether `descendant` contains every commit of `ancestor`.
    pub fn is_ancestor(&self, ancestor: &str, descendant: &str) -> Result<bool, GitError> {
        self.isolated_git("merge-base --is-ancestor --end-of-options")?.args([ancestor, descendant]).run()?.into_bool()
    }
}

/// The non-empty fields of NUL-separated output.
pub(super) fn split_nul(printed: &[u8]) -> impl Iterator<Item = &[u8]> {
    printed.split(|&byte| byte == 0).filter(|field| !field.is_empty())
}

/// Paths in the form that git reads from its input, each ended by NUL.
pub(super) fn join_nul<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Vec<u8> {
    paths.into_iter().flat_map(|path| path.as_os_str().as_bytes().iter().chain(&[0])).copied().collect()
}

/// A path with magic words: with `literal` git does not take it as a pattern.
pub(super) fn pathspec(magic: &str, path: &Path) -> OsString {
    let mut spec = OsString::from(format!(":({magic})"));
    spec.push(path);
    spec
}

/// Ids in the form that git reads from its input, one per line.
pub(super) fn id_lines<'a>(commits: impl IntoIterator<Item = &'a Commit>) -> String {
    commits.into_iter().map(|commit| format!("{commit}\n")).collect()
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
