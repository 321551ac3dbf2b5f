//! A repository as found from a directory, and what can be asked of it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use signoff_core::ids::{Commit, Tree};

use super::checkout::Looked;
use super::head::Trees;
use super::invocation::Invocation;
use super::sealed::Sealed;
use super::snapshot::Hashes;
use super::{Git, GitError, turn};

/// A git repository and the worktree of it a person is in. Clones are the same repository.
#[derive(Debug, Clone)]
pub struct Repository {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    git: Git,
    /// The `.git` that all worktrees share.
    common: PathBuf,
    /// The git directory of the checkout: `common`, or below it for a linked worktree.
    git_dir: PathBuf,
    checkout: PathBuf,
    root: PathBuf,
    sealed: OnceLock<Sealed>,
    /// The last look at the checkout.
    looked: Mutex<Option<Looked>>,
    hashes: Mutex<Hashes>,
    trees: Trees,
}

/// Where a checkout is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At {
    Branch { name: String, commit: Commit },
    Detached { commit: Commit },
    Unborn { branch: String },
}

/// Where a git command works.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) git_dir: &'a Path,
    pub(super) work_tree: &'a Path,
    /// An index other than the worktree's own.
    pub(super) index: Option<&'a Path>,
    /// Where objects are written to, if not into the repository's own, which are read all the same.
    pub(super) objects: Option<&'a Path>,
}

impl Repository {
    /// Finds the repository `directory` lies in.
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
                Ok(Self::found(git, path(common), path(git_dir), path(checkout)))
            }
            (_, [_, common, ..]) if !common.is_empty() => Err(GitError::Bare(path(common))),
            (Some(_) | None, _) if ended.stderr().contains("not a git repository") => {
                Err(GitError::NotARepository(directory.to_owned()))
            }
            (Some(_) | None, _) => Err(ended.failure()),
        }
    }

    fn found(git: &Git, common: PathBuf, git_dir: PathBuf, checkout: PathBuf) -> Self {
        let root = main_worktree(&common, &git_dir, &checkout);
        let inner = Inner {
            git: git.clone(),
            common,
            git_dir,
            checkout,
            root,
            sealed: OnceLock::new(),
            looked: Mutex::default(),
            hashes: Mutex::default(),
            trees: Trees::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The top of the main worktree, from wherever one looks. Of a bare repository with linked worktrees: itself.
    pub fn root(&self) -> &Path {
        &self.inner.root
    }

    /// The top of the worktree the person is in.
    pub fn checkout(&self) -> &Path {
        &self.inner.checkout
    }

    /// The person's name, as their commits have it.
    pub fn person(&self) -> Option<String> {
        let asked = self.sealed(self.here()).ok()?.args(["config", "user.name"]);
        asked.read_line().ok().filter(|name| !name.is_empty())
    }

    /// Starts git, and counts how often.
    pub fn git(&self) -> &Git {
        &self.inner.git
    }

    pub(super) fn looked(&self) -> &Mutex<Option<Looked>> {
        &self.inner.looked
    }

    pub(super) fn hashes(&self) -> &Mutex<Hashes> {
        &self.inner.hashes
    }

    pub(super) fn trees(&self) -> &Trees {
        &self.inner.trees
    }

    pub(super) fn common(&self) -> &Path {
        &self.inner.common
    }

    /// The person's checkout as a place to read from.
    pub(super) fn here(&self) -> Place<'_> {
        Place { git_dir: &self.inner.git_dir, work_tree: &self.inner.checkout, index: None, objects: None }
    }

    /// A git command that runs nothing the repository names.
    pub(super) fn sealed(&self, place: Place<'_>) -> Result<Invocation<'_>, GitError> {
        let invocation = self.git().command(place.work_tree).within(self.seal()?.environment());
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

    pub(super) fn seal(&self) -> Result<&Sealed, GitError> {
        if let Some(sealed) = self.inner.sealed.get() {
            return Ok(sealed);
        }
        let made = Sealed::make(self.git(), self.common(), self.checkout())?;
        // Of two threads that made one the slower throws its own away.
        Ok(self.inner.sealed.get_or_init(|| made))
    }

    /// Runs `work` while nobody else of ours changes the repository's refs and worktrees.
    pub(super) fn in_turn<T>(&self, work: impl FnOnce() -> Result<T, GitError>) -> Result<T, GitError> {
        turn::take(self.git(), &self.common().join("signoff/lock"), work)
    }

    /// Where the checkout is.
    pub fn at(&self) -> Result<At, GitError> {
        let asked = ["rev-parse", "-q", "HEAD", "--symbolic-full-name", "HEAD"];
        let ended = self.sealed(self.here())?.args(asked).run()?;
        if ended.code() != Some(0) {
            let branch = self.sealed(self.here())?.args(["symbolic-ref", "--short", "HEAD"]).read_line()?;
            return Ok(At::Unborn { branch });
        }
        let printed = String::from_utf8_lossy(&ended.stdout).into_owned();
        let mut lines = printed.lines();
        let commit = Commit::new(lines.next().unwrap_or_default());
        Ok(match lines.next().and_then(|name| name.strip_prefix("refs/heads/")) {
            Some(name) => At::Branch { name: name.to_owned(), commit },
            None => At::Detached { commit },
        })
    }

    /// The commit a revision names.
    pub fn resolve(&self, revision: &str) -> Result<Commit, GitError> {
        let peeled = format!("{revision}^{{commit}}");
        let asked = ["rev-parse", "-q", "--verify", "--end-of-options", &peeled];
        let ended = self.sealed(self.here())?.args(asked).run()?;
        match ended.code() {
            Some(0) => Ok(Commit::new(String::from_utf8_lossy(&ended.stdout).trim_end())),
            Some(_) | None => Err(GitError::UnknownRevision(revision.to_owned())),
        }
    }

    /// The tree of a commit.
    pub fn tree_of(&self, commit: &Commit) -> Result<Tree, GitError> {
        if let Some(tree) = self.trees().of(commit) {
            return Ok(tree);
        }
        let peeled = format!("{commit}^{{tree}}");
        let asked = ["rev-parse", "-q", "--verify", "--end-of-options", &peeled];
        let ended = self.sealed(self.here())?.args(asked).run()?;
        match ended.code() {
            Some(0) => Ok(Tree::new(String::from_utf8_lossy(&ended.stdout).trim_end())),
            Some(_) | None => Err(GitError::UnknownRevision(commit.to_string())),
        }
    }

    /// Where work started from `HEAD` is counted from: the merge-base with the default branch, or `HEAD` where
    /// the two have nothing in common.
    pub fn base(&self) -> Result<Commit, GitError> {
        if let Some(commit) = self.on_default_branch()? {
            return Ok(commit);
        }
        let branches = self.branches()?;
        let head = match branches.checked_out {
            Some(commit) => commit,
            None => match self.at()? {
                At::Branch { commit, .. } | At::Detached { commit } => commit,
                At::Unborn { .. } => return Err(GitError::NoCommits),
            },
        };
        self.parted(branches.default, head)
    }

    /// The same for work that ended at a commit.
    pub fn base_of(&self, commit: &Commit) -> Result<Commit, GitError> {
        self.parted(self.branches()?.default, commit.clone())
    }

    fn parted(&self, default: Option<(String, Commit)>, head: Commit) -> Result<Commit, GitError> {
        match default {
            Some((name, commit)) if commit != head => {
                Ok(self.merge_base(head.as_str(), &name)?.unwrap_or(head))
            }
            Some(_) | None => Ok(head),
        }
    }

    /// The best common ancestor of two revisions, if they have one.
    pub fn merge_base(&self, one: &str, other: &str) -> Result<Option<Commit>, GitError> {
        let ended = self.sealed(self.here())?.args(["merge-base", "--end-of-options", one, other]).run()?;
        let printed = String::from_utf8_lossy(&ended.stdout).trim_end().to_owned();
        Ok(ended.yes()?.then(|| Commit::new(printed)))
    }

    /// Whether everything in `ancestor` is in `descendant` too.
    pub fn is_ancestor(&self, ancestor: &str, descendant: &str) -> Result<bool, GitError> {
        let asked = ["merge-base", "--is-ancestor", "--end-of-options", ancestor, descendant];
        self.sealed(self.here())?.args(asked).run()?.yes()
    }

    /// Submodules at `HEAD`, by path.
    pub fn submodules(&self) -> Result<Vec<String>, GitError> {
        let listed = self.sealed(self.here())?.args(["ls-tree", "-r", "-z", "HEAD"]).read()?;
        let links = listed.split(|&byte| byte == 0).filter(|entry| entry.starts_with(b"160000 "));
        let paths = links.filter_map(|entry| entry.splitn(2, |&byte| byte == b'\t').nth(1));
        Ok(paths.map(|path| String::from_utf8_lossy(path).into_owned()).collect())
    }

    /// The first lines of the commits after `base` up to `head`, newest first.
    pub fn log_subjects(&self, base: &Commit, head: &Commit) -> Result<Vec<String>, GitError> {
        let range = format!("{base}..{head}");
        let asked = ["log", "-z", "--format=%s", "--no-show-signature", "--end-of-options", &range, "--"];
        let printed = self.sealed(self.here())?.args(asked).read()?;
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
