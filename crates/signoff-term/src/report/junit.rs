//! JUnit XML, as continuous integration shows it: a suite for each task, a case for its end, for each reviewer's last
//! word and for each finding.
//!
//! What keeps a gate shut fails. What could not be judged is an error. What was fixed, and what is open below the bar,
//! passes. What people refuted, deferred or put out of scope is skipped, and so is what somebody is still at work on; what
//! has no end and nobody is at work on is an error.
//!
//! The times of a suite add up to the work of its agents: `end` takes what the reviews listed beside it did not.

mod xml;

use self::xml::{Case, End, Suite};
use super::{Account, Part, RunAccount, Standing, TaskAccount};
use crate::show::{Attempt, Cycle, LedgerLine, ReviewLine};
use signoff_core::merge::render::plain_text::one_line;

/// The whole account, with one line break at its end.
pub fn junit(account: &Account) -> String {
    let mut suites = Vec::new();
    if let Some(run) = account.run.as_ref().filter(|_| account.about.kind == "run") {
        let class = format!("signoff.run-{}", run.id);
        suites.push(Suite {
            name: format!("run {}", run.id),
            timestamp: run.started_at.clone(),
            properties: of_run(run),
            cases: vec![end(&class, &run.standing, 0)],
        });
    }
    let driven = account.run.as_ref().is_some_and(|run| run.driven);
    suites.extend(account.parts.iter().map(|one| part(one, driven)));
    suites.extend(account.tasks.iter().map(task));
    xml::document(&suites)
}

fn of_run(run: &RunAccount) -> Vec<(&'static str, String)> {
    let mut properties = vec![("preset", run.preset.clone()), ("status", run.status.clone())];
    properties.extend(run.outcome.map(|outcome| ("outcome", outcome.to_owned())));
    properties.extend(run.specification.clone().map(|name| ("specification", name)));
    properties.extend(run.asked.clone().map(|text| ("asked", text)));
    properties
}

fn task(task: &TaskAccount) -> Suite {
    let (row, report) = (task.row(), &task.report);
    let class = format!("signoff.task-{}", row.id);
    let judged = judged(&class, &report.cycles, &report.ledger);
    let mut cases = vec![end(&class, &task.standing, apart(&report.attempts, &judged))];
    cases.extend(judged);
    let some = |name: &'static str, value: &Option<String>| value.clone().map(|value| (name, value));
    let mut properties =
        vec![("status", row.status.word().to_owned()), ("cost_usd", row.cost_usd.to_string())];
    properties.extend(Some(("asked", task.asked.clone())).filter(|(_, asked)| *asked != row.title));
    properties.extend(some("verdict", &row.final_verdict));
    properties.extend(some("reason", &row.reason));
    properties.extend(some("branch", &row.branch));
    // An approval of another commit than the last one approves nothing.
    properties.extend(some("approved_commit", &report.approved_commit).filter(|_| report.voided.is_none()));
    properties.extend(some("voided", &report.voided));
    let name = format!("task {}: {}", row.id, row.title);
    Suite { name, timestamp: row.started_at.clone(), properties, cases }
}

fn part(part: &Part, driven: bool) -> Suite {
    let class = format!("signoff.{}", part.name);
    let kind = match part.outcome {
        Some("approved" | "accepted") => "passed",
        Some("failed" | "stuck" | "cancelled") => "broken",
        Some(_) if part.is_checkpoint && part.ledger.is_empty() => "passed",
        Some(_) => "open",
        None if driven => "unfinished",
        None => "left",
    };
    let why = part.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let text = format!("{}{why}", part.outcome.unwrap_or("unfinished"));
    let standing = Standing::new(kind, text);
    let judged = judged(&class, &part.cycles, &part.ledger);
    let mut cases = vec![end(&class, &standing, apart(&part.attempts, &judged))];
    cases.extend(judged);
    let timestamp = part.attempts.first().map(|attempt| attempt.started_at.clone());
    Suite { name: part.name.clone(), timestamp, properties: Vec::new(), cases }
}

/// How long was worked apart from what the other cases took.
fn apart(attempts: &[Attempt], others: &[Case]) -> u64 {
    let worked: u64 = attempts.iter().map(|attempt| attempt.duration_ms).sum();
    worked.saturating_sub(others.iter().map(|case| case.took_ms).sum())
}

fn end(class: &str, standing: &Standing, took_ms: u64) -> Case {
    let text = standing.text.to_string();
    let end = match standing.kind {
        "passed" => End::Passed(Some(text)),
        "open" => End::Failed { kind: "not_approved".to_owned(), message: text, body: String::new() },
        "broken" => End::Error { kind: "failed".to_owned(), message: text },
        "left" => End::Error { kind: "unfinished".to_owned(), message: text },
        _ => End::Skipped(text),
    };
    Case { class: class.to_owned(), name: "end".to_owned(), file: None, took_ms, end }
}

/// The last word of each reviewer at each gate, and every finding.
fn judged(class: &str, cycles: &[Cycle], ledger: &[LedgerLine]) -> Vec<Case> {
    let mut last: Vec<&Cycle> = Vec::new();
    for cycle in cycles {
        last.retain(|known| known.phase != cycle.phase);
        last.push(cycle);
    }
    let reviews =
        last.iter().flat_map(|cycle| cycle.reviews.iter().map(move |one| review(class, cycle, one)));
    reviews.chain(ledger.iter().map(|line| finding(class, line))).collect()
}

fn review(class: &str, cycle: &Cycle, review: &ReviewLine) -> Case {
    let message = review.reason.clone().unwrap_or_else(|| review.verdict.replace('_', " "));
    let end = if review.verdict == "inconclusive" {
        End::Error { kind: "inconclusive".to_owned(), message }
    } else {
        End::Passed(Some(message))
    };
    let class = format!("{class}.{}", cycle.phase);
    let name = format!("{} {} by {}", cycle.phase, cycle.n, review.reviewer);
    Case { class, name, file: None, took_ms: review.duration_ms, end }
}

fn finding(class: &str, line: &LedgerLine) -> Case {
    let finding = &line.finding;
    let place = match (&finding.file, finding.line) {
        (Some(file), Some(line)) => format!(" {file}:{line}"),
        (Some(file), None) => format!(" {file}"),
        (None, _) => String::new(),
    };
    let message = one_line(&finding.description);
    let settled = line.decisions.last().map(|last| format!(" by {}: {}", last.by, last.evidence));
    let state = format!("{}{}", line.state.replace('_', " "), settled.unwrap_or_default());
    let end = match line.state {
        "refuted" | "deferred" | "out_of_scope" => End::Skipped(state),
        "open" if line.blocks => End::Failed {
            kind: finding.severity.to_owned(),
            message: message.clone(),
            body: body(line, &place),
        },
        "open" => End::Passed(Some("open, below the bar".to_owned())),
        _ => End::Passed(Some(state)),
    };
    let phase = line.seen.last().map(|seen| format!(".{}", seen.phase)).unwrap_or_default();
    let name = format!("{} [{}]{place} {message}", finding.id, finding.severity);
    Case { class: format!("{class}{phase}"), name, file: finding.file.clone(), took_ms: 0, end }
}

/// The finding in full.
fn body(line: &LedgerLine, place: &str) -> String {
    let finding = &line.finding;
    let named = |name: &str, text: &Option<String>| {
        text.as_ref().map(|text| format!("\n{name}: {text}")).unwrap_or_default()
    };
    format!(
        "[{}]{place}\n{}{}{}\nReported by {}",
        finding.severity,
        finding.description,
        named("Requirement", &finding.requirement),
        named("Suggestion", &finding.suggestion),
        finding.sources.join(", "),
    )
}
