//! Reads the inputs of prompts that are not part of the task: custom prompts, documents, reviews, and messages of
//! earlier attempts.

use std::path::Path;

use signoff_core::contract::Contract;
use signoff_core::ids::ReviewerName;
use signoff_core::ledger::FindingState;
use signoff_core::machine::JobKind;
use signoff_core::settings::AssignedReviewer;
use signoff_core::workflow::{Completion, Role};

use super::EngineContext;
use super::document::{self, TaskDocument};
use crate::artifact;
use crate::attempt_spec::AttemptSpec;
use crate::custom_prompts::{self, PromptFile};
use crate::error::EngineError;
use crate::process::AttemptDir;
use crate::prompt_inputs::PromptInputs;

/// The workflow's prompt for a role.
pub fn workflow_prompt(ctx: &EngineContext, spec: &AttemptSpec, role: &str) -> Result<Option<String>, EngineError> {
    let path = spec.policy.workflow.prompts.get(role);
    path.map(|path| prompt_file(ctx, path)).transpose()
}

/// A custom prompt that replaces the built-in one: configured, or in `.signoff/prompts`.
pub fn custom_prompt(ctx: &EngineContext, names: &[&str]) -> Result<Option<String>, EngineError> {
    for name in names {
        if let Some((file, _)) = custom_prompts::find(&ctx.settings, ctx.repository.root(), name) {
            return Ok(Some(file.read()?));
        }
    }
    Ok(None)
}

/// The custom prompt of a reviewer: the workflow's, its own, or the one of its name or role.
pub fn reviewer_prompt(
    ctx: &EngineContext,
    spec: &AttemptSpec,
    assigned: &AssignedReviewer,
) -> Result<Option<String>, EngineError> {
    match (workflow_prompt(ctx, spec, "review")?, &assigned.prompt) {
        (Some(text), _) => Ok(Some(text)),
        (None, Some(path)) => prompt_file(ctx, path).map(Some),
        (None, None) => custom_prompt(ctx, &[assigned.name.as_str(), "review"]),
    }
}

/// Reads a prompt file that must exist.
fn prompt_file(ctx: &EngineContext, path: &str) -> Result<String, EngineError> {
    Ok(PromptFile::at(ctx.repository.root(), path).read()?)
}

/// The answers that could not be parsed, for the fixer to read.
pub fn unparsed_answers(ctx: &EngineContext, spec: &AttemptSpec) -> Option<String> {
    let JobKind::Fix { unparsed_reviewers, .. } = &spec.job.kind else { return None };
    let (reviews, name) = (ctx.layout.reviews(), spec.artifact());
    let texts: Vec<String> =
        unparsed_reviewers.iter().filter_map(|reviewer| artifact::read_raw(&reviews, &name, reviewer)).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// This reviewer's last answer, if it could not be parsed.
pub fn last_unparsed_answer(ctx: &EngineContext, spec: &AttemptSpec, reviewer: &ReviewerName) -> Option<String> {
    spec.unreadable.as_ref()?;
    let reviews = ctx.layout.reviews();
    let read = |name: artifact::ArtifactName| artifact::read_raw(&reviews, &name, reviewer);
    read(spec.artifact()).or_else(|| spec.last_artifact().and_then(read))
}

/// The review that the agent answers. An improvement gets the review that it improves on, unless a finding was disputed
/// since. A fix gets the review of this cycle if reviewers answer in prose, which asks for more than the findings.
pub fn last_review(ctx: &EngineContext, spec: &AttemptSpec) -> Option<String> {
    let reviews = ctx.layout.reviews();
    match &spec.job.kind {
        JobKind::Work { role: Role::Fix, .. } if has_disputed(spec) => None,
        JobKind::Work { role: Role::Fix, .. } => artifact::read(&reviews, spec.task_spec.answered_review.as_ref()?),
        JobKind::Fix { .. } if spec.shares_fixes() => None,
        JobKind::Fix { .. } => {
            let known = &spec.policy.workflow.reviewers;
            let in_prose = |name| known.get(name).is_some_and(|one| one.contract == Contract::Markdown);
            spec.gate()?.reviewers.iter().any(in_prose).then(|| artifact::read_merged(&reviews, &spec.artifact()))?
        }
        JobKind::Work { .. }
        | JobKind::Research { .. }
        | JobKind::Review { .. }
        | JobKind::Check
        | JobKind::Combine { .. }
        | JobKind::Land => None,
    }
}

/// Whether a finding was settled that the text of an earlier review may still ask for. The ledger lists what is open.
fn has_disputed(spec: &AttemptSpec) -> bool {
    spec.machine.ledger.entries().iter().any(|entry| match entry.state {
        FindingState::Refuted | FindingState::Deferred | FindingState::OutOfScope => true,
        FindingState::Open | FindingState::Fixed => false,
    })
}

/// The author's last message, if the gate shows it to reviewers.
pub fn author_output(ctx: &EngineContext, spec: &AttemptSpec) -> Option<String> {
    if !spec.gate().is_some_and(|gate| gate.author_output) {
        return None;
    }
    last_message(ctx, spec)
}

/// The final message of the previous attempt, for an attempt that continues its work.
pub fn previous_message(ctx: &EngineContext, spec: &AttemptSpec) -> Option<String> {
    let goes_on = matches!(spec.job.kind, JobKind::Work { role: Role::Implement, .. });
    let marked = spec.policy.workflow.completion == Completion::Marker;
    if goes_on && marked && spec.machine.counters.attempts > 1 { last_message(ctx, spec) } else { None }
}

fn last_message(ctx: &EngineContext, spec: &AttemptSpec) -> Option<String> {
    let attempts = ctx.layout.attempts(spec.run, &spec.loop_id);
    let before = (1..spec.job.attempt.0).rev().map(|number| attempts.join(format!("a{number}")));
    before.map(AttemptDir::new).find_map(|dir| super::finish::writers_message(&dir))
}

/// The documents of a task.
pub fn document_inputs(ctx: &EngineContext, spec: &AttemptSpec) -> Result<PromptInputs, EngineError> {
    let text = |kind| document::text(ctx, spec, kind);
    Ok(PromptInputs { design: text(TaskDocument::Design)?, plan: text(TaskDocument::Plan)?, ..PromptInputs::default() })
}

/// The documents, with the review that ended the last pass.
pub fn restart_inputs(ctx: &EngineContext, spec: &AttemptSpec) -> Result<PromptInputs, EngineError> {
    let ended_last = spec.last_round.as_ref().is_some_and(|round| round.pass + 1 == spec.job.pass);
    let name = spec.last_artifact().filter(|_| ended_last);
    let last_pass = name.and_then(|name| artifact::read_merged(&ctx.layout.reviews(), &name));
    Ok(PromptInputs { last_pass, ..document_inputs(ctx, spec)? })
}

/// Files with a project's instructions for contributors. Agents are configured not to read them on their own.
const INSTRUCTIONS: [&str; 4] = ["AGENTS.md", "CLAUDE.md", "GEMINI.md", "CONTRIBUTING.md"];

/// The instruction files at the root of a worktree.
pub fn instructions(worktree: &Path) -> Vec<&'static str> {
    INSTRUCTIONS.into_iter().filter(|name| worktree.join(name).is_file()).collect()
}
