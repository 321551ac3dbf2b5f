//! Finishes an attempt: commits or reads what the agent left, and turns it into an event.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use signoff_core::contract::MAX_BYTES;
use signoff_core::ids::ReviewerName;
use signoff_core::machine::{AttemptFailure, Event, Head, JobKind, WorkReport};
use signoff_core::prompt::commit_message;
use signoff_core::task::TaskType;
use signoff_core::wire::LoopFact;
use signoff_core::workflow::Role;

use super::checks::{detected_checks_note, finish_checks};
use super::document::TaskDocument;
use super::finish_review::{finish_review, undo_changes};
use super::parse_output::{agent_summary, denied_tools_note, hung_note, message, parse_output, unsuccessful_end};
use super::prepare::FinishContext;
use super::usage::{unpriced, usage};
use super::{
    AttemptEnd, EngineContext, document, final_message, launch, plan_items, research, reviewer_worktree, sandbox,
};
use crate::artifact;
use crate::attempt_spec::AttemptSpec;
use crate::error::EngineError;
use crate::executor::AttemptResult;
use crate::failpoint;
use crate::git::{GitError, Worktree};
use crate::process::{AttemptDir, ProcessExit, ProcessResult};
use crate::workspace::parallel_fixes;

/// An attempt whose process has ended.
#[derive(Clone, Copy)]
pub struct EndedAttempt<'a> {
    pub ctx: &'a EngineContext,
    pub spec: &'a AttemptSpec,
    pub dir: &'a AttemptDir,
    pub ended: &'a ProcessResult,
}

/// Turns the end of an attempt into an event. Safe to repeat.
pub fn finish(attempt: EndedAttempt<'_>) -> Result<AttemptResult, EngineError> {
    let EndedAttempt { ctx, spec, dir, ended } = attempt;
    if let ProcessExit::OutputLost { message } = &ended.exit {
        return Err(EngineError::io("store the output in", dir.path(), io::Error::other(message.clone())));
    }
    // Read the pushes before `home::clean_up_home` cleans the usage directory.
    let agent_label = spec.launch.reviewer.as_ref().map_or(spec.launch.role.as_str(), |name| name.as_str());
    let pushed = launch::attempted_pushes_note(dir, agent_label);
    parse_output(attempt)?;
    let mut notes: Vec<String> = ctx.worktree_damage(spec).map(str::to_owned).into_iter().collect();
    let imported = if spec.writes() { ctx.import_work(spec) } else { Ok(Vec::new()) };
    let imported = imported.map(|problems| notes.extend(problems));
    notes.extend(sandbox::sandbox_note(&spec.launch, dir));
    notes.extend(pushed);
    notes.extend(hung_note(attempt));
    notes.extend(unknown_prices(ctx, spec, dir));
    let result = if spec.is_planning() {
        // The planner's worktree is not used any more, so errors do not matter.
        ctx.worktree(spec).and_then(|worktree| Ok(worktree.sync_branch()?)).ok();
        let (end, mut facts) = research::finish_planner(attempt, &mut notes)?;
        facts.extend(session_fact(spec, dir));
        AttemptResult { facts, ..AttemptResult::new(end) }
    } else {
        finish_loop_job(attempt, imported, &mut notes)?
    };
    Ok(AttemptResult { usage: usage(ctx.pricing(spec), dir, ended), notes, ..result })
}

/// Finishes a job of a loop. `imported` is whether its commits could be imported.
fn finish_loop_job(
    attempt: EndedAttempt<'_>,
    imported: Result<(), EngineError>,
    notes: &mut Vec<String>,
) -> Result<AttemptResult, EngineError> {
    let EndedAttempt { ctx, spec, dir, ended } = attempt;
    let end = match imported.and_then(|()| finish_job(attempt, notes)) {
        // A git error caused by the agent fails only this attempt.
        Err(EngineError::Git(error)) if error.may_be_caused_by_agent() => {
            if parallel_fixes::is_parallel(spec) {
                parallel_fixes::discard(ctx, spec)?;
            }
            let failure = AttemptFailure::Unusable { message: error.to_string() };
            if is_stopped(&ended.exit) { AttemptEnd::Stopped } else { failed_end(spec, failure) }
        }
        end => end?,
    };
    notes.extend(plan_note(ctx, spec));
    notes.extend(document::work_note(ctx, spec, dir, &end)?);
    let (end, mut facts) = plan_items::with_plan_items(ctx, spec, end, notes)?;
    facts.extend(session_fact(spec, dir));
    let message = message_text(dir);
    facts.extend(final_message::claims_fact(spec, &message, &end));
    facts.extend(document::document_only_base(ctx, spec, &end)?);
    let stops_picking = final_message::stops_picking(spec, &message);
    Ok(AttemptResult { facts, stops_picking, ..AttemptResult::new(end) })
}

/// Notes about models without a known price, each shown once.
fn unknown_prices(ctx: &EngineContext, spec: &AttemptSpec, dir: &AttemptDir) -> Vec<String> {
    let agent = &spec.launch.agent;
    let note_of = |model: &Option<String>| match model {
        Some(model) => {
            format!("the price of {model} is not known, so it counts as $0: set [prices.{model:?}]")
        }
        None => {
            format!("{agent} does not report which model it used, so it counts as $0: set `model` in [agents.{agent}]")
        }
    };
    let notes = unpriced(ctx.pricing(spec), dir);
    notes.iter().map(note_of).filter(|note| ctx.seen_notes.is_new(note)).collect()
}

/// Records the session that the agent can resume.
fn session_fact(spec: &AttemptSpec, dir: &AttemptDir) -> Option<LoopFact> {
    let session = agent_summary(dir)?.session?;
    Some(LoopFact::Session { attempt: spec.job.attempt, session })
}

fn finish_job(attempt: EndedAttempt<'_>, notes: &mut Vec<String>) -> Result<AttemptEnd, EngineError> {
    let EndedAttempt { ctx, spec, dir, .. } = attempt;
    let worktree = ctx.worktree(spec)?;
    match &spec.job.kind {
        JobKind::Review { reviewer, commit, .. } => {
            reviewer_worktree::remove_copy(ctx, spec, reviewer);
            let undone = undo_changes(attempt, &worktree, reviewer, commit, notes)?;
            notes.extend(denied_tools_note(dir, reviewer.as_str()));
            finish_review(attempt, reviewer, commit, undone, notes)
        }
        JobKind::Check => {
            undo_changes(attempt, &worktree, &ReviewerName::new("checks"), &spec.machine.head.commit, notes)?;
            notes.extend(detected_checks_note(ctx, spec));
            Ok(finish_checks(attempt, notes))
        }
        JobKind::Research { number, .. } => research::finish(attempt, *number, notes),
        JobKind::Work { .. } | JobKind::Fix { .. } | JobKind::Combine { .. } | JobKind::Land => {
            finish_work(attempt, &ctx.worktree_with_files(spec)?, notes)
        }
    }
}

/// The end of an attempt that failed.
pub fn failed_end(spec: &AttemptSpec, failure: AttemptFailure) -> AttemptEnd {
    AttemptEnd::event(Event::AttemptFailed { attempt: spec.job.attempt, failure })
}

/// How a process failed; `None` if it succeeded or was stopped by signoff.
pub fn exit_failure(exit: &ProcessExit) -> Option<AttemptFailure> {
    match exit {
        ProcessExit::Code(0) | ProcessExit::Stopped | ProcessExit::Orphaned | ProcessExit::OutputLost { .. } => None,
        ProcessExit::Code(code) => Some(AttemptFailure::Exit { code: *code }),
        ProcessExit::Signal(number) => Some(AttemptFailure::Signal { number: *number }),
        ProcessExit::TimedOut => Some(AttemptFailure::TimedOut),
        ProcessExit::Silent => Some(AttemptFailure::Silent),
        ProcessExit::NotStarted { message, .. } => Some(AttemptFailure::NotStarted { message: message.clone() }),
    }
}

pub(super) fn is_stopped(exit: &ProcessExit) -> bool {
    matches!(exit, ProcessExit::Stopped | ProcessExit::Orphaned)
}

/// Finishes a writer. Its work is committed even if the attempt failed, so that nothing is lost.
fn finish_work(
    attempt: EndedAttempt<'_>,
    worktree: &Worktree,
    notes: &mut Vec<String>,
) -> Result<AttemptEnd, EngineError> {
    let EndedAttempt { ctx, spec, dir, .. } = attempt;
    // A sandboxed agent worked on a detached head.
    worktree.sync_branch()?;
    let ended_badly = match unsuccessful_end(attempt) {
        Some(AttemptEnd::Stopped) => return Ok(AttemptEnd::Stopped),
        end => end,
    };
    failpoint::pass("commit");
    let refused = if ended_badly.is_some() { None } else { document::ensure_written(spec, worktree, dir)? };
    let well = ended_badly.is_none() && refused.is_none();
    let message = if well { success_message(spec) } else { commit_message::unfinished(&spec.task_spec.title) };
    // Commit the document even if its directory is ignored.
    let document = spec.required_document().filter(|_| well).map(PathBuf::from);
    let committed = match worktree.commit_all_with(&message, document.as_deref()) {
        Err(GitError::BranchGone(_)) => {
            ctx.revive_branch(spec)?;
            worktree.commit_all_with(&message, document.as_deref())?
        }
        committed => committed?,
    };
    ctx.read_guards.writer_committed(worktree, &committed)?;
    let head = committed.head;
    failpoint::pass("committed");
    notes.extend(keep_dropped_commits(ctx, spec, &head)?);
    if parallel_fixes::is_parallel(spec) && !parallel_fixes::keep_commits(ctx, spec, &head)? {
        parallel_fixes::discard(ctx, spec)?;
        let message = format!("its commits do not descend from {}", spec.workspace.base);
        return Ok(failed_end(spec, AttemptFailure::Unusable { message }));
    }
    if let Some(end) = ended_badly {
        return Ok(end);
    }
    if let Some(failure) = refused.map_or_else(|| document::uncommitted(ctx, spec, &head), |one| Ok(Some(one)))? {
        return Ok(failed_end(spec, failure));
    }
    let nothing = if is_plan(spec) { !keep_plan(ctx, spec, dir)? } else { nothing_done(ctx, spec, &head)? };
    let message = message_text(dir);
    if nothing && final_message::stops_picking(spec, &message) {
        return Ok(AttemptEnd::work(spec, WorkReport::NoWorkLeft { head }));
    }
    if nothing {
        return Ok(failed_end(spec, AttemptFailure::NothingDone));
    }
    Ok(AttemptEnd::work(spec, final_message::work_report(spec, &message, head)))
}

/// Keeps commits that a writer removed from the branch under a ref, and returns a note with the ref. An agent that
/// amends or rebases does so on purpose; one that resets may lose work.
pub fn keep_dropped_commits(
    ctx: &EngineContext,
    spec: &AttemptSpec,
    head: &Head,
) -> Result<Option<String>, EngineError> {
    let (repository, before) = (&ctx.repository, &spec.machine.head.commit);
    let has_work = *before != head.commit && *before != spec.workspace.base && !parallel_fixes::is_parallel(spec);
    // A commit that git has removed cannot be kept.
    if !has_work || repository.resolve(before.as_str()).is_err() {
        return Ok(None);
    }
    if repository.is_ancestor(before.as_str(), head.commit.as_str())? {
        return Ok(None);
    }
    let name = format!("{}/{}/{}", spec.run, spec.loop_id, spec.job.attempt);
    let kept = repository.keep_abandoned_commit(&name, before)?;
    let branch = &spec.branch;
    Ok(Some(format!(
        "the agent dropped commits from the branch; kept as {kept}: \
         `git log {branch}..{kept}` shows them, `git cherry-pick {branch}..{kept}` brings them back"
    )))
}

/// Whether the result is a plan document instead of changed files.
fn is_plan(spec: &AttemptSpec) -> bool {
    spec.task_spec.kind == TaskType::Plan && matches!(spec.job.kind, JobKind::Work { role: Role::Plan, .. })
}

/// A note with the path of a plan task's plan.
fn plan_note(ctx: &EngineContext, spec: &AttemptSpec) -> Option<String> {
    let plan = artifact::reviews_of_task(&ctx.layout.plans(), spec.task_id.filter(|_| is_plan(spec))?).pop()?;
    let shown = plan.strip_prefix(ctx.repository.root()).unwrap_or(&plan).display();
    Some(format!("the plan is in {shown}"))
}

/// Stores the plan, which is the agent's final message. Returns false if the message is empty.
fn keep_plan(ctx: &EngineContext, spec: &AttemptSpec, dir: &AttemptDir) -> Result<bool, EngineError> {
    let text = message_text(dir);
    let Some(id) = spec.task_id.filter(|_| !text.trim().is_empty()) else { return Ok(false) };
    let plans = ctx.layout.plans();
    artifact::write_plan(&plans, id, spec.started, &text).map_err(|error| EngineError::io("write", &plans, error))?;
    Ok(true)
}

/// Whether the agent claims to be done but changed nothing, and no earlier attempt changed anything either.
fn nothing_done(ctx: &EngineContext, spec: &AttemptSpec, head: &Head) -> Result<bool, EngineError> {
    let same = final_message::is_done_without_changes(spec, head);
    Ok(same && document::other_changes(ctx, spec, &spec.workspace.base, &head.commit)?.is_empty())
}

fn success_message(spec: &AttemptSpec) -> String {
    let title = &spec.task_spec.title;
    let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    match &spec.job.kind {
        JobKind::Fix { .. } | JobKind::Work { role: Role::Fix, .. } => commit_message::feedback(spec.cycle()),
        JobKind::Work { role: Role::Simplify, .. } => commit_message::simplify(title),
        JobKind::Work { .. } => match (spec.document(), spec.item()) {
            (Some(TaskDocument::Design), _) => commit_message::design(title),
            (Some(TaskDocument::Plan), _) => commit_message::plan(title),
            (None, Some((index, item))) => {
                commit_message::item(title, small(index + 1), small(spec.items.len()), &item.title)
            }
            (None, None) => commit_message::initial(title),
        },
        JobKind::Research { .. }
        | JobKind::Review { .. }
        | JobKind::Check
        | JobKind::Combine { .. }
        | JobKind::Land => commit_message::initial(title),
    }
}

/// The agent's final message.
fn message_text(dir: &AttemptDir) -> String {
    String::from_utf8_lossy(&message(dir)).into_owned()
}

/// The agent's stdout, cut one byte above the maximum size of an answer so that oversized answers are detected.
pub(super) fn stdout(dir: &AttemptDir) -> Vec<u8> {
    read_start(&dir.stdout(), MAX_BYTES as u64 + 1)
}

/// Reads the start of a regular file. Agents may have replaced the file; reading a pipe would block.
pub(crate) fn read_start(path: &Path, max_bytes: u64) -> Vec<u8> {
    let mut text = Vec::new();
    if path.metadata().is_ok_and(|file| file.is_file())
        && let Ok(file) = File::open(path)
    {
        file.take(max_bytes).read_to_end(&mut text).ok();
    }
    text
}

/// The final message of an attempt that changed the worktree.
pub fn writers_message(dir: &AttemptDir) -> Option<String> {
    // Only reviewers get a nonce.
    let FinishContext { nonce, is_researcher, .. } = read_finish_context(dir);
    if nonce.is_some() || is_researcher || !dir.result().exists() {
        return None;
    }
    Some(message_text(dir))
}

pub(super) fn read_finish_context(dir: &AttemptDir) -> FinishContext {
    let bytes = fs::read(dir.path().join("memo.json")).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}
