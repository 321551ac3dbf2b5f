//! Design and plan: documents that a task has on its branch, written by its agents and committed by the program.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use signoff_core::hex::hex;
use signoff_core::ids::Commit;
use signoff_core::machine::{Event, Failure, Head, JobKind, WorkReport};
use signoff_core::prompt::one_line;
use signoff_core::task::TaskType;
use signoff_core::wire::LoopFact;
use signoff_core::workflow::{Phase, PhaseKind, Role};

use super::conclude::{memo, start_of};
use super::hear::message;
use super::{End, Workshop};
use crate::assignment::Assignment;
use crate::clear;
use crate::draft::{self, Care};
use crate::error::EngineError;
use crate::git::{FileAt, Worktree};
use crate::process::AttemptDir;

/// The largest document that is taken: more than anybody plans, or reads.
pub const MOST_BYTES: u64 = 1024 * 1024;

/// Where documents are, seen from the worktree.
pub(super) const DIRECTORY: [&str; 2] = ["docs", "signoff"];

/// So many other files are named.
const NAMED: usize = 5;

/// What a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Design,
    Plan,
}

impl Kind {
    const ALL: [Self; 2] = [Self::Design, Self::Plan];

    pub fn word(self) -> &'static str {
        match self {
            Self::Design => "design",
            Self::Plan => "plan",
        }
    }

    fn of(role: Role) -> Option<Self> {
        match role {
            Role::Brainstorm => Some(Self::Design),
            Role::Plan => Some(Self::Plan),
            Role::Implement | Role::Fix | Role::Enumerate | Role::Simplify => None,
        }
    }
}

/// The base of work that is nothing but the task's own documents: they are no change to review.
pub fn as_base(shop: &Workshop, task: &Assignment, end: &End) -> Result<Option<LoopFact>, EngineError> {
    let own: Vec<String> = Kind::ALL.into_iter().filter_map(|kind| task.written_document(kind)).collect();
    let End::Event(event) = end else { return Ok(None) };
    let (Event::WorkEnded { report, .. }, Some(base)) = (&**event, &task.state.base) else { return Ok(None) };
    let tree = &report.head().tree;
    let at = &task.state.at;
    let per_item = task.policy.workflow.phases.get(at.phase).is_some_and(|phase| phase.per_item);
    // A later item may change something.
    let is_last = !per_item || at.item + 1 >= task.state.items;
    if own.is_empty() || base == tree || !is_last {
        return Ok(None);
    }
    let changed = shop.repository.files_between(base.as_str(), tree.as_str())?;
    let is_own = |file: &Vec<u8>| own.iter().any(|path| path.as_bytes() == file.as_slice());
    Ok(changed.iter().all(is_own).then(|| LoopFact::Moved(Event::BaseSet { tree: tree.clone() })))
}

impl Assignment {
    /// The document that the job is to write.
    pub fn document(&self) -> Option<Kind> {
        let JobKind::Work { role, .. } = &self.job.kind else { return None };
        Kind::of(*role).filter(|_| self.has_documents())
    }

    /// The document that has to be there when the job has ended: the one it is to write, or the one whose review it
    /// answers.
    pub fn owed_document(&self) -> Option<String> {
        match &self.job.kind {
            JobKind::Work { .. } => self.document_path(self.document()?),
            JobKind::Fix { .. } => self.written_document(self.judged_document()?),
            JobKind::Research { .. }
            | JobKind::Review { .. }
            | JobKind::Check
            | JobKind::Combine { .. }
            | JobKind::Land => None,
        }
    }

    /// Whether its workflow keeps design and plan on the branch. A task that asks for a plan has it elsewhere, and
    /// planners of a run answer.
    fn has_documents(&self) -> bool {
        self.part.is_none() && self.task.is_some() && self.spec.kind != TaskType::Plan
    }

    /// Where a document of the task is, seen from the worktree: where another program left it, or below its own name.
    pub fn document_path(&self, kind: Kind) -> Option<String> {
        if let Some(found) = self.found_document(kind) {
            return Some(found.to_owned());
        }
        let branch = self.spec.branch(self.task.filter(|_| self.has_documents())?);
        let name = branch.strip_prefix("signoff/").unwrap_or(&branch);
        Some(format!("{}/{name}-{}.md", DIRECTORY.join("/"), kind.word()))
    }

    /// The same where an earlier phase or pass wrote it, or another program did.
    pub fn written_document(&self, kind: Kind) -> Option<String> {
        let writes = |(index, phase): (usize, &Phase)| {
            let is_it = matches!(&phase.kind, PhaseKind::Agent { role, .. } if Kind::of(*role) == Some(kind));
            is_it && !phase.is_off() && self.has_run(index)
        };
        let written = self.policy.workflow.phases.iter().enumerate().any(writes);
        self.document_path(kind).filter(|_| written || self.found_document(kind).is_some())
    }

    /// The document that was on the branch when the task was taken over.
    fn found_document(&self, kind: Kind) -> Option<&str> {
        let taken_over = self.spec.taken_over.as_ref().filter(|_| self.has_documents())?;
        match kind {
            Kind::Design => taken_over.design.as_deref(),
            Kind::Plan => taken_over.plan.as_deref(),
        }
    }

    /// Whether a phase was gone through here. Of what another program did, only what it left is known.
    fn has_run(&self, index: usize) -> bool {
        let state = self.spec.taken_over.as_ref().map(|taken_over| &taken_over.state);
        let (first, number) = state.map_or((1, 0), |state| (state.current_iteration, state.current_phase));
        let (pass, from_here) = (self.job.pass, self.policy.workflow.number(index) >= number);
        let before = pass > first && (from_here || pass > first + 1);
        let now = index < self.job.phase && (from_here || pass > first);
        before || now
    }

    /// The document that a gate judges: that of the last agent before it, if it was to write one.
    pub fn judged_document(&self) -> Option<Kind> {
        let before = self.policy.workflow.phases.get(..self.job.phase)?;
        let role =
            before.iter().rev().filter(|phase| !phase.is_off()).find_map(|phase| match phase.kind {
                PhaseKind::Agent { role, .. } => Some(role),
                PhaseKind::Gate(_) | PhaseKind::Check(_) => None,
            })?;
        let judges = self.phase().is_some_and(|phase| phase.judge().is_some());
        Kind::of(role).filter(|_| judges && self.has_documents())
    }
}

/// What a document is like before the attempt that is to write it.
pub fn stamp(task: &Assignment, worktree: &Worktree) -> Option<String> {
    stamp_of(&worktree.path().join(task.document_path(task.document()?)?))
}

/// What it holds, and when it was written: who writes the same again wrote it.
fn stamp_of(path: &Path) -> Option<String> {
    let text = plain(path)?;
    let written = path.symlink_metadata().ok()?;
    Some(format!("{} {}.{}", hex(&Sha256::digest(text)), written.mtime(), written.mtime_nsec()))
}

/// The content of a plain file, one byte more than it may have.
fn plain(path: &Path) -> Option<Vec<u8>> {
    let found = path.symlink_metadata().ok().filter(Metadata::is_file)?;
    (found.len() > 0).then(|| start_of(path, MOST_BYTES + 1))
}

/// What a document of a worktree holds, or why it cannot be taken.
pub fn content(worktree: &Path, name: &str) -> Result<Vec<u8>, String> {
    let path = worktree.join(name);
    if let Some(obstacle) = obstacle(worktree, &path) {
        return Err(obstacle);
    }
    match plain(&path) {
        Some(text) if text.len() as u64 > MOST_BYTES => Err(too_large(name)),
        Some(text) => Ok(text),
        None => Err(gone(name)),
    }
}

/// Sees to it that the document is there: as the agent wrote it, or else its final message. What cannot be taken is
/// the agent's failure.
pub fn settle(
    task: &Assignment,
    worktree: &Worktree,
    dir: &AttemptDir,
) -> Result<Option<Failure>, EngineError> {
    let Some(name) = task.owed_document() else { return Ok(None) };
    let path = worktree.path().join(&name);
    if let Some(obstacle) = obstacle(worktree.path(), &path) {
        return Ok(Some(Failure::BadAnswer { message: obstacle }));
    }
    let fixes = task.document().is_none();
    let text = match plain(&path) {
        Some(text) if fixes || stamp_of(&path) != memo(dir).document => text,
        None if fixes => return Ok(Some(Failure::BadAnswer { message: gone(&name) })),
        Some(_) | None => {
            let said = message(dir);
            if said.trim_ascii().is_empty() {
                return Ok(Some(Failure::NothingDone));
            }
            write(&path, &said).map_err(|error| EngineError::io("write", &path, error))?;
            said
        }
    };
    let large = text.len() as u64 > MOST_BYTES;
    Ok(large.then(|| Failure::BadAnswer { message: too_large(&name) }))
}

fn too_large(name: &str) -> String {
    format!("{name} is larger than {MOST_BYTES} bytes")
}

fn gone(name: &str) -> String {
    format!("{name} is not there any more, or has nothing in it")
}

/// Makes the place of a document what it was before an attempt whose answer was refused: whoever comes next is not to
/// stumble over what that left.
pub fn put_back(shop: &Workshop, task: &Assignment, worktree: &Worktree) -> Result<(), EngineError> {
    let Some(name) = task.owed_document() else { return Ok(()) };
    let (root, path) = (worktree.path(), worktree.path().join(&name));
    let fits = |text: Vec<u8>| text.len() as u64 <= MOST_BYTES;
    if obstacle(root, &path).is_none() && plain(&path).is_some_and(fits) {
        return Ok(());
    }
    let before = shop.repository.file_at(&task.state.head.commit, &name, MOST_BYTES)?;
    if !clear_way(shop, task, root)? {
        return Ok(());
    }
    let done = match before {
        Some(FileAt::Content(text)) => remove(&path).and_then(|()| write(&path, &text)),
        Some(FileAt::TooLarge { .. }) | None => remove(&path),
    };
    done.map_err(|error| EngineError::io("put back", &path, error))
}

/// Takes away what an attempt put in place of a directory. False if it was there before: then it stays.
fn clear_way(shop: &Workshop, task: &Assignment, root: &Path) -> Result<bool, EngineError> {
    let mut name = PathBuf::new();
    for part in DIRECTORY {
        name.push(part);
        let place = root.join(&name);
        let in_the_way = place.symlink_metadata().is_ok_and(|found| !found.is_dir());
        if in_the_way && shop.repository.has_file(&task.state.head.commit, &name)? {
            return Ok(false);
        }
        if in_the_way {
            remove(&place).map_err(|error| EngineError::io("remove", &place, error))?;
        }
    }
    Ok(true)
}

/// Removes what is there, and nothing behind a link.
fn remove(path: &Path) -> io::Result<()> {
    match clear::remove(path) {
        // Below something that is no directory there is nothing.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(())
        }
        gone => gone,
    }
}

/// What is in the way of a document, in words. Nothing is followed that could lead out of the worktree.
fn obstacle(root: &Path, path: &Path) -> Option<String> {
    let mut place = root.to_owned();
    for part in DIRECTORY {
        place.push(part);
        match place.symlink_metadata() {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Some(in_the_way(root, &place, "a directory")),
            Err(_) => return None,
        }
    }
    let found = path.symlink_metadata().ok()?;
    (!found.is_file()).then(|| in_the_way(root, path, "a plain file"))
}

fn in_the_way(root: &Path, place: &Path, expected: &str) -> String {
    format!("{} is not {expected}", place.strip_prefix(root).unwrap_or(place).display())
}

fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let end: &[u8] = if text.ends_with(b"\n") { b"" } else { b"\n" };
    draft::write(path, &[text, end].concat(), Care::Plain)
}

/// Why a document is not on the branch although it was written.
pub fn left_out(shop: &Workshop, task: &Assignment, head: &Head) -> Result<Option<Failure>, EngineError> {
    let Some(name) = task.owed_document() else { return Ok(None) };
    let there = shop.repository.file_at(&head.commit, &name, MOST_BYTES)?.is_some();
    let message = || format!("{name} was not committed");
    Ok((!there).then(|| Failure::BadAnswer { message: message() }))
}

/// The text of a document as the loop's head has it.
pub fn text(shop: &Workshop, task: &Assignment, kind: Kind) -> Result<Option<String>, EngineError> {
    let Some(name) = task.written_document(kind) else { return Ok(None) };
    Ok(match shop.repository.file_at(&task.state.head.commit, &name, MOST_BYTES)? {
        Some(FileAt::Content(text)) => Some(String::from_utf8_lossy(&text).into_owned()),
        Some(FileAt::TooLarge { .. }) | None => None,
    })
}

/// The files in which two heads differ, but for the documents.
pub fn other_changes(
    shop: &Workshop,
    task: &Assignment,
    (from, to): (&Commit, &Commit),
) -> Result<Vec<PathBuf>, EngineError> {
    let own: Vec<PathBuf> =
        Kind::ALL.into_iter().filter_map(|kind| task.document_path(kind)).map(PathBuf::from).collect();
    let changed = shop.repository.changed_between(from, to)?;
    Ok(changed.into_iter().filter(|path| !own.contains(path)).collect())
}

/// What people should be told of an agent that was to write a document, or to do one item of the plan.
pub fn remarks(
    shop: &Workshop,
    task: &Assignment,
    dir: &AttemptDir,
    end: &End,
) -> Result<Option<String>, EngineError> {
    let End::Event(event) = end else { return Ok(None) };
    let Event::WorkEnded { report: WorkReport::Complete { head }, .. } = &**event else { return Ok(None) };
    if let Some(kind) = task.document() {
        // What others left unfinished before is not theirs.
        let began = memo(dir).began.unwrap_or_else(|| task.state.head.commit.clone());
        let changed = other_changes(shop, task, (&began, &head.commit))?;
        return Ok(strayed(kind, &changed));
    }
    let same = matches!(task.job.kind, JobKind::Work { role: Role::Implement, .. })
        && head.tree == task.state.head.tree;
    let item = task.item().filter(|_| same);
    let count = task.items.len();
    Ok(item.map(|(index, item)| {
        format!("item {} of {count} changed nothing: {}", index + 1, one_line(&item.title))
    }))
}

fn strayed(kind: Kind, changed: &[PathBuf]) -> Option<String> {
    let named: Vec<String> = changed.iter().take(NAMED).map(|path| path.display().to_string()).collect();
    let more = changed.len() - named.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let (what, named) = (kind.word(), named.join(", "));
    (!changed.is_empty())
        .then(|| format!("whoever wrote the {what} changed other files too, which are kept: {named}{more}"))
}
