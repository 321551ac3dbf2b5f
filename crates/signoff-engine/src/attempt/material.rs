//! What prompts are made of that lies outside of the task itself: a person's own words, documents, reviews and messages of
//! earlier attempts.

use std::path::Path;

use signoff_core::config::AssignedReviewer;
use signoff_core::contract::Contract;
use signoff_core::ids::ReviewerName;
use signoff_core::ledger::State;
use signoff_core::machine::JobKind;
use signoff_core::workflow::{Completion, Role};

use super::Workshop;
use super::document::{self, Kind};
use crate::artifact;
use crate::assignment::Assignment;
use crate::brief::Material;
use crate::error::EngineError;
use crate::opening::{self, PromptFile};
use crate::process::AttemptDir;

/// The prompt that the workflow has for a role.
pub(super) fn laid(shop: &Workshop, task: &Assignment, role: &str) -> Result<Option<String>, EngineError> {
    let path = task.policy.workflow.prompts.get(role);
    path.map(|path| prompt_file(shop, path)).transpose()
}

/// A person's own words in place of the built-in opening: configured, or in `.signoff/prompts`.
pub(super) fn opening(shop: &Workshop, names: &[&str]) -> Result<Option<String>, EngineError> {
    for name in names {
        if let Some((file, _)) = opening::find(&shop.settings, shop.repository.root(), name) {
            return Ok(Some(file.read()?));
        }
    }
    Ok(None)
}

/// The words that a reviewer begins with: the workflow's, its own, or those of its name or role.
pub(super) fn reviewer_opening(
    shop: &Workshop,
    task: &Assignment,
    assigned: &AssignedReviewer,
) -> Result<Option<String>, EngineError> {
    match (laid(shop, task, "review")?, &assigned.prompt) {
        (Some(text), _) => Ok(Some(text)),
        (None, Some(path)) => prompt_file(shop, path).map(Some),
        (None, None) => opening(shop, &[assigned.name.as_str(), "review"]),
    }
}

/// A prompt that is named by a path must be there.
fn prompt_file(shop: &Workshop, path: &str) -> Result<String, EngineError> {
    Ok(PromptFile::at(shop.repository.root(), path).read()?)
}

/// The answers nobody could read, for the fixer to make sense of.
pub(super) fn unread(shop: &Workshop, task: &Assignment) -> Option<String> {
    let JobKind::Fix { unread, .. } = &task.job.kind else { return None };
    let (reviews, name) = (shop.layout.reviews(), task.artifact());
    let texts: Vec<String> =
        unread.iter().filter_map(|reviewer| artifact::read_raw(&reviews, &name, reviewer)).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// This reviewer's last answer, where it could not be read.
pub(super) fn unreadable(shop: &Workshop, task: &Assignment, reviewer: &ReviewerName) -> Option<String> {
    task.unreadable.as_ref()?;
    let reviews = shop.layout.reviews();
    let read = |name: artifact::Name| artifact::read_raw(&reviews, &name, reviewer);
    read(task.artifact()).or_else(|| task.last_artifact().and_then(read))
}

/// The review that an improvement answers, unless a finding was disputed since; and for a fix the review of this cycle, where reviewers answer in prose:
/// what they say beside their findings is part of what they ask for.
pub(super) fn last_review(shop: &Workshop, task: &Assignment) -> Option<String> {
    let reviews = shop.layout.reviews();
    match &task.job.kind {
        JobKind::Work { role: Role::Fix, .. } if has_disputed(task) => None,
        JobKind::Work { role: Role::Fix, .. } => artifact::read(&reviews, task.spec.answers.as_ref()?),
        JobKind::Fix { .. } if task.shares_fixes() => None,
        JobKind::Fix { .. } => {
            let known = &task.policy.workflow.reviewers;
            let in_prose = |name| known.get(name).is_some_and(|one| one.contract == Contract::Markdown);
            task.gate()?
                .reviewers
                .iter()
                .any(in_prose)
                .then(|| artifact::read_merged(&reviews, &task.artifact()))?
        }
        JobKind::Work { .. }
        | JobKind::Research { .. }
        | JobKind::Review { .. }
        | JobKind::Check
        | JobKind::Combine { .. }
        | JobKind::Land => None,
    }
}

/// Whether a finding is settled that the text of an earlier review may still ask for. The ledger says what is open.
fn has_disputed(task: &Assignment) -> bool {
    task.state.ledger.entries().iter().any(|entry| match entry.state {
        State::Refuted | State::Deferred | State::OutOfScope => true,
        State::Open | State::Fixed => false,
    })
}

/// The last message of whoever wrote the work, where the gate shows it to reviewers.
pub(super) fn author_output(shop: &Workshop, task: &Assignment) -> Option<String> {
    if !task.gate().is_some_and(|gate| gate.author_output) {
        return None;
    }
    last_message(shop, task)
}

/// What the attempt before said, for one that goes on with its work.
pub(super) fn previous_message(shop: &Workshop, task: &Assignment) -> Option<String> {
    let goes_on = matches!(task.job.kind, JobKind::Work { role: Role::Implement, .. });
    let marked = task.policy.workflow.completion == Completion::Marker;
    if goes_on && marked && task.state.tally.iteration > 1 { last_message(shop, task) } else { None }
}

fn last_message(shop: &Workshop, task: &Assignment) -> Option<String> {
    let attempts = shop.layout.attempts(task.run, &task.loop_id);
    let before = (1..task.job.attempt.0).rev().map(|number| attempts.join(format!("a{number}")));
    before.map(AttemptDir::new).find_map(|dir| super::conclude::writers_message(&dir))
}

/// The documents that a task has, for those who must know them.
pub(super) fn documents(shop: &Workshop, task: &Assignment) -> Result<Material, EngineError> {
    let text = |kind| document::text(shop, task, kind);
    Ok(Material { design: text(Kind::Design)?, plan: text(Kind::Plan)?, ..Material::default() })
}

/// The same with what ended the last pass: the next one must not begin without knowing it.
pub(super) fn restarted(shop: &Workshop, task: &Assignment) -> Result<Material, EngineError> {
    let ended_last = task.last_round.as_ref().is_some_and(|round| round.pass + 1 == task.job.pass);
    let name = task.last_artifact().filter(|_| ended_last);
    let last_pass = name.and_then(|name| artifact::read_merged(&shop.layout.reviews(), &name));
    Ok(Material { last_pass, ..documents(shop, task)? })
}

/// In which projects say how they are worked on. Agents are kept from reading them by themselves.
const INSTRUCTIONS: [&str; 4] = ["AGENTS.md", "CLAUDE.md", "GEMINI.md", "CONTRIBUTING.md"];

/// Those that lie at the root of a worktree.
pub(super) fn instructions(worktree: &Path) -> Vec<&'static str> {
    INSTRUCTIONS.into_iter().filter(|name| worktree.join(name).is_file()).collect()
}
