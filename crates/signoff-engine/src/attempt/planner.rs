//! Finishes a planner: parses and records its answer, which it reports with a tool or in its final message, and undoes
//! its changes to files.

use sha2::{Digest, Sha256};
use signoff_core::hex::hex;
use signoff_core::ids::{ReviewerName, Tree};
use signoff_core::machine::{AttemptFailure, Event, Head, WorkReport};
use signoff_core::review::Violation;
use signoff_core::source::planner::{PlannerAnswer, read_groups, read_tasks};
use signoff_core::wire::LoopFact;
use signoff_core::workflow::Role;

use super::finish::failed_end;
use super::finish_review::join_changes;
use super::parse_output::{agent_outcome, message};
use super::{AttemptEnd, EngineContext};
use crate::attempt_spec::{AttemptSpec, RunPart};
use crate::error::EngineError;
use crate::process::{AttemptDir, ProcessResult};

/// Turns a planner's end into an event, with its answer.
pub fn finish(
    ctx: &EngineContext,
    spec: &AttemptSpec,
    (dir, ended): (&AttemptDir, &ProcessResult),
    notes: &mut Vec<String>,
) -> Result<(AttemptEnd, Vec<LoopFact>), EngineError> {
    undo_changes(ctx, spec, notes)?;
    if let Some(end) = agent_outcome(ctx, spec, dir, ended).into_end(spec) {
        return Ok((end, Vec::new()));
    }
    let attempt = spec.job.attempt;
    let text = ctx.reports.read_report(dir, &spec.launch.role, notes).unwrap_or_else(|| message(dir));
    Ok(match parse_answer(spec, &text) {
        Ok(answer) => {
            let report = WorkReport::Complete { head: head(spec, &answer) };
            let ended = AttemptEnd::Event(Box::new(Event::WorkEnded { attempt, report }));
            (ended, vec![LoopFact::Answered { attempt, answer }])
        }
        Err(violation) => (failed_end(spec, AttemptFailure::BadAnswer { message: violation.to_string() }), Vec::new()),
    })
}

fn parse_answer(spec: &AttemptSpec, text: &[u8]) -> Result<PlannerAnswer, Violation> {
    match (&spec.part, spec.launch.role == Role::Enumerate.as_str()) {
        (Some(RunPart::Planning { tasks, .. }), false) => read_groups(text, tasks).map(PlannerAnswer::Groups),
        (_, _) => read_tasks(text).map(PlannerAnswer::Tasks),
    }
}

/// The head of a planner's work. It changes no files, so a hash of the answer stands for the tree.
fn head(spec: &AttemptSpec, answer: &PlannerAnswer) -> Head {
    let tree = Tree::new(hex(&Sha256::digest(answer.to_review_text())));
    Head { commit: spec.machine.head.commit.clone(), tree }
}

/// Undoes a planner's changes to files.
fn undo_changes(ctx: &EngineContext, spec: &AttemptSpec, notes: &mut Vec<String>) -> Result<(), EngineError> {
    let who = ReviewerName::new(&*spec.launch.role);
    let undone = ctx.read_guards.end(&ctx.worktree(spec)?, &spec.workspace.base, &who)?;
    if !undone.changes.is_empty() {
        let changes: Vec<_> = undone.changes.iter().collect();
        notes.push(format!("{who} changed files while planning; undone: {}", join_changes(&changes)));
    }
    Ok(())
}
