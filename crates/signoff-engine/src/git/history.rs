//! Reads commits: their ancestry and their files.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use signoff_core::ids::{Commit, Tree};

use super::repository::{id_lines, path, split_nul};
use super::{GitError, Repository};

/// Commits that a branch does not contain, with their parents.
#[derive(Debug, Default)]
pub struct CommitAncestry {
    parents: HashMap<Commit, Vec<Commit>>,
    /// All commits, parents first.
    order: Vec<Commit>,
}

/// Tree and subject of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitInfo {
    pub tree: Tree,
    pub subject: String,
}

/// A plain file in a commit, up to a size limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommittedFile {
    /// The whole file.
    Content(Vec<u8>),
    /// The file exceeds the limit.
    TooLarge { bytes: u64 },
}

impl CommitAncestry {
    /// The ancestors of a commit, including itself. Empty if the branch contains it.
    pub fn ancestors(&self, commit: &Commit) -> HashSet<&Commit> {
        let mut found = HashSet::new();
        let mut next: Vec<&Commit> = self.parents.get_key_value(commit).map(|(own, _)| own).into_iter().collect();
        while let Some(commit) = next.pop() {
            if found.insert(commit) {
                let known = self.parents(commit).iter().filter_map(|parent| self.parents.get_key_value(parent));
                next.extend(known.map(|(parent, _)| parent));
            }
        }
        found
    }

    /// The ancestors of `tip` that are not ancestors of `base`, parents first.
    pub fn between(&self, base: &Commit, tip: &Commit) -> Vec<&Commit> {
        let (before, all) = (self.ancestors(base), self.ancestors(tip));
        self.order.iter().filter(|commit| all.contains(commit) && !before.contains(commit)).collect()
    }

    /// The ancestors of a commit, including itself, parents first.
    pub fn up_to(&self, tip: &Commit) -> Vec<Commit> {
        let all = self.ancestors(tip);
        self.order.iter().filter(|commit| all.contains(commit)).cloned().collect()
    }

    /// The commits of the branch that are parents of these.
    pub fn roots<'a>(&'a self, commits: impl IntoIterator<Item = &'a Commit>) -> HashSet<&'a Commit> {
        let parents = commits.into_iter().flat_map(|commit| self.parents(commit));
        parents.filter(|parent| !self.contains(parent)).collect()
    }

    pub fn contains(&self, commit: &Commit) -> bool {
        self.parents.contains_key(commit)
    }

    pub fn parents(&self, commit: &Commit) -> &[Commit] {
        self.parents.get(commit).map_or(&[], Vec::as_slice)
    }
}

impl Repository {
    /// The entries of a commit's tree below these paths, with sizes if the flags ask for them.
    pub(super) fn list_tree(
        &self,
        commit: &str,
        flags: &[&str],
        paths: &[impl AsRef<OsStr>],
    ) -> Result<Vec<TreeEntry>, GitError> {
        let command = self.isolated_git("ls-tree -z --full-tree")?.args(flags).args([commit, "--"]);
        let printed = command.args(paths).read()?;
        Ok(split_nul(&printed).filter_map(TreeEntry::parse).collect())
    }

    /// Paths of the submodules at `HEAD`.
    pub fn submodules(&self) -> Result<Vec<String>, GitError> {
        let listed = self.list_tree("HEAD", &["-r"], NO_PATHS)?.into_iter();
        Ok(listed.filter(|entry| entry.mode == SUBMODULE_MODE).map(|entry| entry.path.display().to_string()).collect())
    }

    /// Subject lines of the commits after `base` up to `head`, newest first.
    pub fn log_subjects(&self, base: &Commit, head: &Commit) -> Result<Vec<String>, GitError> {
        let range = format!("{base}..{head}");
        let command = self.isolated_git("log -z --format=%s --no-show-signature --end-of-options")?;
        Ok(command.args([range.as_str(), "--"]).read_text()?.split_terminator('\0').map(str::to_owned).collect())
    }

    /// All ancestors of these commits that a branch does not contain. Ignores commits that the repository does
    /// not have.
    pub fn commits_beyond<'a>(
        &self,
        branch: &str,
        tips: impl IntoIterator<Item = &'a Commit>,
    ) -> Result<CommitAncestry, GitError> {
        let input = format!("{}^refs/heads/{branch}\n", id_lines(tips));
        let mut lineage = CommitAncestry::default();
        let command = self.isolated_git("rev-list --topo-order --reverse --parents --ignore-missing --stdin")?;
        for line in command.input(input).read_text()?.lines() {
            let mut ids = line.split(' ').map(Commit::new);
            let Some(commit) = ids.next() else { continue };
            lineage.order.push(commit.clone());
            lineage.parents.insert(commit, ids.collect());
        }
        Ok(lineage)
    }

    /// The commits reachable from `tip` but from none of the others, oldest first, without merges.
    pub fn commits_excluding(&self, others: &[Commit], tip: &Commit) -> Result<Vec<Commit>, GitError> {
        let others = others.iter().map(|other| format!("^{other}"));
        let command = self.isolated_git("rev-list --topo-order --reverse --no-merges")?.args([tip.as_str()]);
        Ok(command.args(others).args(["--"]).read_text()?.lines().map(Commit::new).collect())
    }

    /// Those of these commits that a branch does not contain.
    pub fn missing_from_branch(&self, branch: &str, commits: &[Commit]) -> Result<BTreeSet<Commit>, GitError> {
        self.missing_from(&format!("refs/heads/{branch}"), commits)
    }

    /// Those of these commits that a revision does not contain, whether the repository has them or not.
    pub fn missing_from(&self, revision: &str, commits: &[Commit]) -> Result<BTreeSet<Commit>, GitError> {
        if commits.is_empty() {
            return Ok(BTreeSet::new());
        }
        let input = format!("{}^{revision}\n", id_lines(commits));
        let ended = self.isolated_git("rev-list --stdin")?.input(input.clone()).run()?;
        let (listed, gone) = match ended.success() {
            Ok(listed) => (listed, BTreeSet::new()),
            // Git names only the first missing commit.
            Err(_) => {
                let listed = self.isolated_git("rev-list --ignore-missing --stdin")?.input(input).read()?;
                (listed, self.missing_commits(commits)?)
            }
        };
        let listed: BTreeSet<Commit> = String::from_utf8_lossy(&listed).lines().map(Commit::new).collect();
        let is_missing = |commit: &&Commit| listed.contains(*commit) || gone.contains(*commit);
        Ok(commits.iter().filter(is_missing).cloned().collect())
    }

    /// Those of these commits that the repository does not have.
    pub fn missing_commits(&self, commits: &[Commit]) -> Result<BTreeSet<Commit>, GitError> {
        let printed = self.isolated_git("cat-file --batch-check")?.input(id_lines(commits)).read_text()?;
        Ok(printed.lines().filter_map(|line| line.strip_suffix(" missing")).map(Commit::new).collect())
    }

    /// Tree and subject of these commits.
    pub fn commit_infos<'a>(
        &self,
        commits: impl IntoIterator<Item = &'a Commit>,
    ) -> Result<HashMap<Commit, CommitInfo>, GitError> {
        let ids = id_lines(commits);
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let command = self.isolated_git("log -z --no-walk=unsorted --no-show-signature --stdin")?;
        let printed = command.args(["--format=%H %T %s"]).input(ids).read_text()?;
        let one = |record: &str| {
            let mut fields = record.splitn(3, ' ');
            let (commit, tree) = (Commit::new(fields.next()?), Tree::new(fields.next()?));
            Some((commit, CommitInfo { tree, subject: fields.next().unwrap_or_default().to_owned() }))
        };
        Ok(printed.split('\0').filter_map(one).collect())
    }

    /// Whether work that merged newer commits of a branch differs, in files those commits change, from git's
    /// own merge. Then it may revert their changes, and a reviewer that saw the diff from `base` did not see
    /// that.
    pub fn may_revert(&self, base: &Commit, newer: &Commit, tip: &Commit) -> Result<bool, GitError> {
        let merged = if self.is_ancestor(base.as_str(), newer.as_str())? {
            newer.to_string()
        } else {
            let Some(merged) = self.plain_merge(base, newer)? else { return Ok(true) };
            merged.to_string()
        };
        let brought = self.changed_files(base.as_str(), &merged)?;
        Ok(!brought.is_disjoint(&self.changed_files(&merged, tip.as_str())?))
    }

    /// The files that differ between two commits or trees.
    pub fn changed_files(&self, from: &str, to: &str) -> Result<BTreeSet<PathBuf>, GitError> {
        let command = self.isolated_git("diff-tree -r -z --name-only --no-renames")?;
        Ok(command.args([from, to]).read_paths()?.into_iter().collect())
    }

    /// Whether the tree of a merge of two parents is exactly the one git creates, without a conflict.
    pub fn is_plain_merge(&self, first: &Commit, second: &Commit, tree: &Tree) -> Result<bool, GitError> {
        Ok(self.plain_merge(second, first)?.as_ref() == Some(tree))
    }

    /// The tree of a merge that git makes without a conflict.
    fn plain_merge(&self, ours: &Commit, theirs: &Commit) -> Result<Option<Tree>, GitError> {
        match self.merge_trees(None, ours, theirs) {
            Ok(merged) => Ok(merged.conflicts.is_empty().then_some(merged.tree)),
            // For example, two commits without a common ancestor.
            Err(GitError::Failed { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The file at a path in a commit. `None` if it does not exist or is not a plain file.
    pub fn file_at(&self, commit: &Commit, file: &str, max_bytes: u64) -> Result<Option<CommittedFile>, GitError> {
        let listed = self.list_tree(commit.as_str(), &["--long"], &[file])?;
        let Some(entry) = listed.into_iter().next().filter(TreeEntry::is_plain_file) else { return Ok(None) };
        if entry.bytes > max_bytes {
            return Ok(Some(CommittedFile::TooLarge { bytes: entry.bytes }));
        }
        let content = self.isolated_git("cat-file blob")?.args([&entry.id]).read()?;
        Ok(Some(CommittedFile::Content(content)))
    }

    /// The plain files directly in a commit's top directory or in the given directories. Skips names that are
    /// not UTF-8.
    pub fn plain_files(&self, commit: &Commit, directories: &[&str]) -> Result<BTreeSet<String>, GitError> {
        let listed = self.list_tree(commit.as_str(), &[], directories)?.into_iter();
        let plain = listed.filter(TreeEntry::is_plain_file);
        Ok(plain.filter_map(|entry| entry.path.to_str().map(str::to_owned)).collect())
    }

    /// Whether a commit has anything other than a directory at a path.
    pub fn has_file(&self, commit: &Commit, file: &Path) -> Result<bool, GitError> {
        Ok(self.list_tree(commit.as_str(), &[], &[file])?.first().is_some_and(|entry| entry.mode != DIRECTORY_MODE))
    }

    /// Names of the files in a directory of a commit. Skips names with non-printable characters or backticks.
    pub fn file_names(&self, commit: &Commit, directory: &str) -> Result<Vec<String>, GitError> {
        let below = format!("{directory}/");
        let listed = self.list_tree(commit.as_str(), &[], &[&below])?;
        let names = listed.iter().filter_map(|entry| entry.path.to_str()?.strip_prefix(&below));
        let plain = |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_ascii_graphic() && c != '`');
        Ok(names.filter(plain).map(str::to_owned).collect())
    }

    /// The one of these files that changed last in the history of a commit.
    pub fn last_changed(&self, commit: &Commit, directory: &str, files: &[String]) -> Result<Option<String>, GitError> {
        let about = ["--end-of-options", commit.as_str(), "--", directory];
        let command = self.isolated_git("log -z --format= --name-only --no-renames --no-show-signature")?;
        let listed = command.args(about).read()?;
        let names = listed.split(|byte| matches!(*byte, 0 | b'\n')).map(String::from_utf8_lossy);
        let last = names.into_iter().find(|name| files.iter().any(|file| *file == **name));
        Ok(last.map(|name| name.into_owned()).or_else(|| files.last().cloned()))
    }

    /// The first of these worktree files whose bytes differ from the commit.
    pub fn first_difference(
        &self,
        commit: &Commit,
        worktree: &Path,
        files: &[PathBuf],
    ) -> Result<Option<PathBuf>, GitError> {
        let Some(first) = files.first() else { return Ok(None) };
        let listed = self.list_tree(commit.as_str(), &["-r"], NO_PATHS)?.into_iter().filter(TreeEntry::is_plain_file);
        let known: BTreeMap<PathBuf, String> = listed.map(|entry| (entry.path, entry.id)).collect();
        if let Some(new) = files.iter().find(|file| !known.contains_key(*file)) {
            return Ok(Some(new.clone()));
        }
        let paths = files.iter().map(|file| worktree.join(file));
        let hashed = self.isolated_git("hash-object --no-filters --")?.args(paths).read_text()?;
        let hashed: Vec<&str> = hashed.lines().collect();
        if hashed.len() != files.len() {
            return Ok(Some(first.clone()));
        }
        let same = |(file, id): &(&PathBuf, &&str)| known.get(*file).is_some_and(|known| known == **id);
        Ok(files.iter().zip(&hashed).find(|one| !same(one)).map(|(file, _)| file.clone()))
    }
}

const NO_PATHS: &[&str] = &[];

const DIRECTORY_MODE: &str = "040000";
const SUBMODULE_MODE: &str = "160000";

/// An entry of a commit's tree.
#[derive(Debug)]
pub(super) struct TreeEntry {
    mode: String,
    id: String,
    /// The maximum if git did not print it.
    bytes: u64,
    path: PathBuf,
}

impl TreeEntry {
    /// Parses `100644 blob ID<tab>PATH` or `100644 blob ID SIZE<tab>PATH`.
    fn parse(entry: &[u8]) -> Option<Self> {
        let tab = entry.iter().position(|byte| *byte == b'\t')?;
        let (about, name) = entry.split_at(tab);
        let about = String::from_utf8_lossy(about);
        let mut fields = about.split_whitespace();
        let (mode, _, id) = (fields.next()?, fields.next()?, fields.next()?);
        let bytes = fields.next().and_then(|size| size.parse().ok()).unwrap_or(u64::MAX);
        Some(Self { mode: mode.to_owned(), id: id.to_owned(), bytes, path: path(name.get(1..)?) })
    }

    fn is_plain_file(&self) -> bool {
        matches!(self.mode.as_str(), "100644" | "100755")
    }
}
