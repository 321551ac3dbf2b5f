//! The text of `signoff show ID`.

use jiff::Timestamp;
use signoff_core::machine::ReviewScope;
use signoff_core::merge::SourcedNote;
use signoff_core::review::Finding;
use signoff_core::view::TaskState;
use signoff_core::view::inbox::{NextStep, ProjectSnapshot};

use super::{AttemptRow, ClaimLine, Cycle, LedgerLine, ReviewReport, StateChange, TaskReport};
use crate::fit::{MAX_SENTENCE_WIDTH, align_rows, dollars, format_duration, timestamp, truncate_line};
use crate::status;

/// Title, properties, cycles, findings, attempts, notes, artifacts, question, and the command to type next.
pub fn text(report: &TaskReport, snapshot: &ProjectSnapshot) -> String {
    let mut parts = vec![head(report)];
    parts.extend(report.cycles.iter().map(cycle));
    parts.extend(section("Findings", report.ledger.iter().flat_map(finding).collect()));
    parts.extend(section("Attempts", columns(report.attempts.iter().map(attempt))));
    parts.extend(section("Notes", report.attempts.iter().flat_map(notes).collect()));
    parts.extend(section(
        "Decisions",
        report.decisions.iter().map(|decision| truncate_line(&decision.text(" - "), 400)).collect(),
    ));
    parts.extend(section("Artifacts", report.artifacts.iter().map(|path| truncate_line(path, 400)).collect()));
    parts.extend(report.question.as_ref().map(|question| format!("Question:\n{}", status::question_lines(question))));
    if let Some(voided) = &report.voided {
        parts.push(format!("Not approved any more: {}\n", truncate_line(voided, 400)));
    } else if report.question.is_none() {
        parts.extend(next_command(report, snapshot).map(|next| format!("Next: {next}\n")));
    }
    parts.join("\n")
}

/// The command to type next, without the `signoff show` that was just typed; none for work that has landed.
fn next_command(report: &TaskReport, snapshot: &ProjectSnapshot) -> Option<String> {
    if report.task.state() == TaskState::Landed {
        return None;
    }
    Some(NextStep::for_task(&report.task, snapshot).without_show().to_string())
}

fn section(title: &str, lines: Vec<String>) -> Option<String> {
    if lines.is_empty() {
        return None;
    }
    let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
    Some(format!("{title}:\n{lines}"))
}

fn head(report: &TaskReport) -> String {
    let task = &report.task;
    let mut out = format!("{} {}. {}\n", task.state().mark(), task.id, truncate_line(&task.title, 200));
    let optional = |value: &Option<String>| value.as_deref().map(|value| truncate_line(value, 200));
    let tokens = format!("{} tokens in, {} out", task.input_tokens, task.output_tokens);
    let facts = [
        ("type", Some(task.kind.into_str().to_owned())),
        ("status", Some(status::status_line(task))),
        ("branch", optional(&task.branch)),
        ("base", optional(&task.base)),
        ("worktree", optional(&task.worktree)),
        ("cost", Some(format!("{}, {tokens}", dollars(task.cost_usd, task.cost_is_estimated)))),
        ("time", time(task.started_at.as_deref(), task.ended_at.as_deref())),
    ];
    out.extend(facts.into_iter().filter_map(|(name, value)| Some(format!("  {name:<9} {}\n", value?))));
    out
}

/// `2026-01-29 10:00:00 to 2026-01-29 10:12:30 (12m 30s)`.
fn time(started: Option<&str>, ended: Option<&str>) -> Option<String> {
    let started = started?;
    let Some(ended) = ended else { return Some(format!("since {}", timestamp(started))) };
    let both = started.parse::<Timestamp>().ok().zip(ended.parse::<Timestamp>().ok());
    let passed = both.and_then(|(from, to)| u64::try_from(to.duration_since(from).as_millis()).ok());
    let passed = passed.map(|passed| format!(" ({})", format_duration(passed))).unwrap_or_default();
    Some(format!("{} to {}{passed}", timestamp(started), timestamp(ended)))
}

fn cycle(cycle: &Cycle) -> String {
    let pass = if cycle.pass > 1 { format!(", pass {}", cycle.pass) } else { String::new() };
    let scope = if cycle.scope == ReviewScope::Scoped { ", the fix only" } else { "" };
    let position = format!("{}{pass}{scope}, {}", truncate_line(&cycle.phase, 40), truncate_line(&cycle.commit, 12));
    let mut out = format!("Cycle {} ({position}): {}\n", cycle.n, cycle.verdict.into_str());
    let reviews = columns(cycle.reviews.iter().map(review)).into_iter().chain(cycle.reviews.iter().filter_map(intent));
    let issues =
        (1..).zip(&cycle.merged.issues).map(|(number, merged)| format!("{number}. {}", issue(&merged.finding)));
    let lines = reviews.chain(issues).chain(cycle.merged.minor.iter().map(note));
    out.extend(lines.map(|line| format!("  {line}\n")));
    out
}

/// `note by code: src/auth.rs:12 a shorter name would do`.
fn note(SourcedNote { source, note }: &SourcedNote) -> String {
    let location = source_location(note.file.as_deref(), note.line);
    format!(
        "note by {}:{location} {}",
        truncate_line(source.as_str(), 40),
        truncate_line(&note.description, MAX_SENTENCE_WIDTH)
    )
}

/// `intent by general: a login that keeps its session`, if the reviewer states the intent it assumed.
fn intent(review: &ReviewReport) -> Option<String> {
    let intent = review.interpreted_intent.as_deref()?;
    Some(format!("intent by {}: {}", truncate_line(&review.reviewer, 40), truncate_line(intent, MAX_SENTENCE_WIDTH)))
}

fn review(review: &ReviewReport) -> Vec<String> {
    let why = review.reason.as_deref().or(Some(review.summary.as_str()).filter(|text| !text.is_empty()));
    vec![
        truncate_line(&review.reviewer, 40),
        review.verdict.into_str().to_owned(),
        format_duration(review.duration_ms),
        dollars(review.cost_usd, review.cost_is_estimated),
        why.map(|why| truncate_line(why, MAX_SENTENCE_WIDTH)).unwrap_or_default(),
    ]
}

/// `[critical] src/auth.rs:12 missing input validation`.
fn issue(finding: &Finding) -> String {
    let location = source_location(finding.file.as_deref(), finding.line);
    format!("[{}]{location} {}", finding.severity.into_str(), truncate_line(&finding.description, MAX_SENTENCE_WIDTH))
}

fn source_location(file: Option<&str>, line: Option<u32>) -> String {
    match (file, line) {
        (Some(file), Some(line)) => format!(" {}:{line}", truncate_line(file, 100)),
        (Some(file), None) => format!(" {}", truncate_line(file, 100)),
        (None, Some(line)) => format!(" line {line}"),
        (None, None) => String::new(),
    }
}

/// The finding with its id (the argument of `dispute`), then its history.
fn finding(line: &LedgerLine) -> Vec<String> {
    let found = &line.finding;
    let location = source_location(found.file.as_deref(), found.line);
    let (state, id) = (line.state.into_str(), truncate_line(&found.id, 40));
    let text = truncate_line(&found.description, MAX_SENTENCE_WIDTH);
    let mut lines = vec![format!("{state:<12} {id} [{}]{location} {text}", found.severity)];
    let cycles: Vec<_> =
        line.seen.iter().map(|seen| format!("{} {}", truncate_line(&seen.phase, 40), seen.cycle)).collect();
    let sources = truncate_line(&found.sources.join(", "), MAX_SENTENCE_WIDTH);
    lines.push(format!("             reported by {sources} in {}", cycles.join(", ")));
    lines.extend(line.claims.iter().map(claim));
    lines.extend(line.decisions.iter().map(state_change));
    lines
}

/// A fixer's claim, which does not change the state of the finding.
fn claim(claim: &ClaimLine) -> String {
    let evidence = match truncate_line(&claim.evidence, MAX_SENTENCE_WIDTH) {
        text if text.is_empty() => String::new(),
        text => format!(": {text}"),
    };
    let (attempt, word) = (&claim.attempt, claim.claim.into_str());
    format!("             the fixer ({attempt}) says {word}{evidence}")
}

fn state_change(change: &StateChange) -> String {
    let evidence = truncate_line(&change.evidence, MAX_SENTENCE_WIDTH);
    format!("             {} by {}: {evidence}", change.state.label(), truncate_line(&change.by, 40))
}

fn attempt(attempt: &AttemptRow) -> Vec<String> {
    vec![
        attempt.id.clone(),
        truncate_line(&attempt.role_and_reviewer(), 60),
        truncate_line(&attempt.agent_and_model(), 60),
        timestamp(&attempt.started_at),
        if attempt.outcome.is_some() { format_duration(attempt.duration_ms) } else { "…".to_owned() },
        dollars(attempt.cost_usd, attempt.cost_is_estimated),
        attempt.ending(),
    ]
}

fn notes(attempt: &AttemptRow) -> Vec<String> {
    let hint = attempt.hint.iter().map(|hint| format!("hint: {hint}"));
    let notes = hint.chain(attempt.notes.iter().cloned());
    notes.map(|note| format!("{}  {}", attempt.id, truncate_line(&note, 400))).collect()
}

/// Left-aligned cells in columns.
fn columns(rows: impl Iterator<Item = Vec<String>>) -> Vec<String> {
    align_rows(&rows.collect::<Vec<_>>(), |_| false)
}
