//! The items of a plan document, and the documents that another program left on a branch.
//!
//! Items are read when the plan is written, when it is reviewed (a fix may change it), and when the first item is
//! started (a user or several fixers may have changed it without a review).

use std::path::Path;

use signoff_core::ids::{AttemptId, Commit};
use signoff_core::machine::{AttemptFailure, Event, Job, JobKind, Policy, WorkReport};
use signoff_core::source::planner::{PlannedTask, PlannerAnswer};
use signoff_core::source::{self, TaskFile, TaskFormat};
use signoff_core::task::slug;
use signoff_core::wire::LoopFact;

use super::document::{self, DIRECTORY, MAX_DOCUMENT_BYTES, TaskDocument};
use super::finish::failed_end;
use super::{AttemptEnd, EngineContext};
use crate::attempt_spec::AttemptSpec;
use crate::error::EngineError;
use crate::git::{CommittedFile, Repository};

/// Maximum number of items in a plan.
pub const MAX_ITEMS: usize = 200;

/// Adds the plan items that an attempt left to its end. A plan that cannot be used fails the attempt.
pub fn with_plan_items(
    ctx: &EngineContext,
    spec: &AttemptSpec,
    end: AttemptEnd,
    notes: &mut Vec<String>,
) -> Result<(AttemptEnd, Vec<LoopFact>), EngineError> {
    let Some((path, commit)) = plan_of(spec, &end) else { return Ok((end, Vec::new())) };
    let items = match items_at(ctx, &path, &commit)? {
        Ok(items) => items,
        // There is no plan on this branch.
        Err(_) if spec.written_document(TaskDocument::Plan).is_none() && spec.document().is_none() => {
            return Ok((end, Vec::new()));
        }
        Err(message) => return Ok((failed_end(spec, AttemptFailure::BadAnswer { message }), Vec::new())),
    };
    // Parallel fixes are combined first.
    if matches!(spec.job.kind, JobKind::Fix { parallel: true, .. }) {
        return Ok((end, Vec::new()));
    }
    if items.is_empty() && !spec.is_read_only() && works_items(spec) {
        notes.push(without_tasks(&path));
    }
    if is_unchanged(spec, &items) && spec.document().is_none() {
        return Ok((end, Vec::new()));
    }
    Ok((end, facts(spec.job.attempt, items)))
}

fn without_tasks(path: &str) -> String {
    format!("{path}: found no tasks; it is implemented as a whole")
}

fn is_unchanged(spec: &AttemptSpec, items: &[PlannedTask]) -> bool {
    *items == *spec.items && item_count(items) == spec.machine.items
}

fn item_count(items: &[PlannedTask]) -> u32 {
    u32::try_from(items.len()).unwrap_or(u32::MAX).max(1)
}

fn facts(attempt: AttemptId, items: Vec<PlannedTask>) -> Vec<LoopFact> {
    let count = item_count(&items);
    let answer = LoopFact::Answered { attempt, answer: PlannerAnswer::Tasks(items) };
    vec![answer, LoopFact::Transitioned(Event::ItemsPlanned { count })]
}

/// Whether a job starts with the first item of a plan.
pub fn starts_plan(job: &Job, policy: &Policy) -> bool {
    let of_items = policy.workflow.phases.iter().position(|phase| phase.per_item && !phase.is_off());
    let writes = matches!(job.kind, JobKind::Work { .. } | JobKind::Research { .. });
    writes && job.item == 0 && of_items == Some(job.phase)
}

/// The facts for a plan that changed since it was last read, and a note. If the plan cannot be read any more, the known
/// items are used.
pub fn reread_plan(
    ctx: &EngineContext,
    spec: &AttemptSpec,
    location: PlanLocation,
) -> Result<(Vec<LoopFact>, Option<String>), EngineError> {
    let Some(path) = spec.written_document(TaskDocument::Plan) else { return Ok((Vec::new(), None)) };
    let worktree = Path::new(&spec.workspace.worktree);
    let items = match location {
        PlanLocation::InWorktree if worktree.is_dir() => {
            document::content(worktree, &path).and_then(|text| read(&path, &text))
        }
        PlanLocation::InWorktree | PlanLocation::OnBranch => {
            let tip = ctx.repository.head_of(&spec.branch)?;
            items_at(ctx, &path, &tip.unwrap_or_else(|| spec.machine.head.clone()).commit)?
        }
    };
    Ok(match items {
        Ok(items) if is_unchanged(spec, &items) => (Vec::new(), None),
        Ok(items) => {
            let note = items.is_empty().then(|| without_tasks(&path));
            // No attempt of this run wrote it.
            (facts(AttemptId(0), items), note)
        }
        // The plan is implemented as a whole.
        Err(_) if spec.items.is_empty() => (Vec::new(), None),
        Err(message) => (Vec::new(), Some(format!("{message}: the tasks read before are implemented"))),
    })
}

/// Which copy of the plan to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanLocation {
    /// Includes uncommitted changes of a user.
    InWorktree,
    /// Reviewers may still be running in the worktree, and their changes will be undone.
    OnBranch,
}

/// Path and commit of the plan that an attempt wrote or reviewed.
fn plan_of(spec: &AttemptSpec, end: &AttemptEnd) -> Option<(String, Commit)> {
    let of_plan = [spec.document(), spec.reviewed_document()].contains(&Some(TaskDocument::Plan));
    let path = spec.document_path(TaskDocument::Plan).filter(|_| of_plan)?;
    let AttemptEnd::Event(event) = end else { return None };
    match (&**event, &spec.job.kind) {
        (Event::WorkEnded { report: WorkReport::Complete { head }, .. }, _) => Some((path, head.commit.clone())),
        (Event::ReviewArrived { .. }, JobKind::Review { commit, .. }) => Some((path, commit.clone())),
        (_, _) => None,
    }
}

fn works_items(spec: &AttemptSpec) -> bool {
    spec.policy.workflow.phases.iter().any(|phase| phase.per_item && !phase.is_off())
}

/// Why the plan under review cannot be parsed. It must not be approved then: other items would be implemented.
pub fn plan_error(ctx: &EngineContext, spec: &AttemptSpec, commit: &Commit) -> Result<Option<String>, EngineError> {
    let judged = spec.reviewed_document().filter(|kind| *kind == TaskDocument::Plan);
    let Some(path) = judged.and_then(|kind| spec.written_document(kind)) else { return Ok(None) };
    Ok(items_at(ctx, &path, commit)?.err())
}

/// The items of a plan at a commit, or why there are none.
fn items_at(ctx: &EngineContext, path: &str, commit: &Commit) -> Result<Result<Vec<PlannedTask>, String>, EngineError> {
    Ok(match ctx.repository.file_at(commit, path, MAX_DOCUMENT_BYTES)? {
        Some(CommittedFile::Content(text)) => read(path, &text),
        Some(CommittedFile::TooLarge { .. }) => Err(format!("{path} is larger than 1 MiB")),
        None => Err(format!("{path} is missing or not a plain file")),
    })
}

/// Parses the items of a plan, in the order in which they are implemented: in the format that the prompt asks for, in
/// any known format, or as a checklist. A text without items is implemented as a whole. Binary files and items without
/// a valid order are an error.
pub(super) fn read(path: &str, text: &[u8]) -> Result<Vec<PlannedTask>, String> {
    let plan = source::read(path, text, None).map_err(|error| error.to_string())?;
    let plan = match plan.format {
        TaskFormat::Text => source::read_as(TaskFormat::OpenSpec, path, text, None).ok(),
        TaskFormat::PlanMarkdown
        | TaskFormat::SpecKit
        | TaskFormat::OpenSpec
        | TaskFormat::Kiro
        | TaskFormat::TaskMaster
        | TaskFormat::Bmad
        | TaskFormat::Beads => Some(plan),
    };
    let items = plan.as_ref().map(in_order).unwrap_or_default();
    let count = items.len();
    if count > MAX_ITEMS {
        return Err(format!("{path} has {count} tasks; the maximum is {MAX_ITEMS}"));
    }
    Ok(items)
}

fn in_order(plan: &TaskFile) -> Vec<PlannedTask> {
    let tasks = plan.groups.iter().flatten().filter_map(|id| plan.task(id));
    tasks
        .map(|task| PlannedTask {
            id: task.id.clone(),
            title: task.title.clone(),
            description: task.description(),
            depends_on: task.depends_on.clone(),
        })
        .collect()
}

/// The design and the plan of an imported task, and the items of that plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExistingDocuments {
    pub design: Option<String>,
    pub plan: Option<String>,
    pub items: Vec<PlannedTask>,
    /// Why the plan is implemented as a whole although it has items.
    pub note: Option<String>,
}

/// Finds the documents of a task with this title at a commit.
pub fn find_documents(repository: &Repository, commit: &Commit, title: &str) -> Result<ExistingDocuments, EngineError> {
    let directory = DIRECTORY.join("/");
    let names = repository.file_names(commit, &directory)?;
    let pick = |kind: TaskDocument| -> Result<Option<String>, EngineError> {
        let end = format!("-{}.md", kind.name());
        let all: Vec<&str> = names.iter().filter_map(|name| name.strip_suffix(&end)).collect();
        let own = all.iter().copied().filter(|name| matches_title(name, title)).collect::<Vec<_>>();
        let paths = |names: &[&str]| names.iter().map(|name| format!("{directory}/{name}{end}")).collect();
        let likely: Vec<String> = paths(if own.is_empty() { &all } else { &own });
        match likely.len() {
            0 | 1 => Ok(likely.into_iter().next()),
            _ => Ok(repository.last_changed(commit, &directory, &likely)?),
        }
    };
    let (design, plan) = (pick(TaskDocument::Design)?, pick(TaskDocument::Plan)?);
    let text = match &plan {
        Some(path) => repository.file_at(commit, path, MAX_DOCUMENT_BYTES)?,
        None => None,
    };
    let read = match (&plan, text) {
        (Some(path), Some(CommittedFile::Content(text))) => read(path, &text),
        (_, _) => Ok(Vec::new()),
    };
    let (items, note) = match read {
        Ok(items) => (items, None),
        Err(message) => (Vec::new(), Some(message)),
    };
    Ok(ExistingDocuments { design, plan, items, note })
}

/// Whether `task-12-add-login` is the name of a task with this title and any number.
fn matches_title(name: &str, title: &str) -> bool {
    let numbered = name.strip_prefix("task-").unwrap_or(name);
    let rest = numbered.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.trim_start_matches('-') == slug(title)
}

#[cfg(test)]
mod tests {
    use super::read;

    fn titles(text: &str) -> Vec<String> {
        let items = read("docs/plan.md", text.as_bytes()).expect("few items");
        items.into_iter().map(|item| item.title).collect()
    }

    #[test]
    fn a_plan_is_parsed_from_headings_or_a_checkbox_list() {
        assert_eq!(titles("# Plan\n\n### Task 1: Parse\n\n- [ ] a step\n\n### Task 2: Print\n"), ["Parse", "Print"]);
        assert_eq!(titles("# Plan\n\n- [ ] Parse\n- [ ] Print\n"), ["Parse", "Print"]);
        assert_eq!(titles("# Plan\n\nFirst parse, then print.\n"), [""; 0]);
    }

    #[test]
    fn a_plan_that_is_not_text_is_an_error_with_its_line() {
        let refused = |text: &[u8]| read("docs/plan.md", text).unwrap_err();
        assert_eq!(refused(b"# Plan\n\n### Task 1: \0\n"), "docs/plan.md:3: a NUL byte: this is not a text file");
        assert_eq!(refused(b"# Plan\n\xff\n"), "docs/plan.md:2: not UTF-8 text");
        assert_eq!(refused(b"# Plan\n\n### Task 1: \xc3"), "docs/plan.md:3: not UTF-8 text");
    }
}
