//! Prompts for design, planning and research, for plan items, and for the final simplification.

use signoff_core::prompt::{
    self, BrainstormContext, PlanDocumentContext, PlanItemContext, ResearchContext, SimplifyContext, SynthesisContext,
};
use signoff_core::review::Finding;
use signoff_core::source::planner::PlannedTask;
use signoff_core::workflow::PhaseKind;

use super::{PromptInputs, TaskNames, context, open, task_names, task_prompt_context};
use crate::attempt_spec::AttemptSpec;
use crate::git::GitDiff;

/// The titles of the plan items before and after the current one.
pub(super) fn other_items(spec: &AttemptSpec) -> (Vec<&str>, Vec<&str>) {
    let Some((index, _)) = spec.item() else { return Default::default() };
    let later = spec.items.get(index + 1..).map(titles).unwrap_or_default();
    (spec.items.get(..index).map(titles).unwrap_or_default(), later)
}

fn titles(items: &[PlannedTask]) -> Vec<&str> {
    items.iter().map(|item| item.title.as_str()).collect()
}

/// The current plan item, as described in prompts.
pub(super) fn item<'a>(
    spec: &'a AttemptSpec,
    done: &'a [&'a str],
    later: &'a [&'a str],
) -> Option<PlanItemContext<'a>> {
    let (index, item) = spec.item()?;
    let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
    let begun_elsewhere = spec.was_started_elsewhere();
    Some(PlanItemContext { number, title: &item.title, description: &item.description, done, later, begun_elsewhere })
}

/// The open findings at the start of a pass after the first, including those that ended the previous pass.
pub(super) fn open_after_restart(spec: &AttemptSpec) -> Vec<&Finding> {
    if spec.job.pass > 1 { open(spec) } else { Vec::new() }
}

/// The context of a design or plan prompt.
fn brainstorm_context<'a>(
    spec: &'a AttemptSpec,
    inputs: &'a PromptInputs,
    names: &'a TaskNames,
    findings: &'a [&'a Finding],
    document: Option<&'a str>,
) -> BrainstormContext<'a> {
    BrainstormContext {
        opening: inputs.custom_prompt.as_deref(),
        task: task_prompt_context(spec, names),
        worktree: &spec.workspace.worktree,
        pass: spec.job.pass,
        findings,
        last_review: inputs.last_pass.as_deref(),
        refused: spec.rejected_answer.as_deref().filter(|_| document.is_some()),
        document,
    }
}

/// The prompt of a researcher.
pub fn researcher(spec: &AttemptSpec, inputs: &PromptInputs, number: usize) -> String {
    let (names, findings) = (task_names(spec), open_after_restart(spec));
    let researchers = match spec.phase().map(|phase| &phase.kind) {
        Some(PhaseKind::Agent { researchers, .. }) => *researchers,
        Some(PhaseKind::Gate(_) | PhaseKind::Check(_)) | None => 1,
    };
    prompt::research(&ResearchContext {
        base: brainstorm_context(spec, inputs, &names, &findings, None),
        number: u32::try_from(number + 1).unwrap_or(u32::MAX),
        researchers,
        question: None,
    })
}

pub(super) fn design(spec: &AttemptSpec, inputs: &PromptInputs) -> String {
    let (names, findings) = (task_names(spec), open_after_restart(spec));
    let path = spec.document().and_then(|kind| spec.document_path(kind));
    let base = brainstorm_context(spec, inputs, &names, &findings, path.as_deref());
    let reports: Vec<&str> = inputs.reports.iter().map(String::as_str).collect();
    if reports.is_empty() {
        return prompt::brainstorm(&base);
    }
    prompt::synthesis(&SynthesisContext { base, reports: &reports })
}

pub(super) fn plan(spec: &AttemptSpec, inputs: &PromptInputs) -> String {
    let (names, findings) = (task_names(spec), open_after_restart(spec));
    let path = spec.document().and_then(|kind| spec.document_path(kind));
    let reports: Vec<&str> = inputs.reports.iter().map(String::as_str).collect();
    prompt::plan_document(&PlanDocumentContext {
        opening: inputs.custom_prompt.as_deref(),
        task: task_prompt_context(spec, &names),
        worktree: &spec.workspace.worktree,
        preparation: inputs.design.as_deref(),
        pass: spec.job.pass,
        previous_plan: inputs.plan.as_deref(),
        findings: &findings,
        last_review: inputs.last_pass.as_deref(),
        refused: spec.rejected_answer.as_deref().filter(|_| path.is_some()),
        reports: &reports,
        document: path.as_deref(),
    })
}

pub(super) fn simplify(spec: &AttemptSpec, inputs: &PromptInputs) -> String {
    let names = task_names(spec);
    let empty = GitDiff::default();
    let diff = inputs.diff.as_deref().unwrap_or(&empty);
    let left_out = diff.omitted();
    prompt::simplify(&SimplifyContext {
        opening: inputs.custom_prompt.as_deref(),
        task: task_prompt_context(spec, &names),
        worktree: &spec.workspace.worktree,
        agents_at_once: spec.agents_at_work,
        diff: context(spec, diff, &left_out),
    })
}
