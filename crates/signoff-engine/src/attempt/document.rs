//! Design and plan: the documents on a task's branch, written by its agents and committed by signoff.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use signoff_core::hex::hex;
use signoff_core::ids::Commit;
use signoff_core::machine::{AttemptFailure, Event, Head, JobKind, WorkReport};
use signoff_core::prompt::one_line;
use signoff_core::task::TaskType;
use signoff_core::wire::LoopFact;
use signoff_core::workflow::{Phase, PhaseKind, Role};

use super::finish::{read_finish_context, read_start};
use super::parse_output::message;
use super::{AttemptEnd, EngineContext, list_first};
use crate::atomic_file::{self, WriteMode};
use crate::attempt_spec::AttemptSpec;
use crate::error::EngineError;
use crate::git::{CommittedFile, Worktree};
use crate::process::AttemptDir;
use crate::remove_tree;

/// Maximum size of a document.
pub const MAX_DOCUMENT_BYTES: u64 = 1024 * 1024;

/// The directory of the documents, relative to the worktree.
pub(super) const DIRECTORY: [&str; 2] = ["docs", "signoff"];

/// Maximum number of files in a note.
const MAX_LISTED_FILES: usize = 5;

/// The kind of document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskDocument {
    Design,
    Plan,
}

impl TaskDocument {
    const ALL: [Self; 2] = [Self::Design, Self::Plan];

    pub fn name(self) -> &'static str {
        match self {
            Self::Design => "design",
            Self::Plan => "plan",
        }
    }

    fn for_role(role: Role) -> Option<Self> {
        match role {
            Role::Brainstorm => Some(Self::Design),
            Role::Plan => Some(Self::Plan),
            Role::Implement | Role::Fix | Role::Enumerate | Role::Simplify => None,
        }
    }
}

/// Sets a new base if the work changed only the task's own documents: they need no code review.
pub fn document_only_base(
    ctx: &EngineContext,
    spec: &AttemptSpec,
    end: &AttemptEnd,
) -> Result<Option<LoopFact>, EngineError> {
    let own: Vec<String> = TaskDocument::ALL.into_iter().filter_map(|kind| spec.written_document(kind)).collect();
    let AttemptEnd::Event(event) = end else { return Ok(None) };
    let (Event::WorkEnded { report, .. }, Some(base)) = (&**event, &spec.machine.base) else {
        return Ok(None);
    };
    let tree = &report.head().tree;
    let at = &spec.machine.position;
    let per_item = spec.policy.workflow.phases.get(at.phase).is_some_and(|phase| phase.per_item);
    // A later plan item may change other files.
    let is_last = !per_item || at.item + 1 >= spec.machine.items;
    if own.is_empty() || base == tree || !is_last {
        return Ok(None);
    }
    let changed = ctx.repository.changed_files(base.as_str(), tree.as_str())?;
    let is_own = |file: &PathBuf| own.iter().any(|path| Path::new(path) == file);
    Ok(changed.iter().all(is_own).then(|| LoopFact::Transitioned(Event::BaseSet { tree: tree.clone() })))
}

impl AttemptSpec {
    /// The document that the job writes.
    pub fn document(&self) -> Option<TaskDocument> {
        let JobKind::Work { role, .. } = &self.job.kind else { return None };
        TaskDocument::for_role(*role).filter(|_| self.has_documents())
    }

    /// The document that must exist when the job has ended: the one it writes, or the one whose review it answers.
    pub fn required_document(&self) -> Option<String> {
        match &self.job.kind {
            JobKind::Work { .. } => self.document_path(self.document()?),
            JobKind::Fix { .. } => self.written_document(self.reviewed_document()?),
            JobKind::Research { .. }
            | JobKind::Review { .. }
            | JobKind::Check
            | JobKind::Combine { .. }
            | JobKind::Land => None,
        }
    }

    /// Whether its workflow keeps design and plan on the branch. A plan task stores its plan elsewhere, and the
    /// planners of a run only answer.
    fn has_documents(&self) -> bool {
        self.part.is_none() && self.task_id.is_some() && self.task_spec.kind != TaskType::Plan
    }

    /// The path of a document, relative to the worktree: where another program left it, or the default path.
    pub fn document_path(&self, kind: TaskDocument) -> Option<String> {
        if let Some(found) = self.imported_document(kind) {
            return Some(found.to_owned());
        }
        let branch = self.task_spec.branch(self.task_id.filter(|_| self.has_documents())?);
        let name = branch.strip_prefix("signoff/").unwrap_or(&branch);
        Some(format!("{}/{name}-{}.md", DIRECTORY.join("/"), kind.name()))
    }

    /// Like `document_path`, only for a document that an earlier phase or pass or another program has written.
    pub fn written_document(&self, kind: TaskDocument) -> Option<String> {
        let writes = |(index, phase): (usize, &Phase)| {
            let is_it =
                matches!(&phase.kind, PhaseKind::Agent { role, .. } if TaskDocument::for_role(*role) == Some(kind));
            is_it && !phase.is_off() && self.has_run(index)
        };
        let written = self.policy.workflow.phases.iter().enumerate().any(writes);
        self.document_path(kind).filter(|_| written || self.imported_document(kind).is_some())
    }

    /// The document that was on the branch when the task was imported.
    fn imported_document(&self, kind: TaskDocument) -> Option<&str> {
        let imported = self.task_spec.imported.as_ref().filter(|_| self.has_documents())?;
        match kind {
            TaskDocument::Design => imported.design.as_deref(),
            TaskDocument::Plan => imported.plan.as_deref(),
        }
    }

    /// Whether signoff has run a phase. Phases that another program ran do not count.
    fn has_run(&self, index: usize) -> bool {
        let state = self.task_spec.imported.as_ref().map(|imported| &imported.state);
        let (first, number) = state.map_or((1, 0), |state| (state.current_iteration, state.current_phase));
        let (pass, from_here) = (self.job.pass, self.policy.workflow.number(index) >= number);
        let before = pass > first && (from_here || pass > first + 1);
        let now = index < self.job.phase && (from_here || pass > first);
        before || now
    }

    /// The document that a gate reviews: the document of the last agent before it.
    pub fn reviewed_document(&self) -> Option<TaskDocument> {
        let before = self.policy.workflow.phases.get(..self.job.phase)?;
        let role = before.iter().rev().filter(|phase| !phase.is_off()).find_map(|phase| match phase.kind {
            PhaseKind::Agent { role, .. } => Some(role),
            PhaseKind::Gate(_) | PhaseKind::Check(_) => None,
        })?;
        let judges = self.phase().is_some_and(|phase| phase.policy().is_some());
        TaskDocument::for_role(role).filter(|_| judges && self.has_documents())
    }
}

/// A stamp of the document before the attempt that writes it, to detect changes.
pub fn stamp(spec: &AttemptSpec, worktree: &Worktree) -> Option<String> {
    stamp_of(&worktree.path().join(spec.document_path(spec.document()?)?))
}

/// Hash and modification time. The time shows that the same content was written again.
fn stamp_of(path: &Path) -> Option<String> {
    let text = read_regular_file(path)?;
    let written = path.symlink_metadata().ok()?;
    Some(format!("{} {}.{}", hex(&Sha256::digest(text)), written.mtime(), written.mtime_nsec()))
}

/// The content of a regular file, cut one byte above the maximum size.
fn read_regular_file(path: &Path) -> Option<Vec<u8>> {
    let found = path.symlink_metadata().ok().filter(Metadata::is_file)?;
    (found.len() > 0).then(|| read_start(path, MAX_DOCUMENT_BYTES + 1))
}

/// The content of a document in a worktree, or why it cannot be used.
pub fn content(worktree: &Path, name: &str) -> Result<Vec<u8>, String> {
    let path = worktree.join(name);
    if let Some(obstacle) = obstacle(worktree, &path) {
        return Err(obstacle);
    }
    match read_regular_file(&path) {
        Some(text) if text.len() as u64 > MAX_DOCUMENT_BYTES => Err(too_large(name)),
        Some(text) => Ok(text),
        None => Err(missing(name)),
    }
}

/// Makes sure that the document exists: as the agent wrote it, or from its final message. Returns the agent's failure
/// if the document cannot be used.
pub fn ensure_written(
    spec: &AttemptSpec,
    worktree: &Worktree,
    dir: &AttemptDir,
) -> Result<Option<AttemptFailure>, EngineError> {
    let Some(name) = spec.required_document() else { return Ok(None) };
    let path = worktree.path().join(&name);
    if let Some(obstacle) = obstacle(worktree.path(), &path) {
        return Ok(Some(AttemptFailure::BadAnswer { message: obstacle }));
    }
    let fixes = spec.document().is_none();
    let text = match read_regular_file(&path) {
        Some(text) if fixes || stamp_of(&path) != read_finish_context(dir).document => text,
        None if fixes => return Ok(Some(AttemptFailure::BadAnswer { message: missing(&name) })),
        Some(_) | None => {
            let message_text = message(dir);
            if message_text.trim_ascii().is_empty() {
                return Ok(Some(AttemptFailure::NothingDone));
            }
            write(&path, &message_text).map_err(|error| EngineError::io("write", &path, error))?;
            message_text
        }
    };
    let large = text.len() as u64 > MAX_DOCUMENT_BYTES;
    Ok(large.then(|| AttemptFailure::BadAnswer { message: too_large(&name) }))
}

fn too_large(name: &str) -> String {
    format!("{name} is larger than 1 MiB")
}

fn missing(name: &str) -> String {
    format!("{name} is missing or empty")
}

/// Restores a document after an attempt with a rejected answer, so that the next attempt does not find an invalid file.
pub fn restore(ctx: &EngineContext, spec: &AttemptSpec, worktree: &Worktree) -> Result<(), EngineError> {
    let Some(name) = spec.required_document() else { return Ok(()) };
    let (root, path) = (worktree.path(), worktree.path().join(&name));
    let fits = |text: Vec<u8>| text.len() as u64 <= MAX_DOCUMENT_BYTES;
    if obstacle(root, &path).is_none() && read_regular_file(&path).is_some_and(fits) {
        return Ok(());
    }
    let before = ctx.repository.file_at(&spec.machine.head.commit, &name, MAX_DOCUMENT_BYTES)?;
    if !clear_parents(ctx, spec, root)? {
        return Ok(());
    }
    let done = match before {
        Some(CommittedFile::Content(text)) => remove(&path).and_then(|()| write(&path, &text)),
        Some(CommittedFile::TooLarge { .. }) | None => remove(&path),
    };
    done.map_err(|error| EngineError::io("restore", &path, error))
}

/// Removes files that an attempt put in place of a directory. Returns false if such a file existed before; it is kept.
fn clear_parents(ctx: &EngineContext, spec: &AttemptSpec, root: &Path) -> Result<bool, EngineError> {
    let mut name = PathBuf::new();
    for part in DIRECTORY {
        name.push(part);
        let path = root.join(&name);
        let blocked_path_message = path.symlink_metadata().is_ok_and(|found| !found.is_dir());
        if blocked_path_message && ctx.repository.has_file(&spec.machine.head.commit, &name)? {
            return Ok(false);
        }
        if blocked_path_message {
            remove(&path).map_err(|error| EngineError::io("remove", &path, error))?;
        }
    }
    Ok(true)
}

/// Removes a file or directory. Links are not followed.
fn remove(path: &Path) -> io::Result<()> {
    match remove_tree::remove(path) {
        // The path cannot exist below something that is no directory.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(()),
        gone => gone,
    }
}

/// What blocks the path of a document. Links are not followed: they could lead out of the worktree.
fn obstacle(root: &Path, path: &Path) -> Option<String> {
    let mut directory = root.to_owned();
    for part in DIRECTORY {
        directory.push(part);
        match directory.symlink_metadata() {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Some(blocked_path_message(root, &directory, "a directory")),
            Err(_) => return None,
        }
    }
    let found = path.symlink_metadata().ok()?;
    (!found.is_file()).then(|| blocked_path_message(root, path, "a plain file"))
}

fn blocked_path_message(root: &Path, path: &Path, expected: &str) -> String {
    format!("{} is not {expected}", path.strip_prefix(root).unwrap_or(path).display())
}

fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let end: &[u8] = if text.ends_with(b"\n") { b"" } else { b"\n" };
    atomic_file::write(path, &[text, end].concat(), WriteMode::Plain)
}

/// Why a written document is not in the commit.
pub fn uncommitted(
    ctx: &EngineContext,
    spec: &AttemptSpec,
    head: &Head,
) -> Result<Option<AttemptFailure>, EngineError> {
    let Some(name) = spec.required_document() else { return Ok(None) };
    let there = ctx.repository.file_at(&head.commit, &name, MAX_DOCUMENT_BYTES)?.is_some();
    let message = || format!("{name} was not committed");
    Ok((!there).then(|| AttemptFailure::BadAnswer { message: message() }))
}

/// The text of a document at the loop's head.
pub fn text(ctx: &EngineContext, spec: &AttemptSpec, kind: TaskDocument) -> Result<Option<String>, EngineError> {
    let Some(name) = spec.written_document(kind) else { return Ok(None) };
    Ok(match ctx.repository.file_at(&spec.machine.head.commit, &name, MAX_DOCUMENT_BYTES)? {
        Some(CommittedFile::Content(text)) => Some(String::from_utf8_lossy(&text).into_owned()),
        Some(CommittedFile::TooLarge { .. }) | None => None,
    })
}

/// The files that differ between two commits, except the task's documents.
pub fn other_changes(
    ctx: &EngineContext,
    spec: &AttemptSpec,
    from: &Commit,
    to: &Commit,
) -> Result<Vec<PathBuf>, EngineError> {
    let own: Vec<PathBuf> =
        TaskDocument::ALL.into_iter().filter_map(|kind| spec.document_path(kind)).map(PathBuf::from).collect();
    let changed = ctx.repository.changed_files(from.as_str(), to.as_str())?;
    Ok(changed.into_iter().filter(|path| !own.contains(path)).collect())
}

/// A note about a document writer that changed other files, or a plan item without changes.
pub fn work_note(
    ctx: &EngineContext,
    spec: &AttemptSpec,
    dir: &AttemptDir,
    end: &AttemptEnd,
) -> Result<Option<String>, EngineError> {
    let AttemptEnd::Event(event) = end else { return Ok(None) };
    let Event::WorkEnded { report: WorkReport::Complete { head }, .. } = &**event else { return Ok(None) };
    if let Some(kind) = spec.document() {
        // Unfinished changes of earlier attempts do not count.
        let head_before = read_finish_context(dir).head_before.unwrap_or_else(|| spec.machine.head.commit.clone());
        let changed = other_changes(ctx, spec, &head_before, &head.commit)?;
        return Ok(other_files_note(kind, &changed));
    }
    let same =
        matches!(spec.job.kind, JobKind::Work { role: Role::Implement, .. }) && head.tree == spec.machine.head.tree;
    let item = spec.item().filter(|_| same);
    let count = spec.items.len();
    Ok(item.map(|(index, item)| format!("item {} of {count} changed nothing: {}", index + 1, one_line(&item.title))))
}

fn other_files_note(kind: TaskDocument, changed: &[PathBuf]) -> Option<String> {
    let names: Vec<String> = changed.iter().map(|path| path.display().to_string()).collect();
    let (what, named) = (kind.name(), list_first(&names, MAX_LISTED_FILES));
    (!names.is_empty()).then(|| format!("the {what} writer also changed other files, which are kept: {named}"))
}
