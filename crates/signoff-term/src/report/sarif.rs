//! SARIF 2.1.0: a run for each task, a result for each finding, whatever became of it.
//!
//! What people refuted, deferred or put out of scope is suppressed with their words. What was fixed is absent, compared
//! with what was there before, and passes: services that only list failures do not list it.

use serde_json::{Map, Value, json};
use signoff_core::ids::{FindingId, ReviewerName};
use signoff_core::merge::render::sarif::{document, of_finding, rule, tool};
use signoff_core::review::{Finding, Severity};

use super::{Account, Part, TaskAccount};
use crate::show::{Cycle, FindingLine, LedgerLine};

/// The whole account, with one line break at its end.
pub fn sarif(account: &Account) -> String {
    let parts = account.parts.iter().map(|one| part(account, one));
    document(whole(account).into_iter().chain(account.tasks.iter().map(task)).chain(parts).collect())
}

/// How a run as a whole ended: it may have failed before it had a task.
fn whole(account: &Account) -> Option<Value> {
    let of = account.run.as_ref().filter(|_| account.about.kind == "run")?;
    let (id, title) = (format!("signoff/run-{}/", of.id), account.title());
    let properties = json!({ "run": of.id, "preset": of.preset, "standing": of.standing.text });
    let is_fine = of.standing.kind == "passed";
    Some(run((&id, &title), (&[], &[]), (is_fine, &of.standing.text), properties))
}

fn task(task: &TaskAccount) -> Value {
    let (row, report) = (task.row(), &task.report);
    let id = format!("signoff/task-{}/", row.id);
    let properties = json!({
        "task": row.id,
        "title": row.title,
        "standing": task.standing.text,
        "branch": row.branch,
        "approvedCommit": report.approved_commit,
    });
    let is_fine = matches!(task.standing.kind, "passed" | "open") && !is_unheard(&report.cycles);
    run((&id, &row.title), (&report.ledger, &report.cycles), (is_fine, &task.standing.text), properties)
}

fn part(account: &Account, part: &Part) -> Value {
    let id = format!(
        "signoff/run-{}/{}/",
        account.run.as_ref().map_or(0, |run| run.id),
        part.name.replace('/', "-")
    );
    let is_fine =
        !matches!(part.outcome, None | Some("failed" | "stuck" | "cancelled")) && !is_unheard(&part.cycles);
    let text = part.outcome.unwrap_or("unfinished");
    run((&id, &part.name), (&part.ledger, &part.cycles), (is_fine, text), json!({ "part": part.name }))
}

fn run(
    (id, description): (&str, &str),
    (ledger, cycles): (&[LedgerLine], &[Cycle]),
    (is_fine, standing): (bool, &str),
    properties: Value,
) -> Value {
    let kinds = ledger.iter().map(|line| rule(&line.finding.kind));
    // A service refuses a description without text.
    let description = if description.trim().is_empty() { id } else { description };
    json!({
        "tool": tool(kinds),
        "automationDetails": { "id": id, "description": { "text": description } },
        "invocations": [invocation(cycles, is_fine, standing)],
        "results": ledger.iter().map(|line| result(line, cycles)).collect::<Vec<_>>(),
        "properties": properties,
    })
}

/// Work that was not judged to its end must not read as one without results.
fn invocation(cycles: &[Cycle], is_fine: bool, standing: &str) -> Value {
    let level = if is_fine { "note" } else { "error" };
    let told = json!({ "level": level, "message": { "text": standing } });
    let unheard = unheard(cycles).map(
        |(reviewer, why)| json!({ "level": "error", "message": { "text": format!("{reviewer}: {why}") } }),
    );
    let notifications: Vec<Value> = std::iter::once(told).chain(unheard).collect();
    json!({ "executionSuccessful": is_fine, "toolExecutionNotifications": notifications })
}

/// Who was not understood in the last round.
fn unheard(cycles: &[Cycle]) -> impl Iterator<Item = (&str, &str)> {
    let reviews = cycles.last().into_iter().flat_map(|cycle| &cycle.reviews);
    let unheard = reviews.filter(|review| review.verdict == "inconclusive");
    unheard.map(|review| (review.reviewer.as_str(), review.reason.as_deref().unwrap_or("no answer")))
}

fn is_unheard(cycles: &[Cycle]) -> bool {
    unheard(cycles).next().is_some()
}

fn result(line: &LedgerLine, cycles: &[Cycle]) -> Value {
    let mut result = of_finding(&finding(&line.finding));
    let is_new = line.seen.len() == 1 && is_last(line, cycles);
    let baseline = match line.state {
        "fixed" => "absent",
        _ if is_new => "new",
        _ => "unchanged",
    };
    result.insert("baselineState".into(), json!(baseline));
    if line.state == "fixed" {
        result.insert("kind".into(), json!("pass"));
        result.insert("level".into(), json!("none"));
    }
    if let Some(suppressed) = suppressed(line) {
        result.insert("suppressions".into(), suppressed);
    }
    result.insert("properties".into(), properties(line));
    Value::Object(result)
}

/// Whether it was reported in the last round.
fn is_last(line: &LedgerLine, cycles: &[Cycle]) -> bool {
    let last = cycles.last().map(|cycle| (cycle.pass, cycle.phase.as_str(), cycle.n));
    line.seen
        .last()
        .is_none_or(|seen| last.is_none_or(|last| last == (seen.pass, seen.phase.as_str(), seen.cycle)))
}

fn suppressed(line: &LedgerLine) -> Option<Value> {
    if !matches!(line.state, "refuted" | "deferred" | "out_of_scope") {
        return None;
    }
    let said = line.decisions.last().map(|last| format!("{} by {}: {}", line.state, last.by, last.evidence));
    let justification = said.unwrap_or_else(|| line.state.to_owned());
    Some(json!([{ "kind": "external", "status": "accepted", "justification": justification }]))
}

fn properties(line: &LedgerLine) -> Value {
    let mut all = Map::new();
    all.insert("sources".into(), json!(line.finding.sources));
    all.insert("state".into(), json!(line.state));
    all.insert("blocks".into(), json!(line.blocks));
    all.insert("suggestion".into(), json!(line.finding.suggestion));
    Value::Object(all)
}

/// The finding as the core knows it.
fn finding(line: &FindingLine) -> Finding {
    Finding {
        id: FindingId::new(&line.id),
        sources: line.sources.iter().map(ReviewerName::new).collect(),
        kind: line.kind.clone(),
        severity: Severity::from_word(Some(line.severity)),
        file: line.file.clone(),
        line: line.line,
        description: line.description.clone(),
        requirement: line.requirement.clone(),
        suggestion: line.suggestion.clone(),
    }
}
