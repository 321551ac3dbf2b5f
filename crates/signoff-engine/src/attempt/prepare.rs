//! Prepares an attempt: sets up the worktree, writes the prompt and builds the command line.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use signoff_core::contract::{Contract, ReviewRequest};
use signoff_core::hex::hex;
use signoff_core::ids::{Commit, LoopId, Nonce, ReviewerName};
use signoff_core::machine::{JobKind, ReviewScope};
use signoff_core::prompt::Depth;
use signoff_core::report_token::ReportScope;
use signoff_core::review::FailThreshold;
use signoff_core::settings::{AgentKind, AssignedReviewer, AssignedWriter, JobPlace, ReviewWorkspace};
use signoff_core::untrusted_config::files_with_secrets;
use signoff_core::workflow::Role;

use super::environment::AttemptCredentials;
use super::launch::{AgentRun, launch};
use super::prompt_sources::{
    author_output, custom_prompt, document_inputs, instructions, last_review, last_unparsed_answer, previous_message,
    restart_inputs, reviewer_prompt, unparsed_answers, workflow_prompt,
};
use super::reviewer_worktree::find_untrusted_file;
use super::sandbox::{SandboxWorkspace, sandboxed};
use super::{EngineContext, StartFailure, checks, directory, document, plan_items, research, reviewer_worktree};
use crate::agent::{self, AccessMode};
use crate::attempt_spec::{AttemptSpec, RunPart};
use crate::error::EngineError;
use crate::failpoint;
use crate::git::{GitDiff, GitError};
use crate::process::{AttemptDir, ProcessLaunch};
use crate::prompt_inputs::{self, PromptInputs};
use crate::reports::ReportAccess;
use crate::workspace::parallel_fixes;

/// What finishing an attempt needs to know and cannot derive from other files.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Memo {
    pub nonce: Option<String>,
    pub diff_digest: Option<String>,
    /// Files of the work that agents would read as configuration, and files that contain a key.
    #[serde(default)]
    pub steering: Vec<String>,
    #[serde(default)]
    pub with_secrets: Vec<String>,
    /// The attempt is a researcher, which writes nothing.
    #[serde(default)]
    pub reads: bool,
    /// The stamp of the document before the attempt writes it.
    #[serde(default)]
    pub document: Option<String>,
    /// The head of the worktree before a document is written.
    #[serde(default)]
    pub began: Option<Commit>,
}

pub type PreparedLaunch = Result<(ProcessLaunch, AttemptDir), StartFailure>;

/// Writes all files that the supervisor needs. An unreadable prompt file fails the attempt, not the run.
pub fn prepare(ctx: &EngineContext, spec: &AttemptSpec) -> Result<PreparedLaunch, EngineError> {
    match prepare_unchecked(ctx, spec) {
        Err(EngineError::Prompt(error)) => Ok(Err(StartFailure::Failed(error.to_string()))),
        prepared => prepared,
    }
}

fn prepare_unchecked(ctx: &EngineContext, spec: &AttemptSpec) -> Result<PreparedLaunch, EngineError> {
    let dir = directory(ctx, spec);
    make_directory(&dir)?;
    failpoint::pass("prepare");
    if parallel_fixes::is_parallel(spec) {
        parallel_fixes::create(ctx, spec)?;
    } else {
        ctx.worktree_with_files(spec)?;
    }
    let Some(place) = spec.job_place() else {
        return Ok(Err(StartFailure::Failed("landing is not an agent's work".to_owned())));
    };
    match &spec.job.kind {
        JobKind::Review { reviewer, scope, commit } => {
            prepare_review(ctx, spec, place, ReviewJob { reviewer, scope: *scope, commit }, dir)
        }
        JobKind::Check => checks::prepare_phase_checks(ctx, spec, dir),
        JobKind::Research { role, number } => match ctx.settings.researcher_in_turn(*role, place, spec.turn()) {
            Ok(assigned) => research::prepare(ctx, spec, assigned, *number, dir),
            Err(error) => Ok(Err(StartFailure::Failed(error.to_string()))),
        },
        JobKind::Work { role, .. } | JobKind::Fix { role, .. } => prepare_work(ctx, spec, place, *role, dir),
        JobKind::Combine { .. } | JobKind::Land => {
            Ok(Err(StartFailure::Failed("this is not an agent's work".to_owned())))
        }
    }
}

/// Creates the attempt's directory. It is private: it contains prompts, answers and nonces.
pub fn make_directory(dir: &AttemptDir) -> Result<(), EngineError> {
    let private = DirBuilder::new().recursive(true).mode(0o700).create(dir.usage_directory());
    private.map_err(|error| EngineError::io("make", dir.path(), error))
}

fn prepare_work(
    ctx: &EngineContext,
    spec: &AttemptSpec,
    place: JobPlace<'_>,
    role: Role,
    dir: AttemptDir,
) -> Result<PreparedLaunch, EngineError> {
    let AssignedWriter { agent, model, timeout } = match ctx.settings.writer_in_turn(role, place, spec.turn()) {
        Ok(assigned) => assigned,
        Err(error) => return Ok(Err(StartFailure::Failed(error.to_string()))),
    };
    let own = matches!(role, Role::Implement).then(|| spec.task_spec.prompt.clone()).flatten();
    let opening = match (workflow_prompt(ctx, spec, role.as_str())?, own) {
        (Some(text), _) | (None, Some(text)) => Some(text),
        (None, None) => custom_prompt(ctx, &[role.as_str()])?,
    };
    let (unread, last_review) = (unparsed_answers(ctx, spec), last_review(ctx, spec));
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
        opening,
        unread,
        last_review,
        previous_message,
        diff: diff.transpose()?.map(Arc::new),
        reports: research::reports(ctx, spec),
        instructions: instructions(worktree.path()),
        ..if spec.document().is_some() { restart_inputs(ctx, spec)? } else { PromptInputs::default() }
    };
    document::restore(ctx, spec, &worktree)?;
    let began = spec.document().map(|_| worktree.head()).transpose()?.map(|head| head.commit);
    let memo = Memo { document: document::stamp(spec, &worktree), began, ..Memo::default() };
    write_prompt(ctx, &dir, &prompt_inputs::resumed(spec, prompt_inputs::writer(spec, &inputs)), &memo)?;
    ctx.read_guards.writing(&worktree);
    let credentials = AttemptCredentials { nonce: None, access: issue_access(ctx, planner_scope(spec, role), &dir)? };
    let run = AgentRun { agent: &agent, model: model.as_deref(), access: AccessMode::Write, timeout, credentials };
    match launch(ctx, spec, &dir, &run) {
        Ok(launch) => {
            let launch = sandboxed(ctx, launch, &dir, spec.launch.sandbox, &SandboxWorkspace::Worktree(&worktree))?;
            Ok(Ok((launch, dir)))
        }
        Err(unstarted) => Ok(Err(unstarted)),
    }
}

/// What a reviewer reviews.
#[derive(Clone, Copy)]
struct ReviewJob<'a> {
    reviewer: &'a ReviewerName,
    scope: ReviewScope,
    commit: &'a Commit,
}

fn prepare_review(
    ctx: &EngineContext,
    spec: &AttemptSpec,
    place: JobPlace<'_>,
    ReviewJob { reviewer: name, scope, commit }: ReviewJob<'_>,
    dir: AttemptDir,
) -> Result<PreparedLaunch, EngineError> {
    let assigned = match ctx.settings.reviewer_in_turn(name, place, spec.turn()) {
        Ok(assigned) => assigned,
        Err(error) => return Ok(Err(StartFailure::Failed(error.to_string()))),
    };
    if let Some(message) = plan_items::plan_error(ctx, spec, commit)? {
        return Ok(Err(StartFailure::Failed(message)));
    }
    let runs_checks = assigned.agent.kind == AgentKind::Checks;
    let opening = if runs_checks { None } else { reviewer_prompt(ctx, spec, &assigned)? };
    let since = if scope == ReviewScope::Scoped { spec.reviewed() } else { None };
    let diff = ctx.read_guards.begin(&ctx.worktree(spec)?, since.unwrap_or(spec.base()), commit, name)?;
    if runs_checks {
        return checks::prepare_reviewer_checks(ctx, spec, &assigned, commit, dir);
    }
    let nonce = fresh_nonce()?;
    let ask = ask(spec, &assigned, commit, Some(nonce.clone()));
    let (steering, with_secrets) = risky_files(ctx, spec, since, commit, &diff)?;
    if let Some(file) = steering.iter().find(|file| agent::executes_file(&assigned.agent, file)) {
        return Ok(Err(StartFailure::Failed(would_run(&assigned, &format!("`{file}` of the work")))));
    }
    // A copy contains only the commit.
    let workspace = assigned.workspace.unwrap_or_else(|| workspace_for(spec));
    let shares = workspace == ReviewWorkspace::Shared;
    if let Some(file) = shares.then(|| find_untrusted_file(ctx, spec, &assigned.agent)).transpose()?.flatten() {
        let file = format!("`{file}`, which is new in the worktree");
        return Ok(Err(StartFailure::Failed(would_run(&assigned, &file))));
    }
    let digest = Some(diff.digest.clone());
    let memo = Memo { nonce: Some(nonce.clone()), diff_digest: digest, steering, with_secrets, ..Memo::default() };
    let inputs = PromptInputs {
        opening,
        author_output: author_output(ctx, spec),
        unreadable: last_unparsed_answer(ctx, spec, name),
        can_run: !shares,
        diff: Some(diff),
        ..if spec.judged_document().is_some() { document_inputs(ctx, spec)? } else { PromptInputs::default() }
    };
    let copy = match workspace {
        ReviewWorkspace::Copy => Some(reviewer_worktree::make(ctx, spec, name, commit)?),
        ReviewWorkspace::Shared => None,
    };
    let original_spec = spec;
    let (spec, room) =
        copy.as_ref().map_or((spec, SandboxWorkspace::None), |(spec, copy)| (spec, SandboxWorkspace::Worktree(copy)));
    let prompt = prompt_inputs::reviewer(spec, &inputs, assigned.contract, &ask);
    write_prompt(ctx, &dir, &prompt_inputs::resumed(spec, prompt), &memo)?;
    // In a copy the reviewer may write, to build and run tests.
    let access = if copy.is_some() { AccessMode::Write } else { AccessMode::Read };
    let credentials = AttemptCredentials {
        nonce: Some(nonce),
        access: issue_access(ctx, reviewer_scope(assigned.contract, ask), &dir)?,
    };
    let AssignedReviewer { agent, model, timeout, .. } = &assigned;
    let run = AgentRun { agent, model: model.as_deref(), access, timeout: *timeout, credentials };
    match launch(ctx, spec, &dir, &run) {
        Ok(launch) => Ok(Ok((sandboxed(ctx, launch, &dir, spec.launch.sandbox, &room)?, dir))),
        Err(unstarted) => {
            reviewer_worktree::discard(ctx, original_spec, name);
            Ok(Err(unstarted))
        }
    }
}

/// Why a reviewer is not started: it would run a file that it should review.
fn would_run(AssignedReviewer { name, agent, .. }: &AssignedReviewer, what: &str) -> String {
    format!(
        "{} would run {what}: let another agent review it (`[reviewers.{name}] agent`), or take the file out",
        agent.name
    )
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
    let whole = since.map(|_| ctx.worktree(spec)?.diff_between(spec.base(), commit).map_err(EngineError::from));
    let whole = whole.transpose()?;
    let diff = whole.as_ref().unwrap_or(diff);
    Ok((diff.steering.clone(), files_with_secrets(&diff.patch, &ctx.secrets)))
}

/// Issues a report token, if the agent may report.
fn issue_access(
    ctx: &EngineContext,
    grant: Option<ReportScope>,
    dir: &AttemptDir,
) -> Result<Option<ReportAccess>, EngineError> {
    let Some(grant) = grant else { return Ok(None) };
    ctx.reports.issue(grant, dir).map_err(|error| EngineError::io("prepare", dir.path(), error))
}

/// The report scope of a reviewer whose contract allows the tool.
fn reviewer_scope(contract: Contract, ask: ReviewRequest) -> Option<ReportScope> {
    match contract {
        Contract::Tool | Contract::Auto => Some(ReportScope::review(ask)),
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
    if runs && !planning && spec.judged_document().is_none() { ReviewWorkspace::Copy } else { ReviewWorkspace::Shared }
}

/// The ids of the tasks to group.
fn planned_ids(spec: &AttemptSpec) -> Vec<String> {
    let Some(RunPart::Planning { tasks, .. }) = &spec.part else { return Vec::new() };
    tasks.iter().map(|task| task.id.clone()).collect()
}

/// The parts of the request that the parser of the reviewer's answer needs.
pub fn ask(spec: &AttemptSpec, assigned: &AssignedReviewer, commit: &Commit, nonce: Option<String>) -> ReviewRequest {
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

/// Writes the prompt and the memo, with secrets redacted from the prompt.
pub(super) fn write_prompt(
    ctx: &EngineContext,
    dir: &AttemptDir,
    prompt: &str,
    memo: &Memo,
) -> Result<(), EngineError> {
    let prompt = ctx.secrets.redact_text(prompt);
    let memo = serde_json::to_vec(memo).unwrap_or_default();
    for (path, bytes) in [(dir.path().join("memo.json"), memo.as_slice()), (dir.prompt(), prompt.as_bytes())] {
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
