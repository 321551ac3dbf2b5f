//! Turns the end of a scripted agent into the result of its attempt, with the same rules as for a real one.

use std::time::Duration;

use signoff_core::ids::{Commit, ReviewerName};
use signoff_core::machine::{
    AttemptFailure, CONFLICT, CheckReport, Event, JobActor, JobKind, LandingReport, WorkReport,
};
use signoff_core::policy::TimeSpan;
use signoff_core::prompt::commit_message;
use signoff_core::rate_limit::{self, ExitOutput, RateLimited};
use signoff_core::review::{Finding, Review, ReviewedRevision, Severity, Usage};
use signoff_core::settings::Settings;
use signoff_core::wire::LoopFact;
use signoff_engine::attempt::final_message::{self, ReviewerAnswer};
use signoff_engine::attempt::{AttemptEnd, exit_failure, failed_end, review_request};
use signoff_engine::attempt_spec::AttemptSpec;
use signoff_engine::executor::AttemptResult;
use signoff_engine::process::ProcessExit;
use signoff_engine::prompt_inputs::{self, PromptInputs};
use signoff_engine::workspace::parallel_fixes;

use super::memory_repository::{MAIN, MemoryMerge, MemoryRepository, RejectedMerge};
use super::memory_workspaces::MemoryWorkspaces;
use super::scripted_call::{ScriptedEnd, nonce};

/// The worktree of an attempt. Parallel fixers have their own.
pub fn worktree(spec: &AttemptSpec) -> String {
    parallel_fixes::with_own_worktree(spec.clone()).workspace.worktree
}

/// The prompt of an attempt, as far as it does not depend on files.
pub fn prompt(spec: &AttemptSpec, settings: &Settings) -> String {
    let inputs = PromptInputs::default();
    let text = match &spec.job.kind {
        JobKind::Review { reviewer, commit, .. } => {
            let assigned =
                spec.job_place().and_then(|place| settings.reviewer_in_turn(reviewer, place, spec.turn()).ok());
            assigned.map(|assigned| {
                let request = review_request(spec, &assigned, commit, Some(nonce(spec)));
                prompt_inputs::reviewer(spec, &inputs, (assigned.contract, &request))
            })
        }
        JobKind::Research { number, .. } => Some(prompt_inputs::researcher(spec, &inputs, *number)),
        JobKind::Work { .. } | JobKind::Fix { .. } => Some(prompt_inputs::writer(spec, &inputs)),
        JobKind::Check | JobKind::Combine { .. } | JobKind::Land => None,
    };
    prompt_inputs::resumed(spec, text.unwrap_or_default())
}

/// How long the agent of a job may take.
pub fn time_limit(spec: &AttemptSpec, settings: &Settings) -> Option<TimeSpan> {
    let place = spec.job_place()?;
    match spec.job.actor() {
        JobActor::Reviewer(name) => settings.reviewer_in_turn(&name, place, spec.turn()).ok().map(|one| one.timeout),
        JobActor::Writer(role) => settings.writer_in_turn(role, place, spec.turn()).ok().map(|one| one.timeout),
        JobActor::Program => None,
    }
}

/// The end of a job that needs no script: checks of a project without checks.
pub fn built_in(spec: &AttemptSpec, settings: &Settings) -> Option<ScriptedEnd> {
    (spec.job.kind == JobKind::Check && settings.checks().is_empty()).then(ScriptedEnd::default)
}

/// The usage that an agent reports.
pub fn usage(reported: &serde_json::Value) -> Usage {
    let number = |name: &str| reported[name].as_f64().unwrap_or_default();
    Usage {
        cost_micro_usd: (number("cost_usd") * 1e6).round() as u64,
        input_tokens: number("input_tokens") as u64,
        output_tokens: number("output_tokens") as u64,
        ..Usage::default()
    }
}

/// Turns the end of an agent into the result of its attempt. Safe to repeat.
pub fn conclude(
    spec: &AttemptSpec,
    end: &ScriptedEnd,
    settings: &Settings,
    workspaces: &MemoryWorkspaces,
) -> AttemptResult {
    if end.exit == ProcessExit::Stopped {
        return AttemptResult::new(AttemptEnd::Stopped);
    }
    let usage = Usage { duration_ms: 1, ..end.usage };
    let stops_picking = final_message::stops_picking(spec, &end.stdout);
    let (end, facts) = conclude_job(spec, end, settings, workspaces);
    AttemptResult { usage, facts, stops_picking, ..AttemptResult::new(end) }
}

fn conclude_job(
    spec: &AttemptSpec,
    end: &ScriptedEnd,
    settings: &Settings,
    workspaces: &MemoryWorkspaces,
) -> (AttemptEnd, Vec<LoopFact>) {
    let failure = failure(spec, end);
    if is_writer(spec) {
        return worked(spec, (end, failure), workspaces);
    }
    if let Some(failure) = failure {
        return (failure, Vec::new());
    }
    if spec.is_planning() {
        return final_message::planner_end(spec, end.stdout.as_bytes());
    }
    let end = match &spec.job.kind {
        JobKind::Review { reviewer, commit, .. } => reviewed(spec, end, settings, (reviewer, commit)),
        JobKind::Research { .. } => researched(spec, end),
        JobKind::Check => event(Event::CheckEnded { attempt: spec.job.attempt, report: CheckReport::NothingToCheck }),
        JobKind::Work { .. } | JobKind::Fix { .. } | JobKind::Combine { .. } | JobKind::Land => {
            unreachable!("writers, landings and merges of fixes are concluded elsewhere")
        }
    };
    (end, Vec::new())
}

/// Whether the attempt changes files.
pub fn is_writer(spec: &AttemptSpec) -> bool {
    matches!(spec.job.kind, JobKind::Work { .. } | JobKind::Fix { .. }) && !spec.is_planning()
}

fn event(event: Event) -> AttemptEnd {
    AttemptEnd::Event(Box::new(event))
}

/// The end of an agent that exited with an error.
fn failure(spec: &AttemptSpec, end: &ScriptedEnd) -> Option<AttemptEnd> {
    let failure = exit_failure(&end.exit)?;
    let output = |code| ExitOutput { code, stdout: end.stdout.as_bytes(), stderr: end.stderr.as_bytes() };
    let code = if let ProcessExit::Code(code) = end.exit { Some(code) } else { None };
    let limited = code.and_then(|code| rate_limit::detect(&output(code)));
    let wanted = end.retry_after_seconds.map(Duration::from_secs_f64);
    Some(match limited {
        Some(RateLimited { retry_after, why }) => {
            AttemptEnd::RateLimited(RateLimited { retry_after: wanted.or(retry_after), why })
        }
        None => failed_end(spec, failure),
    })
}

fn reviewed(
    spec: &AttemptSpec,
    end: &ScriptedEnd,
    settings: &Settings,
    (reviewer, commit): (&ReviewerName, &Commit),
) -> AttemptEnd {
    let place = spec.job_place().expect("a review belongs to a phase");
    let assigned = match settings.reviewer_in_turn(reviewer, place, spec.turn()) {
        Ok(assigned) => assigned,
        Err(error) => return failed_end(spec, AttemptFailure::NotStarted { message: error.to_string() }),
    };
    let answer =
        ReviewerAnswer { text: end.stdout.clone().into_bytes(), nonce: Some(nonce(spec)), ..ReviewerAnswer::default() };
    let review = final_message::parse_review(spec, &assigned, answer, (reviewer, commit));
    let judged = ReviewedRevision { commit: Some(commit.clone()), diff_digest: None };
    let review = Review { usage: Usage { duration_ms: 1, ..end.usage }, judged, ..review };
    event(Event::ReviewArrived { attempt: spec.job.attempt, review: Box::new(review) })
}

fn researched(spec: &AttemptSpec, end: &ScriptedEnd) -> AttemptEnd {
    if end.stdout.trim().is_empty() {
        return failed_end(spec, AttemptFailure::BadAnswer { message: "the report is empty".to_owned() });
    }
    let report = WorkReport::Complete { head: spec.machine.head.clone() };
    event(Event::WorkEnded { attempt: spec.job.attempt, report })
}

/// Commits what a writer left, even if it failed.
fn worked(
    spec: &AttemptSpec,
    (end, failure): (&ScriptedEnd, Option<AttemptEnd>),
    workspaces: &MemoryWorkspaces,
) -> (AttemptEnd, Vec<LoopFact>) {
    let title = &spec.task_spec.title;
    let subject = match (&failure, &spec.job.kind) {
        (Some(_), _) => commit_message::unfinished(title),
        (None, JobKind::Fix { .. }) => commit_message::feedback(spec.cycle()),
        (None, _) => commit_message::initial(title),
    };
    let head = {
        let mut repository = workspaces.repository();
        let (path, apart) = (worktree(spec), parallel_fixes::is_parallel(spec));
        let parent = parent(&repository, spec);
        let commit = repository.commit_worktree(&path, &parent, &subject);
        if !apart {
            repository.move_branch(&branch(spec), &commit, None);
        }
        repository.head(&commit)
    };
    if let Some(failure) = failure {
        return (failure, Vec::new());
    }
    if final_message::is_done_without_changes(spec, &head) {
        return (failed_end(spec, AttemptFailure::NothingDone), Vec::new());
    }
    let report = final_message::work_report(spec, &end.stdout, head);
    let ended = event(Event::WorkEnded { attempt: spec.job.attempt, report });
    let claims = final_message::claims_fact(spec, &end.stdout, &ended);
    (ended, claims.into_iter().collect())
}

/// Makes sure that the worktree of a writer exists.
pub fn ensure_worktree(workspaces: &MemoryWorkspaces, spec: &AttemptSpec) {
    let mut repository = workspaces.repository();
    let parent = parent(&repository, spec);
    repository.ensure_worktree(&worktree(spec), &parent);
}

/// The commit that a writer's work goes on from.
fn parent(repository: &MemoryRepository, spec: &AttemptSpec) -> Commit {
    let tip = if parallel_fixes::is_parallel(spec) { None } else { repository.tip(&branch(spec)) };
    tip.unwrap_or_else(|| spec.machine.head.commit.clone())
}

/// The branch of a loop; of the run for its final review.
fn branch(spec: &AttemptSpec) -> String {
    if spec.branch.is_empty() { spec.run.branch() } else { spec.branch.clone() }
}

/// Lands a loop's work on its target, or sends it back with the conflicts.
pub fn land(workspaces: &MemoryWorkspaces, spec: &AttemptSpec) -> AttemptResult {
    let mut repository = workspaces.repository();
    let tip = repository.head_of(&spec.branch).expect("the branch of the loop");
    if tip != spec.machine.head {
        // A process was killed after it moved the branch.
        return match repository.rejected(&spec.branch) {
            Some(rejected) => sent_back(&repository, spec, rejected),
            None => AttemptResult::new(event(Event::HeadMoved { head: tip })),
        };
    }
    let target = spec.target.clone().unwrap_or_else(|| MAIN.to_owned());
    let onto = repository.ensure_branch(&target, &spec.workspace.base);
    let named = spec.task_id.map_or_else(|| spec.loop_id.to_string(), |task| format!("task {task}"));
    match repository.merge(&onto, &tip.commit, &format!("Merge {named}: {}", spec.task_spec.title)) {
        MemoryMerge::Contained => landed(spec, onto),
        MemoryMerge::Clean(head) => {
            repository.move_branch(&target, &head.commit, None);
            repository.remove_worktree(&spec.workspace.worktree);
            landed(spec, head.commit)
        }
        MemoryMerge::Conflicting { head, files } => {
            let rejected = RejectedMerge { onto, head, conflicts: files };
            repository.reject(&spec.branch, &spec.workspace.worktree, rejected.clone());
            sent_back(&repository, spec, rejected)
        }
    }
}

fn landed(spec: &AttemptSpec, commit: Commit) -> AttemptResult {
    let (attempt, report) = (spec.job.attempt, LandingReport::Landed { commit });
    AttemptResult::new(event(Event::LandingEnded { attempt, report }))
}

fn sent_back(repository: &MemoryRepository, spec: &AttemptSpec, rejected: RejectedMerge) -> AttemptResult {
    let RejectedMerge { onto, head, conflicts } = rejected;
    let findings = conflicts.iter().map(|file| conflict(file)).collect();
    let base = Event::BaseSet { tree: repository.tree(&onto) };
    let placed = LoopFact::WorkspaceCreated { base: onto, worktree: spec.workspace.worktree.clone() };
    let facts = vec![placed, LoopFact::Transitioned(base)];
    let (attempt, report) = (spec.job.attempt, LandingReport::SentBack { head, findings });
    AttemptResult { facts, ..AttemptResult::new(event(Event::LandingEnded { attempt, report })) }
}

fn conflict(file: &str) -> Finding {
    let landing = ReviewerName::new("landing");
    let description = format!("both sides changed {file}");
    Finding { file: Some(file.to_owned()), ..Finding::new(&landing, CONFLICT, Severity::Critical, description) }
}

/// Combines parallel fixes, as far as they do not change the same files.
pub fn combine(workspaces: &MemoryWorkspaces, spec: &AttemptSpec, parts: &[(usize, Commit)]) -> AttemptResult {
    let mut repository = workspaces.repository();
    let (mut head, mut kept) = (repository.head_of(&spec.branch).expect("the branch of the loop"), Vec::new());
    for (number, commit) in parts {
        match repository.merge(&head.commit, commit, &commit_message::feedback(spec.cycle())) {
            MemoryMerge::Contained => kept.push(*number),
            MemoryMerge::Clean(merged) => {
                kept.push(*number);
                head = merged;
            }
            MemoryMerge::Conflicting { .. } => {}
        }
    }
    repository.move_branch(&spec.branch, &head.commit, Some(&spec.workspace.worktree));
    let attempt = spec.job.attempt;
    let combined = if kept.len() == parts.len() {
        Event::FixesCombined { attempt, head }
    } else {
        Event::FixesOverlapped { attempt, kept, head }
    };
    AttemptResult::new(event(combined))
}
