//! A checkout that did not follow its branch, because the program was killed in between.
//!
//! Each file that the landing changed is looked at for itself, in the index and on the disk. Where it is as it was
//! before it becomes as it is after. What the person made of it meanwhile stays, and is told: committed as it is, it
//! would undo what landed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::disk::{content, is_directory, remove_if_there, write_whole};
use super::index_lock::IndexLock;
use super::land_checkout::{Forward, in_the_way};
use super::repository::{Place, path};
use super::stage::ScratchIndex;
use super::{GitError, Repository};

/// A file as git keeps it: its mode and the id of what it holds.
type Blob = Vec<u8>;

/// The mode of a submodule, whose files are not ours to bring.
const SUBMODULE: &[u8] = b"160000 ";

/// A file that landing changed.
#[derive(Debug)]
struct Changed {
    path: PathBuf,
    before: Option<Blob>,
    after: Option<Blob>,
}

/// Which of the two a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    Before,
    After,
    /// Neither: it is the person's.
    Theirs,
}

/// What is to be done, and what is left as it is.
#[derive(Debug, Default)]
struct Plan<'a> {
    index: Vec<&'a Changed>,
    files: Vec<&'a Changed>,
    left: BTreeSet<&'a Path>,
}

impl Repository {
    /// Finishes what a killed program had begun. Only whoever may land something may do so.
    pub fn finish_forward(&self) -> Result<(), GitError> {
        self.telling(self.finish())
    }

    /// The same for whoever merely looks, unless somebody is landing something just now: nobody is told anything.
    pub fn free_checkout(&self) -> Result<(), GitError> {
        if !self.forward_note().exists() {
            return Ok(());
        }
        let lock = self.landing_lock();
        let file = fs::File::options().create(true).truncate(false).write(true).open(&lock);
        let file = file.map_err(GitError::at(&lock))?;
        if file.try_lock().is_ok() { self.finish() } else { Ok(()) }
    }

    fn finish(&self) -> Result<(), GitError> {
        let Some(note) = content(&self.forward_note()) else { return Ok(()) };
        if let Ok(forward) = serde_json::from_slice::<Forward>(&note)
            && forward.checkout().is_dir()
            && let Ok(git_dir) = self.git_dir_of(forward.checkout())
        {
            let place =
                Place { git_dir: &git_dir, work_tree: forward.checkout(), index: None, objects: None };
            IndexLock::free_left(&git_dir)?;
            if self.is_behind(place, &forward)? {
                let lock = IndexLock::take(self.git(), &git_dir)?;
                self.catch_up(place, &forward, &lock)?;
            }
        }
        remove_if_there(&self.left_note())?;
        remove_if_there(&self.forward_note())
    }

    /// Whether the checkout is where the branch went. If it is anywhere else, the branch did not move or the person
    /// took over.
    fn is_behind(&self, place: Place<'_>, forward: &Forward) -> Result<bool, GitError> {
        let head = self.sealed(place)?.args(["rev-parse", "-q", "--verify", "HEAD"]).run()?;
        Ok(head.stdout.trim_ascii_end() == forward.to.as_str().as_bytes())
    }

    /// Brings along what is as it was before. What is the person's stays as it is, and is an error until they have done
    /// something about it.
    pub(super) fn catch_up(
        &self,
        place: Place<'_>,
        forward: &Forward,
        lock: &IndexLock,
    ) -> Result<(), GitError> {
        let changed = self.changed_by(place, forward)?;
        let index = self.scratch_index(place.git_dir)?;
        let aside = Place { index: Some(&index.path), ..place };
        let mut plan = self.plan(aside, &changed)?;
        self.note(aside, plan.index.iter().map(|file| (&file.path, file.after.as_ref())))?;
        self.bring(aside, &mut plan)?;
        lock.put(&index.path)?;
        let files: Vec<PathBuf> = plan.left.into_iter().map(Path::to_owned).collect();
        let told = content(&self.left_note());
        if files.is_empty() || told.is_some_and(|told| told != stamps(place.work_tree, &files).as_bytes()) {
            return Ok(());
        }
        let (from, to) = (forward.from.clone(), forward.to.clone());
        Err(GitError::Behind { checkout: place.work_tree.to_owned(), from, to, files })
    }

    fn changed_by(&self, place: Place<'_>, forward: &Forward) -> Result<Vec<Changed>, GitError> {
        let asked = ["diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames"];
        let printed =
            self.sealed(place)?.args(asked).args([forward.from.as_str(), forward.to.as_str()]).read()?;
        let fields: Vec<&[u8]> = printed.split(|&byte| byte == 0).collect();
        let changed = |pair: &[&[u8]]| {
            let [about, name] = pair else { return None };
            let words: Vec<&[u8]> = about.strip_prefix(b":")?.split(|&byte| byte == b' ').collect();
            let [before, after, old, new, _] = *words.as_slice() else { return None };
            let blob = |mode: &[u8], id: &[u8]| (mode != b"000000").then(|| [mode, b" ", id].concat());
            Some(Changed { path: path(name), before: blob(before, old), after: blob(after, new) })
        };
        Ok(fields.chunks_exact(2).filter_map(changed).collect())
    }

    fn plan<'a>(&self, place: Place<'_>, changed: &'a [Changed]) -> Result<Plan<'a>, GitError> {
        let staged = self.staged(place)?;
        let before = self.differing(place, changed.iter().map(|file| (&file.path, file.before.as_ref())))?;
        let after = self.differing(place, changed.iter().map(|file| (&file.path, file.after.as_ref())))?;
        let theirs = changed.iter().map(|file| (&file.path, staged.get(&file.path)));
        let not_as_staged = self.differing(place, theirs)?;
        let is = |blob: &Option<Blob>, differing: &BTreeSet<PathBuf>, file: &Path| match blob {
            Some(_) => !differing.contains(file),
            None => !is_file(place.work_tree, file),
        };
        let mut plan = Plan::default();
        for file in changed {
            let on_disk = version(is(&file.before, &before, &file.path), is(&file.after, &after, &file.path));
            let entry = staged.get(&file.path);
            let in_index = version(entry == file.before.as_ref(), entry == file.after.as_ref());
            // What was staged and is on the disk too is not lost when it is staged no more.
            let keeps =
                in_index == Version::Theirs && (entry.is_none() || not_as_staged.contains(&file.path));
            match (keeps, on_disk) {
                (true, _) => drop(plan.left.insert(&file.path)),
                (false, Version::Theirs) => {
                    plan.index.push(file);
                    plan.left.insert(&file.path);
                }
                (false, Version::Before) => {
                    plan.index.push(file);
                    plan.files.push(file);
                }
                (false, Version::After) => plan.index.push(file),
            }
        }
        Ok(plan)
    }

    /// What the index at a place holds. Of a conflict nothing is anybody's but the person's.
    fn staged(&self, place: Place<'_>) -> Result<BTreeMap<PathBuf, Blob>, GitError> {
        let printed = self.sealed(place)?.args(["ls-files", "-s", "-z"]).read()?;
        let entry = |line: &[u8]| {
            let tab = line.iter().position(|&byte| byte == b'\t')?;
            let (about, name) = (line.get(..tab)?, line.get(tab + 1..)?);
            let blob = about.strip_suffix(b" 0").unwrap_or(about);
            Some((path(name), blob.to_owned()))
        };
        Ok(printed.split(|&byte| byte == 0).filter_map(entry).collect())
    }

    /// Those of these files that are not on the disk as git has them.
    fn differing<'a>(
        &self,
        place: Place<'_>,
        files: impl Iterator<Item = (&'a PathBuf, Option<&'a Blob>)>,
    ) -> Result<BTreeSet<PathBuf>, GitError> {
        let index = ScratchIndex { path: self.seal()?.scratch() };
        let aside = Place { index: Some(&index.path), ..place };
        self.note(aside, files.filter(|(_, blob)| blob.is_some()))?;
        // It tells by its exit code what the next one tells by name.
        self.sealed(aside)?.args(["update-index", "-q", "--refresh"]).run()?;
        let asked = ["diff-files", "-z", "--name-only", "--ignore-submodules=all"];
        let printed = self.sealed(aside)?.args(asked).read()?;
        Ok(printed.split(|&byte| byte == 0).filter(|name| !name.is_empty()).map(path).collect())
    }

    /// Puts files into the index at a place, or takes them out of it.
    fn note<'a>(
        &self,
        place: Place<'_>,
        files: impl Iterator<Item = (&'a PathBuf, Option<&'a Blob>)>,
    ) -> Result<(), GitError> {
        let (there, gone): (Vec<_>, Vec<_>) = files.partition(|(_, blob)| blob.is_some());
        let nothing = [b"0 ".as_slice(), &vec![b'0'; self.seal()?.id_bytes() * 2]].concat();
        let lines = gone.into_iter().chain(there).flat_map(|(file, blob)| {
            [blob.unwrap_or(&nothing).as_slice(), b"\t", file.as_os_str().as_bytes(), b"\0"].concat()
        });
        let asked = ["update-index", "--add", "--replace", "-z", "--index-info"];
        self.sealed(place)?.args(asked).input(lines.collect::<Vec<u8>>()).read().map(drop)
    }

    /// Makes files on the disk what the index at a place has. Whatever else is where they go stays.
    fn bring(&self, place: Place<'_>, plan: &mut Plan<'_>) -> Result<(), GitError> {
        for file in plan.files.iter().filter(|file| file.after.is_none()) {
            remove_file(place.work_tree, &file.path)?;
        }
        let mut names = Vec::new();
        for file in &plan.files {
            if file.after.as_ref().is_none_or(|after| after.starts_with(SUBMODULE)) {
                continue;
            }
            let there = in_the_way(place.work_tree, &file.path);
            // The file of before is replaced; nothing else is.
            let is_free = match there {
                None => true,
                Some(found) => found == file.path && file.before.is_some() && is_file(place.work_tree, found),
            };
            if is_free {
                names.extend(file.path.as_os_str().as_bytes().iter().chain(&[0]));
            } else {
                plan.left.insert(&file.path);
            }
        }
        let asked = ["checkout-index", "-f", "-u", "-q", "-z", "--stdin"];
        self.sealed(place)?.args(asked).input(names).read().map(drop)
    }

    /// Remembers what the person is told of files that are left to them: once these have changed, they did something
    /// about it.
    pub(super) fn telling(&self, caught_up: Result<(), GitError>) -> Result<(), GitError> {
        if let Err(GitError::Behind { checkout, files, .. }) = &caught_up {
            write_whole(&self.left_note(), stamps(checkout, files).as_bytes())?;
        }
        caught_up
    }

    /// What was left to the person, as it was then.
    fn left_note(&self) -> PathBuf {
        self.common().join("signoff/forward-left")
    }
}

/// What tells whether somebody has written to one of these files.
fn stamps(work_tree: &Path, files: &[PathBuf]) -> String {
    let stamp = |file: &PathBuf| {
        let found = fs::symlink_metadata(work_tree.join(file)).ok();
        let stamp = found.map(|found| (found.ino(), found.size(), found.mtime(), found.mtime_nsec()));
        format!("{stamp:?} {}\n", file.display())
    };
    files.iter().map(stamp).collect()
}

fn version(is_before: bool, is_after: bool) -> Version {
    match (is_before, is_after) {
        (_, true) => Version::After,
        (true, false) => Version::Before,
        (false, false) => Version::Theirs,
    }
}

/// Whether a file is there, or a link, and not by way of a link.
fn is_file(work_tree: &Path, file: &Path) -> bool {
    in_the_way(work_tree, file) == Some(file) && !is_directory(&work_tree.join(file))
}

/// Removes a file, and the directories that are empty then.
fn remove_file(work_tree: &Path, file: &Path) -> Result<(), GitError> {
    if is_file(work_tree, file) {
        remove_if_there(&work_tree.join(file))?;
    }
    let above = file.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
    for directory in above.map(|above| work_tree.join(above)) {
        if !is_directory(&directory) || fs::remove_dir(&directory).is_err() {
            break;
        }
    }
    Ok(())
}
