//! Finishes a reviewer: parses its answer and undoes its changes.

use std::borrow::Cow;
use std::path::Path;

use signoff_core::agent_output::{AgentError, AgentErrorKind};
use signoff_core::checks;
use signoff_core::contract::Contract;
use signoff_core::ids::{Commit, ReviewerName};
use signoff_core::machine::{AttemptFailure, Event, JobKind};
use signoff_core::review::{Review, ReviewedRevision, ReviewerKind, Verdict, Violation, ViolationCode};
use signoff_core::sandbox::SandboxBackend;
use signoff_core::settings::{AgentKind, AssignedReviewer};
use signoff_core::untrusted_config;

use super::checks::{cached_base_checks, parse_check_results};
use super::final_message::{ReviewerAnswer, parse_review};
use super::finish::{EndedAttempt, failed_end, read_finish_context};
use super::parse_output::{agent_summary, message, message_others, unsuccessful_end};
use super::read_only_guard::UndoneChanges;
use super::usage::usage;
use super::{AttemptEnd, EngineContext, reviewer_worktree};
use crate::artifact;
use crate::attempt_spec::AttemptSpec;
use crate::error::EngineError;
use crate::git::{Worktree, WorktreeChange};
use crate::process::AttemptDir;
use crate::reports;

/// Finishes a reviewer. Only its report and its final message are parsed, as its contract says.
pub fn finish_review(
    attempt: EndedAttempt<'_>,
    reviewer: &ReviewerName,
    commit: &Commit,
    undone: UndoneChanges,
    notes: &mut Vec<String>,
) -> Result<AttemptEnd, EngineError> {
    let EndedAttempt { ctx, spec, dir, ended } = attempt;
    if let Some(end) = unsuccessful_end(attempt) {
        return Ok(end);
    }
    let Some(phase_context) = spec.phase_context() else { return Ok(AttemptEnd::Stopped) };
    let assigned = match ctx.settings.reviewer(reviewer, phase_context, spec.agent_index()) {
        Ok(assigned) => assigned,
        Err(error) => return Ok(failed_end(spec, AttemptFailure::NotStarted { message: error.to_string() })),
    };
    let text = message(dir);
    let finish_context = read_finish_context(dir);
    let reviews = ctx.layout.reviews();
    let reported = ctx.reports.read_report(dir, reviewer.as_str(), notes).map(reports::arguments);
    if let Some(error) = missing_tool_error(ctx, &assigned, dir, &text, reported.as_deref()) {
        return Ok(failed_end(spec, AttemptFailure::Agent(error)));
    }
    let raw = artifact::write_raw(&reviews, &spec.artifact(), reviewer, &stored_answer(&text, reported.as_deref()))
        .map_err(|error| EngineError::io("write", &reviews, error))?;
    let others = message_others(dir);
    let unreadable = agent_summary(dir).and_then(|summary| summary.unread_line);
    let answer =
        ReviewerAnswer { text, others, unreadable, reported: reported.as_deref(), nonce: finish_context.nonce };
    let (config_files, with_secrets) = (finish_context.config_files, finish_context.with_secrets);
    let review = if assigned.agent.kind == AgentKind::Checks {
        check_review(attempt, reviewer, assigned.kind, &answer.text, notes)
    } else {
        Ok(parse_review(spec, &assigned, answer, reviewer, commit))
    };
    let review = match review {
        Ok(review) => review,
        Err(failure) => return Ok(failed_end(spec, failure)),
    };
    let copy = reviewer_worktree::path(&spec.workspace.worktree, reviewer).display().to_string();
    let review = review.with_normalized_files(&[copy.as_str()]);
    let review = review.with_normalized_files(&roots(ctx, spec).each_ref().map(String::as_str));
    let review = Review {
        usage: usage(ctx.pricing(spec), dir, ended),
        judged: ReviewedRevision { commit: Some(commit.clone()), diff_digest: finish_context.diff_digest },
        raw: Some(raw),
        ..review
    };
    let review =
        untrusted_config::add_findings(reject_if_changed(ctx, spec, review, &undone), &config_files, &with_secrets);
    Ok(AttemptEnd::event(Event::ReviewArrived { attempt: spec.job.attempt, review: Box::new(review) }))
}

/// The error of a reviewer that can only answer with the tool, and did not find it. A fixer cannot repair that.
fn missing_tool_error(
    ctx: &EngineContext,
    assigned: &AssignedReviewer,
    dir: &AttemptDir,
    text: &[u8],
    reported: Option<&[u8]>,
) -> Option<AgentError> {
    let lacks_report = assigned.contract == Contract::Tool && reported.is_none();
    // If the agent does not say whether it found the tool, check whether it has called the server.
    let found = || agent_summary(dir).map(|summary| summary.reached_report_server.or(ctx.reports.has_called(dir)));
    let is_tool_missing = lacks_report && found()? == Some(false);
    let text = String::from_utf8_lossy(text);
    let message: String = text.trim().chars().take(MAX_MESSAGE_CHARS).collect();
    is_tool_missing.then(|| AgentError::new(AgentErrorKind::ReportServer, message))
}

/// Maximum length of a quoted message, in characters.
const MAX_MESSAGE_CHARS: usize = 300;

/// Path prefixes of files in a review: the worktree first, then the repository, each also with links resolved.
pub(super) fn roots(ctx: &EngineContext, spec: &AttemptSpec) -> [String; 4] {
    let (worktree, root) = (Path::new(&spec.workspace.worktree), ctx.repository.root());
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    [worktree.to_owned(), real(worktree), root.to_owned(), real(root)].map(|path| path.display().to_string())
}

/// The review of the project's checks, without failures that the base has too.
fn check_review(
    EndedAttempt { ctx, spec, dir, .. }: EndedAttempt<'_>,
    reviewer: &ReviewerName,
    kind: ReviewerKind,
    text: &[u8],
    notes: &mut Vec<String>,
) -> Result<Review, AttemptFailure> {
    let ran = parse_check_results(text)?;
    let base = cached_base_checks(ctx, spec.base(), dir).unwrap_or_default();
    let (review, sorted) = checks::review_against_base(reviewer, kind, &ran, &base);
    notes.extend(sorted.note(spec.base().as_str()));
    Ok(review)
}

/// The reviewer's complete answer, as stored for users: its message, then its report.
fn stored_answer<'a>(text: &'a [u8], reported: Option<&[u8]>) -> Cow<'a, [u8]> {
    let Some(reported) = reported else { return Cow::Borrowed(text) };
    let calls = serde_json::Deserializer::from_slice(reported).into_iter::<serde_json::Value>();
    let pretty = calls.map(|call| serde_json::to_string_pretty(&call?)).collect::<Result<Vec<_>, _>>();
    let shown = pretty.map_or_else(|_| reported.to_vec(), |calls| calls.join("\n\n").into_bytes());
    let before = if text.is_empty() { "Reported:\n\n" } else { "\n\nReported:\n\n" };
    Cow::Owned([text, before.as_bytes(), &shown, b"\n"].concat())
}

/// Undoes the changes of an agent that must not change files, and adds a note about them.
pub fn undo_changes(
    EndedAttempt { ctx, spec, .. }: EndedAttempt<'_>,
    worktree: &Worktree,
    name: &ReviewerName,
    commit: &Commit,
    notes: &mut Vec<String>,
) -> Result<UndoneChanges, EngineError> {
    let mut undone = ctx.read_guards.end_read(worktree, commit, name)?;
    let activity = if matches!(spec.job.kind, JobKind::Research { .. }) { "researching" } else { "reviewing" };
    let names: Vec<&str> = undone.by.iter().map(|name| name.as_str()).collect();
    let by = if names.len() > 1 { format!("one of {}", names.join(", ")) } else { names.join("") };
    let (put_back, left): (Vec<&WorktreeChange>, Vec<&WorktreeChange>) =
        undone.changes.iter().partition(|change| change.is_undone());
    if !put_back.is_empty() {
        notes.push(format!("{by} changed files while {activity}; undone: {}", join_changes(&put_back)));
    }
    if !left.is_empty() {
        // The user, or an agent of another task, may have made the change.
        notes.push(format!("{} while {by} was {activity}; not undone", join_changes(&left)));
    }
    // A fully sandboxed agent cannot have made the change, so it reviewed the right files.
    let is_sandboxed = matches!(spec.launch.sandbox, Some(SandboxBackend::Landlock | SandboxBackend::Bubblewrap))
        && ctx.sandbox_support.is_complete();
    if is_sandboxed && put_back.is_empty() && !left.is_empty() {
        undone.is_changed = false;
    }
    Ok(undone)
}

pub fn join_changes(changes: &[&WorktreeChange]) -> String {
    changes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Turns an approval into an inconclusive verdict if files changed during the review: it is not about the commit then.
/// The findings are kept. Checks may change files, which is expected and undone.
fn reject_if_changed(ctx: &EngineContext, spec: &AttemptSpec, review: Review, undone: &UndoneChanges) -> Review {
    let phase_context = spec.phase_context();
    let is_check = |name: &ReviewerName| {
        let assigned = phase_context.and_then(|phase_context| ctx.settings.reviewer(name, phase_context, 0).ok());
        assigned.is_some_and(|one| one.agent.kind == AgentKind::Checks)
    };
    if !undone.is_changed || !review.verdict.approves() || undone.by.iter().any(is_check) {
        return review;
    }
    let message = "files changed during the review, so the approval does not apply to the commit";
    let violation = Violation::new(ViolationCode::CommitMismatch, 0, message);
    Review { verdict: Verdict::Inconclusive(violation.into()), ..review }
}
