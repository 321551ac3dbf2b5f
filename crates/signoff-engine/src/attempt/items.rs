//! The tasks of a plan document: read when it was written, and again when it was reviewed, as a fix may change it.

use signoff_core::ids::Commit;
use signoff_core::machine::{Event, Failure, JobKind, WorkReport};
use signoff_core::source::planner::{Planned, PlannedTask};
use signoff_core::source::{self, Format, TaskFile};
use signoff_core::wire::LoopFact;

use super::conclude::failed;
use super::document::{Kind, MOST_BYTES};
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
    let Some(FileAt::Content(text)) = shop.repository.file_at(&commit, &path, MOST_BYTES)? else {
        return Ok((end, Vec::new()));
    };
    let items = match read(&path, &text) {
        Ok(items) => items,
        Err(message) if writes(task) => {
            return Ok((failed(task, Failure::BadAnswer { message }), Vec::new()));
        }
        Err(message) => {
            notes.push(message);
            return Ok((end, Vec::new()));
        }
    };
    let count = u32::try_from(items.len()).unwrap_or(u32::MAX).max(1);
    if items == task.items && count == task.state.items && task.document().is_none() {
        return Ok((end, Vec::new()));
    }
    let attempt = task.job.attempt;
    let answer = LoopFact::Answered { attempt, answer: Planned::Tasks(items) };
    Ok((end, vec![answer, LoopFact::Moved(Event::ItemsPlanned { count })]))
}

/// The plan that an attempt left or judged: where it is, and at which commit.
fn plan_of(task: &Assignment, end: &End) -> Option<(String, Commit)> {
    let of_plan = [task.document(), task.judged_document()].contains(&Some(Kind::Plan));
    let path = task.document_path(Kind::Plan).filter(|_| of_plan)?;
    let End::Event(event) = end else { return None };
    match (&**event, &task.job.kind) {
        // What was left side by side is put together first.
        (Event::WorkEnded { .. }, JobKind::Fix { side_by_side: true, .. }) => None,
        (Event::WorkEnded { report: WorkReport::Complete { head }, .. }, _) => {
            Some((path, head.commit.clone()))
        }
        (Event::ReviewArrived { .. }, JobKind::Review { commit, .. }) => Some((path, commit.clone())),
        (_, _) => None,
    }
}

fn writes(task: &Assignment) -> bool {
    !task.is_reading()
}

/// The tasks of a plan, in the order in which they are to be worked: as the prompt asks for them, in any format that is
/// known, or at least as a list with boxes. A text that has none is worked as a whole.
pub(super) fn read(path: &str, text: &[u8]) -> Result<Vec<PlannedTask>, String> {
    let boxes = |_| source::read_as(Format::OpenSpec, path, text, None);
    let Ok(plan) = source::read_plan(path, text, None).or_else(boxes) else { return Ok(Vec::new()) };
    let items = in_order(&plan);
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
}
