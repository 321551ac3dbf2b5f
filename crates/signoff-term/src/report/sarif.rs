//! SARIF 2.1.0: one run with a result for each finding that is there.
//!
//! What people refuted, deferred or put out of scope is suppressed with their words. What was fixed is left out: services
//! list every result they are given, one that passes too, and close what they listed before once it is gone.

use serde_json::{Map, Value, json};
use signoff_core::ids::{FindingId, ReviewerName};
use signoff_core::merge::render::sarif::{document, of_finding, rule, tool};
use signoff_core::review::{Finding, Severity};

use super::{Account, Part, TaskAccount};
use crate::show::{Cycle, FindingLine, LedgerLine};

/// The whole account, with one line break at its end. It is one SARIF run however many tasks there are: services take a
/// few of them only.
pub fn sarif(account: &Account) -> String {
    let sources: Vec<Source> =
        account.tasks.iter().map(task).chain(account.parts.iter().map(|one| part(account, one))).collect();
    let kinds = sources.iter().flat_map(Source::left).map(|line| rule(&line.finding.kind));
    let (id, title) = (category(account), account.title());
    // A service refuses a description without text.
    let description = if title.trim().is_empty() { id.clone() } else { title };
    document(vec![json!({
        "tool": tool(kinds),
        "automationDetails": { "id": id, "description": { "text": description } },
        "invocations": [invocation(account, &sources)],
        "results": sources.iter().flat_map(results).collect::<Vec<_>>(),
        "properties": about(account),
    })])
}

/// Where findings come from: a task, or what served the run as a whole.
struct Source<'a> {
    /// Tells findings of the same words apart that are about different work.
    name: String,
    /// Which it is, for the properties of a result.
    of: (&'static str, Value),
    ledger: &'a [LedgerLine],
    cycles: &'a [Cycle],
    standing: &'a str,
    /// Whether it was judged to its end.
    is_fine: bool,
}

impl Source<'_> {
    /// What was not fixed.
    fn left(&self) -> impl Iterator<Item = &LedgerLine> {
        self.ledger.iter().filter(|line| line.state != "fixed")
    }
}

fn task(task: &TaskAccount) -> Source<'_> {
    let (row, report) = (task.row(), &task.report);
    let is_judged = matches!(task.standing.kind, "passed" | "open") && report.voided.is_none();
    Source {
        name: format!("task-{}", row.id),
        of: ("task", json!(row.id)),
        ledger: &report.ledger,
        cycles: &report.cycles,
        standing: &task.standing.text,
        is_fine: is_judged && !is_unheard(&report.cycles),
    }
}

fn part<'a>(account: &Account, part: &'a Part) -> Source<'a> {
    let run = account.run.as_ref().map_or(0, |run| run.id);
    let is_judged = !matches!(part.outcome, None | Some("failed" | "stuck" | "cancelled"));
    Source {
        name: format!("run-{run}/{}", part.name.replace('/', "-")),
        of: ("part", json!(part.name)),
        ledger: &part.ledger,
        cycles: &part.cycles,
        standing: part.outcome.unwrap_or("unfinished"),
        is_fine: is_judged && !is_unheard(&part.cycles),
    }
}

fn category(account: &Account) -> String {
    format!("signoff/{}-{}/", account.about.kind, account.about.id)
}

/// What is known of the whole.
fn about(account: &Account) -> Value {
    let of_run = account.run.as_ref().filter(|_| account.about.kind == "run");
    match (of_run, account.tasks.first()) {
        (Some(run), _) => json!({
            "run": run.id,
            "preset": run.preset,
            "specification": run.specification,
            "asked": run.asked,
            "standing": run.standing.text,
            "outcome": run.outcome,
            "branch": run.branch,
            "tasks": account.tasks.iter().map(about_task).collect::<Vec<_>>(),
        }),
        (None, Some(task)) => about_task(task),
        (None, None) => json!({}),
    }
}

fn about_task(task: &TaskAccount) -> Value {
    let (row, report) = (task.row(), &task.report);
    let approved = report.approved_commit.as_ref().filter(|_| report.voided.is_none());
    json!({
        "task": row.id,
        "title": row.title,
        "asked": task.asked,
        "standing": task.standing.text,
        "branch": row.branch,
        "approvedCommit": approved,
        "voided": report.voided,
    })
}

/// Work that was not judged to its end must not read as one without results.
fn invocation(account: &Account, sources: &[Source]) -> Value {
    let is_whole = |kind: &str| account.about.kind != "run" || kind == "passed";
    let standing = account.standing();
    let is_fine = is_whole(standing.kind) && sources.iter().all(|source| source.is_fine);
    let told = |is_fine: bool, text: String| json!({ "level": if is_fine { "note" } else { "error" }, "message": { "text": text } });
    let mut all = vec![told(is_fine, standing.text.to_string())];
    for source in sources {
        // A report of a task begins with that.
        if *source.standing != *standing.text {
            all.push(told(source.is_fine, format!("{}: {}", source.name, source.standing)));
        }
        all.extend(unheard(source.cycles).map(|(reviewer, why)| told(false, format!("{reviewer}: {why}"))));
    }
    json!({ "executionSuccessful": is_fine, "toolExecutionNotifications": all })
}

fn results<'a>(source: &'a Source) -> impl Iterator<Item = Value> + 'a {
    source.left().map(|line| result(line, source))
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

fn result(line: &LedgerLine, source: &Source) -> Value {
    let mut result = of_finding(&finding(&line.finding));
    let fingerprint = format!("{}/{}", source.name, line.finding.id);
    result.insert("partialFingerprints".into(), json!({ "signoff/v1": fingerprint }));
    let is_new = line.seen.len() == 1 && is_last(line, source.cycles);
    result.insert("baselineState".into(), json!(if is_new { "new" } else { "unchanged" }));
    if let Some(suppressed) = suppressed(line) {
        result.insert("suppressions".into(), suppressed);
    }
    result.insert("properties".into(), properties(line, source));
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

fn properties(line: &LedgerLine, source: &Source) -> Value {
    let mut all = Map::new();
    all.insert(source.of.0.into(), source.of.1.clone());
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
