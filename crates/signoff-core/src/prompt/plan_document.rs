//! The prompt that asks for a task's plan document.

use crate::prompt::brainstorm::{last_pass, refused, reports};
use crate::prompt::material::{fenced, one_line};
use crate::prompt::pieces::Pieces;
use crate::prompt::{TaskBrief, text};
use crate::review::Finding;

/// A task to plan.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlanDocumentContext<'a> {
    /// A person's own words in place of the built-in opening.
    pub opening: Option<&'a str>,
    pub task: TaskBrief<'a>,
    pub worktree: &'a str,
    /// The result of the brainstorm or of the research.
    pub preparation: Option<&'a str>,
    /// Counted from 1.
    pub pass: u32,
    /// The plan of the last pass, and what its review found.
    pub previous_plan: Option<&'a str>,
    pub findings: &'a [&'a Finding],
    /// What that review said, where it found nothing that could be listed.
    pub last_review: Option<&'a str>,
    /// Why the last attempt's answer was refused.
    pub refused: Option<&'a str>,
    /// What researchers reported.
    pub reports: &'a [&'a str],
    /// The file that the plan is written to, seen from the worktree; none where it is the final message.
    pub document: Option<&'a str>,
}

/// Writes the prompt of a phase that plans one task.
pub fn plan_document(context: &PlanDocumentContext<'_>) -> String {
    let mut pieces = Pieces::opening(context.opening, text::PLAN_DOCUMENT);
    pieces.add(context.task.assignment());
    pieces.add_some(context.task.plan_to_follow());
    pieces.add(text::WorkingDirectory { worktree: &one_line(context.worktree) }.fill());
    let preparation = |found| text::Preparation { preparation: &fenced(found, "") }.fill();
    pieces.add_some(context.preparation.map(preparation));
    let previous = |plan| text::PreviousPlan { plan: &fenced(plan, "") }.fill();
    pieces.add_some(context.previous_plan.map(previous));
    pieces.add_some(last_pass(context.pass, context.findings, context.last_review));
    pieces.add_some(refused(context.refused));
    pieces.add_some(reports(context.reports));
    pieces.add(match context.document {
        Some(path) => text::PlanFile { path: &one_line(path) }.fill(),
        None => text::PLAN_IN_MESSAGE.to_owned(),
    });
    pieces.prompt()
}
