//! The tasks of a plan document: read when it was written, when it was reviewed, as a fix may change it, and when the
//! first of them is begun, as what a person or several fixers together made of it may not have been reviewed.

use std::path::Path;

use signoff_core::ids::{AttemptId, Commit};
use signoff_core::machine::{Event, Failure, Job, JobKind, Policy, WorkReport};
use signoff_core::source::planner::{Planned, PlannedTask};
use signoff_core::source::{self, Format, TaskFile};
use signoff_core::wire::LoopFact;

use super::conclude::failed;
use super::document::{self, Kind, MOST_BYTES};
use super::{End, Workshop};
use crate::assignment::Assignment;
use crate::error::EngineError;
use crate::git::FileAt;

/// A plan with more tasks is none.
pub const MOST_ITEMS: usize = 200;

/// The end of an attempt with the items of the plan that it left, where it left one.
pub fn planned(
    shop: &Workshop,
    task: &Assignment,
    end: End,
    notes: &mut Vec<String>,
) -> Result<(End, Vec<LoopFact>), EngineError> {
    let Some((path, commit)) = plan_of(task, &end) else { return Ok((end, Vec::new())) };
    let items = match items_at(shop, &path, &commit)? {
        Ok(items) => items,
        // Nobody wrote one here.
        Err(_) if task.written_document(Kind::Plan).is_none() && task.document().is_none() => {
            return Ok((end, Vec::new()));
        }
        Err(message) => return Ok((failed(task, Failure::BadAnswer { message }), Vec::new())),
    };
    // What was left side by side is put together first.
    if matches!(task.job.kind, JobKind::Fix { side_by_side: true, .. }) {
        return Ok((end, Vec::new()));
    }
    if items.is_empty() && !task.is_reading() && works_items(task) {
        notes.push(without_tasks(&path));
    }
    if is_known(task, &items) && task.document().is_none() {
        return Ok((end, Vec::new()));
    }
    Ok((end, facts(task.job.attempt, items)))
}

fn without_tasks(path: &str) -> String {
    format!("{path} has no tasks in a form that is known: it is worked as a whole")
}

fn is_known(task: &Assignment, items: &[PlannedTask]) -> bool {
    *items == *task.items && counted(items) == task.state.items
}

fn counted(items: &[PlannedTask]) -> u32 {
    u32::try_from(items.len()).unwrap_or(u32::MAX).max(1)
}

fn facts(attempt: AttemptId, items: Vec<PlannedTask>) -> Vec<LoopFact> {
    let count = counted(&items);
    let answer = LoopFact::Answered { attempt, answer: Planned::Tasks(items) };
    vec![answer, LoopFact::Moved(Event::ItemsPlanned { count })]
}

/// Whether a job is to begin with the first task of a plan.
pub fn is_first(job: &Job, policy: &Policy) -> bool {
    let of_items = policy.workflow.phases.iter().position(|phase| phase.per_item && !phase.is_off());
    let writes = matches!(job.kind, JobKind::Work { .. } | JobKind::Research { .. });
    writes && job.item == 0 && of_items == Some(job.phase)
}

/// The plan as whoever begins with it finds it, where that is not what is known; and what people should be told. What
/// cannot be read any more is worked as it was.
pub fn found_changed(
    shop: &Workshop,
    task: &Assignment,
    place: Lies,
) -> Result<(Vec<LoopFact>, Option<String>), EngineError> {
    let Some(path) = task.written_document(Kind::Plan) else { return Ok((Vec::new(), None)) };
    let worktree = Path::new(&task.place.worktree);
    let items = match place {
        Lies::InWorktree if worktree.is_dir() => {
            document::content(worktree, &path).and_then(|text| read(&path, &text))
        }
        Lies::InWorktree | Lies::OnBranch => {
            let tip = shop.repository.head_of(&task.branch)?;
            items_at(shop, &path, &tip.unwrap_or_else(|| task.state.head.clone()).commit)?
        }
    };
    Ok(match items {
        Ok(items) if is_known(task, &items) => (Vec::new(), None),
        Ok(items) => {
            let note = items.is_empty().then(|| without_tasks(&path));
            // Nobody of ours answered with it.
            (facts(AttemptId(0), items), note)
        }
        // It is worked as a whole.
        Err(_) if task.items.is_empty() => (Vec::new(), None),
        Err(message) => {
            (Vec::new(), Some(format!("{message}: its tasks are worked as they were read before")))
        }
    })
}

/// Where the plan is that holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lies {
    /// With what a person changed there and did not commit.
    InWorktree,
    /// Readers may still be busy in the worktree, and what they do there is undone.
    OnBranch,
}

/// The plan that an attempt left or judged: where it is, and at which commit.
fn plan_of(task: &Assignment, end: &End) -> Option<(String, Commit)> {
    let of_plan = [task.document(), task.judged_document()].contains(&Some(Kind::Plan));
    let path = task.document_path(Kind::Plan).filter(|_| of_plan)?;
    let End::Event(event) = end else { return None };
    match (&**event, &task.job.kind) {
        (Event::WorkEnded { report: WorkReport::Complete { head }, .. }, _) => {
            Some((path, head.commit.clone()))
        }
        (Event::ReviewArrived { .. }, JobKind::Review { commit, .. }) => Some((path, commit.clone())),
        (_, _) => None,
    }
}

fn works_items(task: &Assignment) -> bool {
    task.policy.workflow.phases.iter().any(|phase| phase.per_item && !phase.is_off())
}

/// Why nobody can judge the plan that is to be reviewed: what would be approved is not what would be worked.
pub fn unreadable(
    shop: &Workshop,
    task: &Assignment,
    commit: &Commit,
) -> Result<Option<String>, EngineError> {
    let judged = task.judged_document().filter(|kind| *kind == Kind::Plan);
    let Some(path) = judged.and_then(|kind| task.written_document(kind)) else { return Ok(None) };
    Ok(items_at(shop, &path, commit)?.err())
}

/// The tasks of a plan as a commit has it, or why there is none.
fn items_at(
    shop: &Workshop,
    path: &str,
    commit: &Commit,
) -> Result<Result<Vec<PlannedTask>, String>, EngineError> {
    Ok(match shop.repository.file_at(commit, path, MOST_BYTES)? {
        Some(FileAt::Content(text)) => read(path, &text),
        Some(FileAt::TooLarge { .. }) => Err(format!("{path} is larger than {MOST_BYTES} bytes")),
        None => Err(format!("{path} is not there any more, or is not a plain file")),
    })
}

/// The tasks of a plan, in the order in which they are to be worked: as the prompt asks for them, in any format that is
/// known, or at least as a list with boxes. A text that has none is worked as a whole; what is no text, or has tasks
/// that cannot be put in order, is no plan.
pub(super) fn read(path: &str, text: &[u8]) -> Result<Vec<PlannedTask>, String> {
    let plan = source::read(path, text, None).map_err(|error| error.to_string())?;
    let plan = match plan.format {
        Format::Text => source::read_as(Format::OpenSpec, path, text, None).ok(),
        Format::PlanMarkdown
        | Format::SpecKit
        | Format::OpenSpec
        | Format::Kiro
        | Format::TaskMaster
        | Format::Bmad
        | Format::Beads => Some(plan),
    };
    let items = plan.as_ref().map(in_order).unwrap_or_default();
    let count = items.len();
    if count > MOST_ITEMS {
        return Err(format!("{path} has {count} tasks; at most {MOST_ITEMS} are worked"));
    }
    Ok(items)
}

fn in_order(plan: &TaskFile) -> Vec<PlannedTask> {
    let tasks = plan.groups().iter().flatten().filter_map(|id| plan.task(id));
    tasks
        .map(|task| PlannedTask {
            id: task.id.clone(),
            title: task.title.clone(),
            description: task.description(),
            depends_on: task.depends_on.clone(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::read;

    fn titles(text: &str) -> Vec<String> {
        let items = read("docs/plan.md", text.as_bytes()).expect("few items");
        items.into_iter().map(|item| item.title).collect()
    }

    #[test]
    fn a_plan_is_read_as_it_was_asked_for_or_as_a_list_with_boxes() {
        assert_eq!(
            titles("# Plan\n\n### Task 1: Parse\n\n- [ ] a step\n\n### Task 2: Print\n"),
            ["Parse", "Print"]
        );
        assert_eq!(titles("# Plan\n\n- [ ] Parse\n- [ ] Print\n"), ["Parse", "Print"]);
        assert_eq!(titles("# Plan\n\nFirst parse, then print.\n"), [""; 0]);
    }

    #[test]
    fn what_is_no_text_is_no_plan_and_the_place_is_told() {
        let refused = |text: &[u8]| read("docs/plan.md", text).unwrap_err();
        assert_eq!(
            refused(b"# Plan\n\n### Task 1: \0\n"),
            "docs/plan.md:3: a NUL byte: this is not a text file"
        );
        assert_eq!(refused(b"# Plan\n\xff\n"), "docs/plan.md:2: not UTF-8 text");
        assert_eq!(refused(b"# Plan\n\n### Task 1: \xc3"), "docs/plan.md:3: not UTF-8 text");
    }
}
