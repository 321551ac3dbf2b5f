//! Prepares an attempt: sets up the worktree, writes the prompt and builds the command line.

use std::fs;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use signoff_core::contract::{Contract, ReviewRequest};
use signoff_core::hex::hex;
use signoff_core::ids::{Commit, LoopId, Nonce, ReviewerName};
use signoff_core::machine::{JobKind, ReviewScope};
use signoff_core::prompt::Depth;
use signoff_core::report_token::ReportScope;
use signoff_core::review::FailThreshold;
use signoff_core::settings::{AgentKind, AssignedReviewer, AssignedWriter, ReviewWorkspace};
use signoff_core::untrusted_config::files_with_secrets;
use signoff_core::workflow::Role;

use super::environment::AttemptCredentials;
use super::launch::{AgentRun, launch};
use super::prompt_sources::{
    author_output, custom_prompt, document_inputs, instructions, last_review, last_unparsed_answer, previous_message,
    restart_inputs, reviewer_prompt, unparsed_answers, workflow_prompt,
};
use super::untrusted_files::find_untrusted_file;
use super::{EngineContext, StartFailure, checks, document, plan_items, research, reviewer_worktree};
use crate::agent::{self, AccessMode};
use crate::attempt_spec::{AttemptSpec, RunPart};
use crate::error::EngineError;
use crate::failpoint;
use crate::git::{GitDiff, GitError};
use crate::process::{AttemptDir, ProcessLaunch, create_private_dir};
use crate::prompt_inputs::{self, PromptInputs};
use crate::reports::ReportAccess;
use crate::workspace::parallel_fixes;

/// What finishing an attempt needs and cannot derive from other files.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FinishContext {
    pub nonce: Option<String>,
    pub diff_digest: Option<String>,
    /// Files of the work that agents would read as configuration, and files that contain a key.
    #[serde(rename = "steering")]
    pub config_files: Vec<String>,
    pub with_secrets: Vec<String>,
    /// The attempt is a researcher, which writes nothing.
    #[serde(rename = "reads")]
    pub is_researcher: bool,
    /// The stamp of the document before the attempt writes it.
    pub document: Option<String>,
    /// The head of the worktree before a document is written.
    #[serde(rename = "began")]
    pub head_before: Option<Commit>,
}

/// An attempt that is prepared.
#[derive(Clone, Copy)]
pub struct StartingAttempt<'a> {
    pub ctx: &'a EngineContext,
    pub spec: &'a AttemptSpec,
    pub dir: &'a AttemptDir,
}

/// Writes all files that the supervisor needs.
pub fn prepare(attempt: StartingAttempt<'_>) -> Result<ProcessLaunch, StartFailure> {
    let StartingAttempt { ctx, spec, dir } = attempt;
    make_directory(dir)?;
    failpoint::pass("prepare");
    if parallel_fixes::is_parallel(spec) {
        parallel_fixes::create(ctx, spec)?;
    } else {
        ctx.worktree_with_files(spec)?;
    }
    let Some(phase_context) = spec.phase_context() else {
        return Err(StartFailure::new("landing is not an agent's work"));
    };
    let (settings, agent_index) = (&ctx.settings, spec.agent_index());
    match &spec.job.kind {
        JobKind::Review { reviewer, scope, commit } => {
            let assigned = settings.reviewer(reviewer, phase_context, agent_index).map_err(StartFailure::new)?;
            prepare_review(attempt, &assigned, *scope, commit)
        }
        JobKind::Check => checks::prepare_phase_checks(attempt),
        JobKind::Research { role, number } => {
            let assigned = settings.researcher(*role, phase_context, agent_index).map_err(StartFailure::new)?;
            research::prepare(attempt, assigned, *number)
        }
        JobKind::Work { role, .. } | JobKind::Fix { role, .. } => {
            let assigned = settings.writer(*role, phase_context, agent_index).map_err(StartFailure::new)?;
            prepare_work(attempt, assigned, *role)
        }
        JobKind::Combine { .. } | JobKind::Land => Err(StartFailure::new("this is not an agent's work")),
    }
}

/// Creates the attempt's directory. It is private: it contains prompts, answers and nonces.
pub fn make_directory(dir: &AttemptDir) -> Result<(), EngineError> {
    create_private_dir(&dir.usage_directory()).map_err(|error| EngineError::io("make", dir.path(), error))
}

fn prepare_work(
    attempt: StartingAttempt<'_>,
    AssignedWriter { agent, model, timeout }: AssignedWriter,
    role: Role,
) -> Result<ProcessLaunch, StartFailure> {
    let StartingAttempt { ctx, spec, dir } = attempt;
    let own = matches!(role, Role::Implement).then(|| spec.task_spec.prompt.clone()).flatten();
    let custom_prompt = match (workflow_prompt(ctx, spec, role.into_str())?, own) {
        (Some(text), _) | (None, Some(text)) => Some(text),
        (None, None) => custom_prompt(ctx, &[role.into_str()])?,
    };
    let (unparsed_answers, last_review) = (unparsed_answers(ctx, spec), last_review(ctx, spec));
    let previous_message = previous_message(ctx, spec);
    // A killed process may have left the worktree to a sandboxed agent.
    match ctx.import_work(spec) {
        Err(EngineError::Git(GitError::Incomplete { .. })) => {}
        taken => drop(taken?),
    }
    let worktree = ctx.worktree(spec)?;
    let simplifies = matches!(&spec.job.kind, JobKind::Work { role: Role::Simplify, .. });
    let diff = simplifies.then(|| worktree.diff_between(&spec.workspace.base, &spec.machine.head.commit));
    let inputs = PromptInputs {
        custom_prompt,
        unparsed_answers,
        last_review,
        previous_message,
        diff: diff.transpose()?.map(Arc::new),
        reports: research::reports(ctx, spec),
        instructions: instructions(worktree.path()),
        ..if spec.document().is_some() { restart_inputs(ctx, spec)? } else { PromptInputs::default() }
    };
    document::restore(ctx, spec, &worktree)?;
    let head_before = spec.document().map(|_| worktree.head()).transpose()?.map(|head| head.commit);
    let finish_context =
        FinishContext { document: document::stamp(spec, &worktree), head_before, ..FinishContext::default() };
    write_prompt(ctx, dir, &prompt_inputs::resumed(spec, prompt_inputs::writer(spec, &inputs)), &finish_context)?;
    ctx.read_guards.writer_started(&worktree);
    let access = issue_access(attempt, planner_scope(spec, role))?;
    let run = AgentRun {
        agent: &agent,
        model: model.as_deref(),
        access: AccessMode::Write,
        timeout,
        credentials: AttemptCredentials { nonce: None, access },
        workspace: Some(&worktree),
    };
    launch(attempt, &run)
}

fn prepare_review(
    attempt: StartingAttempt<'_>,
    assigned: &AssignedReviewer,
    scope: ReviewScope,
    commit: &Commit,
) -> Result<ProcessLaunch, StartFailure> {
    let (StartingAttempt { ctx, spec, dir }, name) = (attempt, &assigned.name);
    if let Some(message) = plan_items::plan_error(ctx, spec, commit)? {
        return Err(StartFailure::Failed(message));
    }
    let runs_checks = assigned.agent.kind == AgentKind::Checks;
    let custom_prompt = if runs_checks { None } else { reviewer_prompt(ctx, spec, assigned)? };
    let since = if scope == ReviewScope::Scoped { spec.reviewed() } else { None };
    let diff = ctx.read_guards.begin_read(&ctx.worktree(spec)?, since.unwrap_or(spec.base()), commit, name)?;
    if runs_checks {
        return checks::prepare_reviewer_checks(attempt, assigned, commit);
    }
    let nonce = fresh_nonce()?;
    let request = review_request(spec, assigned, commit, Some(nonce.clone()));
    let (config_files, with_secrets) = risky_files(ctx, spec, since, commit, &diff)?;
    if let Some(file) = config_files.iter().find(|file| agent::executes_file(&assigned.agent, file)) {
        return Err(would_run(assigned, &format!("`{file}` of the work")));
    }
    // A copy contains only the commit.
    let workspace = assigned.workspace.unwrap_or_else(|| workspace_for(spec));
    let shares = workspace == ReviewWorkspace::Shared;
    if let Some(file) = shares.then(|| find_untrusted_file(ctx, spec, &assigned.agent)).transpose()?.flatten() {
        return Err(would_run(assigned, &format!("`{file}`, which is new in the worktree")));
    }
    let finish_context = FinishContext {
        nonce: Some(nonce.clone()),
        diff_digest: Some(diff.digest.clone()),
        config_files,
        with_secrets,
        ..FinishContext::default()
    };
    let inputs = PromptInputs {
        custom_prompt,
        author_output: author_output(ctx, spec),
        last_unparsed_answer: last_unparsed_answer(ctx, spec, name),
        can_run: !shares,
        diff: Some(diff),
        ..if spec.reviewed_document().is_some() { document_inputs(ctx, spec)? } else { PromptInputs::default() }
    };
    let copy = match workspace {
        ReviewWorkspace::Copy => Some(reviewer_worktree::create_copy(ctx, spec, name, commit)?),
        ReviewWorkspace::Shared => None,
    };
    // In a copy the reviewer may write, to build and run tests.
    let (in_copy, access, room) = match &copy {
        Some((moved, copy)) => (moved, AccessMode::Write, Some(copy)),
        None => (spec, AccessMode::Read, None),
    };
    let prompt = prompt_inputs::reviewer(in_copy, &inputs, assigned.contract, &request);
    write_prompt(ctx, dir, &prompt_inputs::resumed(in_copy, prompt), &finish_context)?;
    let report_access = issue_access(attempt, reviewer_scope(assigned.contract, request))?;
    let run = AgentRun {
        agent: &assigned.agent,
        model: assigned.model.as_deref(),
        access,
        timeout: assigned.timeout,
        credentials: AttemptCredentials { nonce: Some(nonce), access: report_access },
        workspace: room,
    };
    let launched = launch(StartingAttempt { spec: in_copy, ..attempt }, &run);
    if launched.is_err() {
        reviewer_worktree::remove_copy(ctx, spec, name);
    }
    launched
}

/// Why a reviewer is not started: it would run a file that it should review.
fn would_run(AssignedReviewer { name, agent, .. }: &AssignedReviewer, what: &str) -> StartFailure {
    StartFailure::Failed(format!(
        "{} would run {what}: let another agent review it (`[reviewers.{name}] agent`), or take the file out",
        agent.name
    ))
}

/// The files of the whole work, not only of the last fix, that agents would read as configuration, and those that
/// contain a key.
fn risky_files(
    ctx: &EngineContext,
    spec: &AttemptSpec,
    since: Option<&Commit>,
    commit: &Commit,
    diff: &GitDiff,
) -> Result<(Vec<String>, Vec<String>), EngineError> {
    let full_diff = since.map(|_| ctx.worktree(spec)?.diff_between(spec.base(), commit).map_err(EngineError::from));
    let full_diff = full_diff.transpose()?;
    let diff = full_diff.as_ref().unwrap_or(diff);
    Ok((diff.config_files.clone(), files_with_secrets(&diff.patch, &ctx.secrets)))
}

/// Issues a report token, if the agent may report.
fn issue_access(
    StartingAttempt { ctx, dir, .. }: StartingAttempt<'_>,
    scope: Option<ReportScope>,
) -> Result<Option<ReportAccess>, EngineError> {
    let Some(scope) = scope else { return Ok(None) };
    ctx.reports.issue(scope, dir).map_err(|error| EngineError::io("prepare", dir.path(), error))
}

/// The report scope of a reviewer whose contract allows the tool.
fn reviewer_scope(contract: Contract, request: ReviewRequest) -> Option<ReportScope> {
    match contract {
        Contract::Tool | Contract::Auto => Some(ReportScope::review(request)),
        Contract::Markdown | Contract::Json | Contract::Xml | Contract::Prefix | Contract::Severity => None,
    }
}

/// The report scope of a run's planners.
fn planner_scope(spec: &AttemptSpec, role: Role) -> Option<ReportScope> {
    match role {
        Role::Enumerate if spec.loop_id == LoopId::planning() => Some(ReportScope::tasks()),
        Role::Plan if spec.loop_id == LoopId::planning() => Some(ReportScope::groups(planned_ids(spec))),
        Role::Implement | Role::Fix | Role::Enumerate | Role::Plan | Role::Brainstorm | Role::Simplify => None,
    }
}

/// A copy if the prompt asks the reviewer to run tests, otherwise the shared worktree. Reviewers of documents run no
/// tests.
fn workspace_for(spec: &AttemptSpec) -> ReviewWorkspace {
    let planning = matches!(spec.part, Some(RunPart::Planning { .. }));
    let runs = spec.gate().is_some_and(|gate| gate.depth >= Depth::Standard);
    if runs && !planning && spec.reviewed_document().is_none() {
        ReviewWorkspace::Copy
    } else {
        ReviewWorkspace::Shared
    }
}

/// The ids of the tasks to group.
fn planned_ids(spec: &AttemptSpec) -> Vec<String> {
    let Some(RunPart::Planning { tasks, .. }) = &spec.part else { return Vec::new() };
    tasks.iter().map(|task| task.id.clone()).collect()
}

/// The parts of the request that the parser of the reviewer's answer needs.
pub fn review_request(
    spec: &AttemptSpec,
    assigned: &AssignedReviewer,
    commit: &Commit,
    nonce: Option<String>,
) -> ReviewRequest {
    let checks = || ReviewerName::new("checks");
    let reviewer = if let JobKind::Review { reviewer, .. } = &spec.job.kind { reviewer.clone() } else { checks() };
    let gate = spec.gate();
    let (loop_id, about) = subject(spec);
    ReviewRequest {
        reviewer,
        kind: assigned.kind,
        nonce: nonce.map(Nonce::new),
        require_nonce: assigned.require_nonce,
        fail_on: gate.map_or(FailThreshold::Low, |gate| gate.fail_on),
        commit: Some(commit.clone()),
        loop_id,
        task: about,
    }
}

/// The loop and the task that a review is about. A checkpoint review is about the loop that it reviews, whose task is
/// not done. A review without a task is about no loop.
fn subject(spec: &AttemptSpec) -> (Option<LoopId>, Option<String>) {
    match (spec.loop_id.checkpoint_target(), spec.task_id) {
        (Some((looked_at, _)), _) => (Some(looked_at), None),
        (None, Some(id)) => (Some(spec.loop_id.clone()), Some(id.to_string())),
        (None, None) => (None, None),
    }
}

/// Writes the prompt and the finish context, with secrets redacted from the prompt.
pub fn write_prompt(
    ctx: &EngineContext,
    dir: &AttemptDir,
    prompt: &str,
    finish_context: &FinishContext,
) -> Result<(), EngineError> {
    let prompt = ctx.secrets.redact_text(prompt);
    let finish_context = serde_json::to_vec(finish_context).unwrap_or_default();
    for (path, bytes) in [(dir.path().join("memo.json"), finish_context.as_slice()), (dir.prompt(), prompt.as_bytes())]
    {
        fs::write(&path, bytes).map_err(|error| EngineError::io("write", &path, error))?;
    }
    Ok(())
}

/// A random nonce, which no file of the work can contain beforehand.
fn fresh_nonce() -> Result<String, EngineError> {
    let mut bytes = [0u8; 8];
    getrandom::fill(&mut bytes).map_err(|error| EngineError::Internal(error.to_string()))?;
    Ok(hex(&bytes))
}
