//! Finishes a planner: parses and records its answer, which it reports with a tool or in its final message, and undoes
//! its changes to files.

use signoff_core::ids::ReviewerName;
use signoff_core::wire::LoopFact;

use super::final_message::planner_end;
use super::finish::EndedAttempt;
use super::finish_review::join_changes;
use super::parse_output::{agent_outcome, message};
use super::{AttemptEnd, EngineContext};
use crate::attempt_spec::AttemptSpec;
use crate::error::EngineError;

/// Turns a planner's end into an event, with its answer.
pub fn finish(
    EndedAttempt { ctx, spec, dir, ended }: EndedAttempt<'_>,
    notes: &mut Vec<String>,
) -> Result<(AttemptEnd, Vec<LoopFact>), EngineError> {
    undo_changes(ctx, spec, notes)?;
    if let Some(end) = agent_outcome(ctx, spec, dir, ended).into_end(spec) {
        return Ok((end, Vec::new()));
    }
    let text = ctx.reports.read_report(dir, &spec.launch.role, notes).unwrap_or_else(|| message(dir));
    Ok(planner_end(spec, &text))
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
