//! Branches: whose they are, where they point, and which one is the default.
//!
//! For each branch this program makes there is a second ref, `refs/signoff/base/BRANCH`, made and deleted in the
//! same transaction: it says that the branch is ours, and keeps the commit the work started from.

use std::path::PathBuf;

use signoff_core::ids::{Commit, Tree};
use signoff_core::machine::Head;

use super::repository::At;
use super::{GitError, Repository, Tips};

/// Tried in this order where neither the remote nor the configuration names one that is there.
const USUAL: [&str; 3] = ["main", "master", "trunk"];

const REMOTE_HEAD: &str = "refs/remotes/origin/HEAD";

/// The branches as one look at the repository shows them.
#[derive(Debug, Default)]
pub(super) struct Branches {
    /// The default branch's ref and its commit: here if it is here, else the remote's.
    pub(super) default: Option<(String, Commit)>,
    /// The commit of the branch that is checked out; none if there is no such branch yet or `HEAD` is detached.
    pub(super) checked_out: Option<Commit>,
}

/// What git knows of a branch's name.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) tip: Option<Head>,
    /// The worktree it is checked out in.
    pub(super) used_by: Option<PathBuf>,
    /// Where we started it, if it is ours.
    pub(super) base: Option<Commit>,
}

impl Repository {
    /// The branch work is meant for in the end.
    pub fn default_branch(&self) -> Result<String, GitError> {
        if let Some((name, _)) = self.branches()?.default {
            let short = name.strip_prefix("refs/heads/").or(name.strip_prefix("refs/remotes/origin/"));
            return Ok(short.unwrap_or(&name).to_owned());
        }
        match self.at()? {
            At::Branch { name, .. } | At::Unborn { branch: name } => Ok(name),
            At::Detached { .. } => Err(GitError::UnknownRevision("the default branch".to_owned())),
        }
    }

    pub(super) fn branches(&self) -> Result<Branches, GitError> {
        let format = "--format=%(HEAD)%(refname) %(objectname) %(symref) %(tree)";
        let asked = ["for-each-ref", format, REMOTE_HEAD];
        let printed = self.sealed(self.here())?.args(asked).args(self.candidates()?).read()?;
        let printed = String::from_utf8_lossy(&printed);
        let lines = printed.lines().filter_map(|line| line.split_at_checked(1));
        let checked_out = |(mark, rest): (&str, &str)| {
            (mark == "*").then(|| rest.split(' ').nth(1).map(Commit::new)).flatten()
        };
        let checked_out = lines.clone().find_map(checked_out);
        let refs: Vec<[&str; 4]> =
            lines.filter_map(|(_, rest)| rest.split(' ').collect::<Vec<_>>().try_into().ok()).collect();
        for [_, commit, _, tree] in refs.iter().filter(|[.., tree]| !tree.is_empty()) {
            self.trees().keep(&Head { commit: Commit::new(*commit), tree: Tree::new(*tree) });
        }
        Ok(Branches { default: self.default_of(&refs)?, checked_out })
    }

    /// The branches that may be checked out or the default one. A repository can have thousands of others.
    fn candidates(&self) -> Result<Vec<String>, GitError> {
        let read = |file: PathBuf| std::fs::read_to_string(file).unwrap_or_default();
        let head = read(self.here().git_dir.join("HEAD"));
        // Where refs are kept in another form this file names none, and all have to be looked at.
        let Some(head) = named(&head, "refs/heads/").filter(|name| *name != ".invalid") else {
            return Ok(vec!["refs/heads".to_owned()]);
        };
        let remote = read(self.common().join(REMOTE_HEAD));
        let remote = named(&remote, "refs/remotes/origin/");
        let names = USUAL.into_iter().chain(self.seal()?.default_branch()).chain(remote).chain([head]);
        Ok(names.map(|name| format!("refs/heads/{name}")).collect())
    }

    /// The commit of the branch that is checked out, where it is the default one and that can be told without git.
    pub(super) fn on_default_branch(&self) -> Result<Option<Commit>, GitError> {
        let read = |file: PathBuf| std::fs::read_to_string(file).unwrap_or_default();
        let head = read(self.here().git_dir.join("HEAD"));
        let Some(head) = named(&head, "refs/heads/") else { return Ok(None) };
        let mut tips = Tips::of_common(self.common());
        let remote = read(self.common().join(REMOTE_HEAD));
        let default = match (named(&remote, "refs/remotes/origin/"), remote.is_empty()) {
            (Some(name), _) => Some(name),
            (None, true) => {
                let known = self.seal()?.default_branch().into_iter().chain(USUAL);
                known.into_iter().find(|name| tips.of_file(name).is_some())
            }
            (None, false) => None,
        };
        Ok(tips.of_file(head).filter(|_| default == Some(head)).map(Commit::new))
    }

    fn default_of(&self, refs: &[[&str; 4]]) -> Result<Option<(String, Commit)>, GitError> {
        let local = |name: &str| {
            let full = format!("refs/heads/{name}");
            let found = refs.iter().find(|[existing, ..]| *existing == full);
            found.map(|[_, commit, ..]| (full, Commit::new(*commit)))
        };
        if let Some([_, commit, target, _]) = refs.iter().find(|[name, ..]| *name == REMOTE_HEAD) {
            let short = target.strip_prefix("refs/remotes/origin/").unwrap_or(target);
            return Ok(Some(local(short).unwrap_or_else(|| ((*target).to_owned(), Commit::new(*commit)))));
        }
        let configured = self.seal()?.default_branch();
        Ok(configured.into_iter().chain(USUAL).find_map(local))
    }

    /// The tip of a branch, if there is one of that name.
    pub fn head_of(&self, branch: &str) -> Result<Option<Head>, GitError> {
        Ok(self.known(branch)?.tip)
    }

    /// Where a branch of ours is; if there is none it begins at `start`.
    pub fn begin_branch(
        &self,
        branch: &str,
        start: impl FnOnce() -> Result<Commit, GitError>,
    ) -> Result<Commit, GitError> {
        let tip = || Tips::of_common(self.common()).of_file(branch).map(Commit::new);
        if let Some(tip) = tip() {
            return Ok(tip);
        }
        self.in_turn(|| {
            // Another thread may have been faster.
            if let Some(tip) = tip()
                .map_or_else(|| Ok(self.head_of(branch)?.map(|head| head.commit)), |tip| Ok(Some(tip)))?
            {
                return Ok(tip);
            }
            let start = start()?;
            self.create_branch(branch, &start)?;
            Ok(start)
        })
    }

    /// The commit a branch of ours began at.
    pub fn begun_at(&self, branch: &str) -> Result<Option<Commit>, GitError> {
        Ok(self.known(branch)?.base)
    }

    pub fn has_branch(&self, branch: &str) -> Result<bool, GitError> {
        Ok(self.known(branch)?.tip.is_some())
    }

    /// Whether a branch of ours has moved since it was made.
    pub fn holds_work(&self, branch: &str) -> Result<bool, GitError> {
        let known = self.known(branch)?;
        Ok(known.tip.zip(known.base).is_some_and(|(tip, base)| tip.commit != base))
    }

    pub(super) fn known(&self, branch: &str) -> Result<Known, GitError> {
        let (tip, base) = refs_of(branch);
        let format = "--format=%(refname)%00%(objectname)%00%(tree)%00%(worktreepath)";
        let printed = self.sealed(self.here())?.args(["for-each-ref", format, &tip, &base]).read()?;
        let printed = String::from_utf8_lossy(&printed);
        let mut known = Known::default();
        for line in printed.lines() {
            let [name, commit, tree, worktree] = *line.split('\0').collect::<Vec<_>>().as_slice() else {
                continue;
            };
            if name == tip {
                known.tip = Some(Head { commit: Commit::new(commit), tree: Tree::new(tree) });
                known.used_by = (!worktree.is_empty()).then(|| self.real_place(worktree)).transpose()?;
            } else if name == base {
                known.base = Some(Commit::new(commit));
            }
        }
        Ok(known)
    }

    /// Git takes the stand-in for the main worktree; here it gets its name back.
    fn real_place(&self, worktree: &str) -> Result<PathBuf, GitError> {
        let stand_in = self.seal()?.directory();
        let place = PathBuf::from(worktree);
        Ok(if place.starts_with(stand_in) { self.root().to_owned() } else { place })
    }

    /// Makes a branch of ours.
    pub(super) fn create_branch(&self, branch: &str, start: &Commit) -> Result<(), GitError> {
        self.put_branch(branch, start, start)
    }

    /// Makes a branch of ours at a commit, which work led to that began at `from`.
    pub(super) fn put_branch(&self, branch: &str, at: &Commit, from: &Commit) -> Result<(), GitError> {
        let (tip, base) = refs_of(branch);
        self.update_refs(format!("create {tip}\0{at}\0update {base}\0{from}\0\0"))
    }

    /// Deletes a branch this program made; its commits go with it, unless another ref holds them.
    pub fn delete_branch(&self, branch: &str) -> Result<(), GitError> {
        self.in_turn(|| {
            let known = self.known(branch)?;
            match (known.tip, known.base, known.used_by) {
                (None, None, _) => Ok(()),
                (Some(_), None, by) | (_, _, by @ Some(_)) => {
                    Err(GitError::BranchTaken { branch: branch.to_owned(), by })
                }
                (tip, Some(start), None) => {
                    let (name, base) = refs_of(branch);
                    let tip = tip.map(|tip| format!("delete {name}\0{}\0", tip.commit));
                    self.update_refs(format!("{}delete {base}\0{start}\0", tip.unwrap_or_default()))
                }
            }
        })
    }

    pub(super) fn update_refs(&self, transaction: String) -> Result<(), GitError> {
        self.sealed(self.here())?.args(["update-ref", "-z", "--stdin"]).input(transaction).read().map(drop)
    }
}

/// The ref below `home` that the text of a symbolic ref names.
fn named<'a>(text: &'a str, home: &str) -> Option<&'a str> {
    text.trim_end().strip_prefix("ref: ")?.strip_prefix(home)
}

fn refs_of(branch: &str) -> (String, String) {
    (format!("refs/heads/{branch}"), format!("refs/signoff/base/{branch}"))
}
