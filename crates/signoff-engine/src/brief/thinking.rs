//! What those are told who think before anything is built, who work a plan item by item, and who tidy up after it.

use signoff_core::prompt::{
    self, BrainstormContext, Item, PlanDocumentContext, ResearchContext, SimplifyContext, SynthesisContext,
};
use signoff_core::review::Finding;
use signoff_core::source::planner::PlannedTask;
use signoff_core::workflow::PhaseKind;

use super::{Called, Material, brief, called, context, left_out, open};
use crate::assignment::Assignment;
use crate::git::Diff;

/// The titles of the items before the one at hand, and of those after it.
pub(super) fn beside(task: &Assignment) -> (Vec<&str>, Vec<&str>) {
    let Some((index, _)) = task.item() else { return Default::default() };
    let later = task.items.get(index + 1..).map(titles).unwrap_or_default();
    (task.items.get(..index).map(titles).unwrap_or_default(), later)
}

fn titles(items: &[PlannedTask]) -> Vec<&str> {
    items.iter().map(|item| item.title.as_str()).collect()
}

/// The item of the plan at hand, as agents are told of it.
pub(super) fn item<'a>(
    task: &'a Assignment,
    (done, later): (&'a [&'a str], &'a [&'a str]),
) -> Option<Item<'a>> {
    let (index, item) = task.item()?;
    let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
    let begun_elsewhere = task.is_begun_elsewhere();
    Some(Item { number, title: &item.title, description: &item.description, done, later, begun_elsewhere })
}

/// What is open when a pass begins that is not the first: whatever ended the one before is among it.
pub(super) fn of_last_pass(task: &Assignment) -> Vec<&Finding> {
    if task.job.pass > 1 { open(task) } else { Vec::new() }
}

/// What is known before a design or a plan is written.
fn thinking<'a>(
    task: &'a Assignment,
    material: &'a Material,
    (called, findings, document): (&'a Called, &'a [&'a Finding], Option<&'a str>),
) -> BrainstormContext<'a> {
    BrainstormContext {
        opening: material.opening.as_deref(),
        task: brief(task, called),
        worktree: &task.place.worktree,
        pass: task.job.pass,
        findings,
        last_review: material.last_pass.as_deref(),
        refused: task.refused.as_deref().filter(|_| document.is_some()),
        document,
    }
}

/// The prompt of one of the helpers of a phase.
pub fn researcher(task: &Assignment, material: &Material, number: usize) -> String {
    let (called, findings) = (called(task), of_last_pass(task));
    let researchers = match task.phase().map(|phase| &phase.kind) {
        Some(PhaseKind::Agent { researchers, .. }) => *researchers,
        Some(PhaseKind::Gate(_) | PhaseKind::Check(_)) | None => 1,
    };
    prompt::research(&ResearchContext {
        base: thinking(task, material, (&called, &findings, None)),
        number: u32::try_from(number + 1).unwrap_or(u32::MAX),
        researchers,
        question: None,
    })
}

pub(super) fn design(task: &Assignment, material: &Material) -> String {
    let (called, findings) = (called(task), of_last_pass(task));
    let path = task.document().and_then(|kind| task.document_path(kind));
    let base = thinking(task, material, (&called, &findings, path.as_deref()));
    let reports: Vec<&str> = material.reports.iter().map(String::as_str).collect();
    if reports.is_empty() {
        return prompt::brainstorm(&base);
    }
    prompt::synthesis(&SynthesisContext { base, reports: &reports })
}

pub(super) fn plan(task: &Assignment, material: &Material) -> String {
    let (called, findings) = (called(task), of_last_pass(task));
    let path = task.document().and_then(|kind| task.document_path(kind));
    let reports: Vec<&str> = material.reports.iter().map(String::as_str).collect();
    prompt::plan_document(&PlanDocumentContext {
        opening: material.opening.as_deref(),
        task: brief(task, &called),
        worktree: &task.place.worktree,
        preparation: material.design.as_deref(),
        pass: task.job.pass,
        previous_plan: material.plan.as_deref(),
        findings: &findings,
        last_review: material.last_pass.as_deref(),
        refused: task.refused.as_deref().filter(|_| path.is_some()),
        reports: &reports,
        document: path.as_deref(),
    })
}

pub(super) fn simplify(task: &Assignment, material: &Material) -> String {
    let called = called(task);
    let empty = Diff::default();
    let diff = material.diff.as_deref().unwrap_or(&empty);
    let left_out = left_out(diff);
    prompt::simplify(&SimplifyContext {
        opening: material.opening.as_deref(),
        task: brief(task, &called),
        worktree: &task.place.worktree,
        agents_at_once: task.at_once,
        diff: context(task, diff, &left_out),
    })
}
