//! Agents that only answer: researchers, whose reports are given to the agent of a phase, and planners, whose answers
//! are recorded.

use std::fs;

use signoff_core::ids::{AttemptId, ReviewerName};
use signoff_core::machine::{AttemptFailure, WorkReport};
use signoff_core::prompt::CHARACTER_CAP;
use signoff_core::settings::AssignedWriter;
use signoff_core::wire::LoopFact;

use super::environment::AttemptCredentials;
use super::final_message::planner_end;
use super::finish::{EndedAttempt, failed_end, read_start};
use super::finish_review::{join_changes, undo_changes};
use super::launch::{AgentRun, launch};
use super::parse_output::{message, unsuccessful_end};
use super::prepare::{FinishContext, StartingAttempt, write_prompt};
use super::prompt_sources::{custom_prompt, restart_inputs};
use super::{AttemptEnd, EngineContext, StartFailure};
use crate::agent::AccessMode;
use crate::attempt_spec::AttemptSpec;
use crate::error::EngineError;
use crate::process::{AttemptDir, ProcessLaunch};
use crate::prompt_inputs::{self, PromptInputs};

/// The file with a researcher's report.
const REPORT: &str = "report.md";

/// Writes all files that the supervisor needs.
pub fn prepare(
    attempt: StartingAttempt<'_>,
    AssignedWriter { agent, model, timeout }: AssignedWriter,
    number: usize,
) -> Result<ProcessLaunch, StartFailure> {
    let StartingAttempt { ctx, spec, dir } = attempt;
    let custom_prompt = custom_prompt(ctx, &["research"])?;
    let (head, base) = (&spec.machine.head.commit, &spec.workspace.base);
    ctx.read_guards.begin_read(&ctx.worktree(spec)?, base, head, &name(number))?;
    let inputs = PromptInputs { custom_prompt, ..restart_inputs(ctx, spec)? };
    let finish_context = FinishContext { is_researcher: true, ..FinishContext::default() };
    let prompt = prompt_inputs::researcher(spec, &inputs, number);
    write_prompt(ctx, dir, &prompt_inputs::resumed(spec, prompt), &finish_context)?;
    let run = AgentRun {
        agent: &agent,
        model: model.as_deref(),
        access: AccessMode::Read,
        timeout,
        credentials: AttemptCredentials::default(),
        workspace: None,
    };
    launch(attempt, &run)
}

fn name(number: usize) -> ReviewerName {
    ReviewerName::new(format!("researcher {}", number + 1))
}

/// Stores the report, and undoes changes to files.
pub fn finish(attempt: EndedAttempt<'_>, number: usize, notes: &mut Vec<String>) -> Result<AttemptEnd, EngineError> {
    let EndedAttempt { ctx, spec, dir, .. } = attempt;
    let head = &spec.machine.head;
    undo_changes(attempt, &ctx.worktree(spec)?, &name(number), &head.commit, notes)?;
    if let Some(end) = unsuccessful_end(attempt) {
        return Ok(end);
    }
    let answer = message(dir);
    if answer.trim_ascii().is_empty() {
        return Ok(failed_end(spec, AttemptFailure::BadAnswer { message: "the report is empty".to_owned() }));
    }
    let path = dir.path().join(REPORT);
    fs::write(&path, answer).map_err(|error| EngineError::io("write", &path, error))?;
    Ok(AttemptEnd::work(spec, WorkReport::Complete { head: head.clone() }))
}

/// The reports of the current phase's researchers, each up to the size that a prompt can show.
pub fn reports(ctx: &EngineContext, spec: &AttemptSpec) -> Vec<String> {
    let read = |attempt: &AttemptId| {
        let dir = AttemptDir::new(ctx.layout.attempt(spec.run, &spec.loop_id, *attempt));
        read_start(&dir.path().join(REPORT), 4 * CHARACTER_CAP as u64 + 4)
    };
    let mut came_back = spec.researched.clone();
    came_back.sort_unstable();
    let texts = came_back.iter().map(read).filter(|text| !text.is_empty());
    texts.map(|text| String::from_utf8_lossy(&text).into_owned()).collect()
}

/// Undoes a planner's changes to files, and turns its end into an event, with its answer.
pub fn finish_planner(
    attempt: EndedAttempt<'_>,
    notes: &mut Vec<String>,
) -> Result<(AttemptEnd, Vec<LoopFact>), EngineError> {
    let EndedAttempt { ctx, spec, dir, .. } = attempt;
    let agent_label = ReviewerName::new(&*spec.launch.role);
    let undone = ctx.read_guards.end_read(&ctx.worktree(spec)?, &spec.workspace.base, &agent_label)?;
    if !undone.changes.is_empty() {
        let changes: Vec<_> = undone.changes.iter().collect();
        notes.push(format!("{agent_label} changed files while planning; undone: {}", join_changes(&changes)));
    }
    if let Some(end) = unsuccessful_end(attempt) {
        return Ok((end, Vec::new()));
    }
    let text = ctx.reports.read_report(dir, &spec.launch.role, notes).unwrap_or_else(|| message(dir));
    Ok(planner_end(spec, &text))
}
