//! Turns the end of a scripted agent into the result of its attempt, with the same rules as for a real one.

use std::time::Duration;

use signoff_core::ids::{Commit, ReviewerName};
use signoff_core::machine::{AttemptFailure, CheckReport, Event, JobActor, JobKind, WorkReport};
use signoff_core::policy::TimeSpan;
use signoff_core::prompt::commit_message;
use signoff_core::rate_limit::{self, ExitOutput, RateLimited};
use signoff_core::review::{Review, ReviewedRevision, Usage};
use signoff_core::settings::Settings;
use signoff_core::wire::LoopFact;
use signoff_engine::attempt::final_message::{self, ReviewerAnswer};
use signoff_engine::attempt::{AttemptEnd, exit_failure, failed_end, review_request};
use signoff_engine::attempt_spec::AttemptSpec;
use signoff_engine::executor::AttemptResult;
use signoff_engine::process::ProcessExit;
use signoff_engine::prompt_inputs::{self, PromptInputs};

use super::agent_workspaces::AgentWorkspaces;
use super::scripted_call::{ScriptedEnd, nonce};

/// The prompt of an attempt, as far as it does not depend on files.
pub fn prompt(spec: &AttemptSpec, settings: &Settings) -> String {
    let inputs = PromptInputs::default();
    let text = match &spec.job.kind {
        JobKind::Review { reviewer, commit, .. } => {
            let assigned = spec
                .phase_context()
                .and_then(|phase_context| settings.reviewer(reviewer, phase_context, spec.agent_index()).ok());
            assigned.map(|assigned| {
                let request = review_request(spec, &assigned, commit, Some(nonce(spec)));
                prompt_inputs::reviewer(spec, &inputs, assigned.contract, &request)
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
    let phase_context = spec.phase_context()?;
    match spec.job.actor() {
        JobActor::Reviewer(name) => {
            settings.reviewer(&name, phase_context, spec.agent_index()).ok().map(|one| one.timeout)
        }
        JobActor::Writer(role) => settings.writer(role, phase_context, spec.agent_index()).ok().map(|one| one.timeout),
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
pub fn finish(
    spec: &AttemptSpec,
    end: &ScriptedEnd,
    settings: &Settings,
    workspaces: &dyn AgentWorkspaces,
) -> AttemptResult {
    if end.exit == ProcessExit::Stopped {
        return AttemptResult::new(AttemptEnd::Stopped);
    }
    let usage = Usage { duration_ms: 1, ..end.usage };
    let stops_picking = final_message::stops_picking(spec, &end.stdout);
    let (end, facts) = finish_job(spec, end, settings, workspaces);
    AttemptResult { usage, facts, stops_picking, ..AttemptResult::new(end) }
}

fn finish_job(
    spec: &AttemptSpec,
    end: &ScriptedEnd,
    settings: &Settings,
    workspaces: &dyn AgentWorkspaces,
) -> (AttemptEnd, Vec<LoopFact>) {
    let failure = failure(spec, end);
    if is_writer(spec) {
        return finish_work(spec, end, failure, workspaces);
    }
    if let Some(failure) = failure {
        return (failure, Vec::new());
    }
    if spec.is_planning() {
        return final_message::planner_end(spec, end.stdout.as_bytes());
    }
    let end = match &spec.job.kind {
        JobKind::Review { reviewer, commit, .. } => finish_review(spec, end, settings, &ReviewJob { reviewer, commit }),
        JobKind::Research { .. } => finish_research(spec, end),
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
        Some(RateLimited { retry_after, error }) => {
            AttemptEnd::RateLimited(RateLimited { retry_after: wanted.or(retry_after), error })
        }
        None => failed_end(spec, failure),
    })
}

/// Reviewer and commit of a review job.
struct ReviewJob<'a> {
    reviewer: &'a ReviewerName,
    commit: &'a Commit,
}

fn finish_review(spec: &AttemptSpec, end: &ScriptedEnd, settings: &Settings, job: &ReviewJob<'_>) -> AttemptEnd {
    let ReviewJob { reviewer, commit } = *job;
    let phase_context = spec.phase_context().expect("a review belongs to a phase");
    let assigned = match settings.reviewer(reviewer, phase_context, spec.agent_index()) {
        Ok(assigned) => assigned,
        Err(error) => return failed_end(spec, AttemptFailure::NotStarted { message: error.to_string() }),
    };
    let answer =
        ReviewerAnswer { text: end.stdout.clone().into_bytes(), nonce: Some(nonce(spec)), ..ReviewerAnswer::default() };
    let review = final_message::parse_review(spec, &assigned, answer, reviewer, commit);
    let judged = ReviewedRevision { commit: Some(commit.clone()), diff_digest: None };
    let review = Review { usage: Usage { duration_ms: 1, ..end.usage }, judged, ..review };
    event(Event::ReviewArrived { attempt: spec.job.attempt, review: Box::new(review) })
}

fn finish_research(spec: &AttemptSpec, end: &ScriptedEnd) -> AttemptEnd {
    if end.stdout.trim().is_empty() {
        return failed_end(spec, AttemptFailure::BadAnswer { message: "the report is empty".to_owned() });
    }
    let report = WorkReport::Complete { head: spec.machine.head.clone() };
    event(Event::WorkEnded { attempt: spec.job.attempt, report })
}

/// Commits what a writer left, even if it failed.
fn finish_work(
    spec: &AttemptSpec,
    end: &ScriptedEnd,
    failure: Option<AttemptEnd>,
    workspaces: &dyn AgentWorkspaces,
) -> (AttemptEnd, Vec<LoopFact>) {
    let title = &spec.task_spec.title;
    let subject = match (&failure, &spec.job.kind) {
        (Some(_), _) => commit_message::unfinished(title),
        (None, JobKind::Fix { .. }) => commit_message::feedback(spec.cycle()),
        (None, _) => commit_message::initial(title),
    };
    let head = workspaces.commit(spec, &subject);
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
