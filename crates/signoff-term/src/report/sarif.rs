//! SARIF 2.1.0: one SARIF run with a result per finding that is not fixed.
//!
//! Findings that were refuted, deferred or put out of scope are suppressed, with the evidence as justification. Fixed
//! findings are omitted: services list every result, even passing ones, and close those that are no longer reported.

use serde_json::{Value, json};
use signoff_core::ledger::FindingState;
use signoff_core::merge::render::sarif;
use signoff_core::review::VerdictKind;

use super::{PartSection, ReportDocument, ReportResultKind, TaskSection};
use crate::show::{Cycle, LedgerLine};

/// The whole report, with a final line break. All tasks are in one SARIF run, because services limit the number of
/// runs.
pub fn sarif(report: &ReportDocument) -> String {
    let sources: Vec<SarifSource> =
        report.tasks.iter().map(task).chain(report.parts.iter().map(|section| part(report, section))).collect();
    let kinds = sources.iter().flat_map(SarifSource::unfixed).map(|line| line.finding.kind.as_str());
    let (id, title) = (category(report), report.title());
    // Services reject an empty description.
    let description = if title.trim().is_empty() { id.clone() } else { title };
    let results = sources.iter().flat_map(|source| source.unfixed().map(|line| result(line, source)));
    sarif::document(&json!({
        "tool": sarif::tool(kinds),
        "automationDetails": { "id": id, "description": { "text": description } },
        "invocations": [invocation(report, &sources)],
        "results": results.collect::<Vec<_>>(),
        "properties": run_properties(report),
    }))
}

/// A source of findings: a task, or a loop without a task.
struct SarifSource<'a> {
    /// Part of the fingerprint, so that equal findings of different tasks stay apart.
    name: String,
    /// The key and value that identify the source in the properties of a result.
    property: (&'static str, Value),
    ledger: &'a [LedgerLine],
    cycles: &'a [Cycle],
    result: &'a str,
    /// Whether all its reviews ended with a verdict.
    is_complete: bool,
}

impl SarifSource<'_> {
    /// The findings that are not fixed.
    fn unfixed(&self) -> impl Iterator<Item = &LedgerLine> {
        self.ledger.iter().filter(|line| line.state != FindingState::Fixed)
    }
}

fn task(task: &TaskSection) -> SarifSource<'_> {
    let (row, report) = (task.row(), &task.report);
    let is_reviewed = task.result.kind.is_answered() && report.voided.is_none();
    SarifSource {
        name: format!("task-{}", row.id),
        property: ("task", json!(row.id)),
        ledger: &report.ledger,
        cycles: &report.cycles,
        result: &task.result.text,
        is_complete: is_reviewed && !has_inconclusive_review(&report.cycles),
    }
}

fn part<'a>(document: &ReportDocument, part: &'a PartSection) -> SarifSource<'a> {
    let run = document.run.as_ref().map_or(0, |run| run.id);
    let is_reviewed = ReportResultKind::for_outcome(part.outcome, false).is_answered();
    SarifSource {
        name: format!("run-{run}/{}", part.name.replace('/', "-")),
        property: ("part", json!(part.name)),
        ledger: &part.ledger,
        cycles: &part.cycles,
        result: part.outcome.map_or("unfinished", <&str>::from),
        is_complete: is_reviewed && !has_inconclusive_review(&part.cycles),
    }
}

fn category(document: &ReportDocument) -> String {
    format!("signoff/{}-{}/", <&str>::from(document.subject.kind), document.subject.id)
}

/// The properties of the SARIF run.
fn run_properties(document: &ReportDocument) -> Value {
    let of_run = document.run.as_ref().filter(|_| document.subject.is_run());
    match (of_run, document.tasks.first()) {
        (Some(run), _) => json!({
            "run": run.id,
            "preset": run.preset,
            "specification": run.specification,
            "asked": run.asked,
            "standing": run.result.text,
            "outcome": run.outcome,
            "branch": run.branch,
            "tasks": document.tasks.iter().map(task_properties).collect::<Vec<_>>(),
        }),
        (None, Some(task)) => task_properties(task),
        (None, None) => json!({}),
    }
}

fn task_properties(task: &TaskSection) -> Value {
    let (row, report) = (task.row(), &task.report);
    let approved = report.approved_commit.as_ref().filter(|_| report.voided.is_none());
    json!({
        "task": row.id,
        "title": row.title,
        "asked": task.asked,
        "standing": task.result.text,
        "branch": row.branch,
        "approvedCommit": approved,
        "voided": report.voided,
    })
}

/// Marks unfinished reviews as unsuccessful, so that they are not read as a run without findings.
fn invocation(document: &ReportDocument, sources: &[SarifSource]) -> Value {
    let result = document.result();
    let is_whole = !document.subject.is_run() || result.kind == ReportResultKind::Passed;
    let is_fine = is_whole && sources.iter().all(|source| source.is_complete);
    let notification = |is_fine: bool, text: &str| sarif::notification(if is_fine { "note" } else { "error" }, text);
    let mut all = vec![notification(is_fine, &result.text)];
    for source in sources {
        // The report of a single task already starts with its result.
        if *source.result != *result.text {
            all.push(notification(source.is_complete, &format!("{}: {}", source.name, source.result)));
        }
        let inconclusive = inconclusive_reviews(source.cycles);
        all.extend(inconclusive.map(|(reviewer, why)| notification(false, &format!("{reviewer}: {why}"))));
    }
    sarif::invocation(is_fine, all)
}

/// The reviewers of the last round whose review is inconclusive, with the reason.
fn inconclusive_reviews(cycles: &[Cycle]) -> impl Iterator<Item = (&str, &str)> {
    let reviews = cycles.last().into_iter().flat_map(|cycle| &cycle.reviews);
    let inconclusive = reviews.filter(|review| review.verdict == VerdictKind::Inconclusive);
    inconclusive.map(|review| (review.reviewer.as_str(), review.reason.as_deref().unwrap_or("no answer")))
}

fn has_inconclusive_review(cycles: &[Cycle]) -> bool {
    inconclusive_reviews(cycles).next().is_some()
}

fn result(line: &LedgerLine, source: &SarifSource) -> Value {
    let finding = &line.finding;
    let level = finding.severity.sarif_level();
    let mut result = sarif::result(&finding.kind, level, &finding.description, finding.file.as_deref(), finding.line);
    let fingerprint = format!("{}/{}", source.name, finding.id);
    result.insert("partialFingerprints".into(), json!({ "signoff/v1": fingerprint }));
    let is_new = line.seen.len() == 1 && is_last(line, source.cycles);
    result.insert("baselineState".into(), json!(if is_new { "new" } else { "unchanged" }));
    result.extend(suppressions(line).map(|suppressed| ("suppressions".into(), suppressed)));
    let (name, value) = &source.property;
    let properties = json!({
        *name: value,
        "sources": finding.sources,
        "state": line.state,
        "blocks": line.blocks,
        "suggestion": finding.suggestion,
    });
    result.insert("properties".into(), properties);
    result.into()
}

/// Whether the last round reported the finding.
fn is_last(line: &LedgerLine, cycles: &[Cycle]) -> bool {
    let last = cycles.last().map(|cycle| (cycle.pass, cycle.phase.as_str(), cycle.n));
    line.seen.last().is_none_or(|seen| last.is_none_or(|last| last == (seen.pass, seen.phase.as_str(), seen.cycle)))
}

fn suppressions(line: &LedgerLine) -> Option<Value> {
    if !line.state.is_settled() {
        return None;
    }
    let decision =
        line.decisions.last().map(|last| format!("{} by {}: {}", line.state.into_str(), last.by, last.evidence));
    let justification = decision.unwrap_or_else(|| line.state.into_str().to_owned());
    Some(json!([{ "kind": "external", "status": "accepted", "justification": justification }]))
}
