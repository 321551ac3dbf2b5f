//! JUnit XML for continuous integration: a suite per task, with a case for its result, for the last review of each
//! reviewer and for each finding.
//!
//! Blocking findings fail. Inconclusive reviews are errors. Fixed findings, and open ones that do not block, pass.
//! Findings that were refuted, deferred or put out of scope are skipped. A task that is still being worked on is
//! skipped; an unfinished task without a running process is an error.
//!
//! The times of a suite add up to the working time of its agents: the case `end` has the time that is not part of the
//! listed reviews.

use signoff_core::ledger::FindingState;
use signoff_core::merge::render::plain_text::{location, one_line, visible};
use signoff_core::merge::render::xml::{XmlElement, representable};
use signoff_core::review::VerdictKind;

use super::{PartSection, ReportDocument, ReportResult, ReportResultKind, RunSection, TaskSection};
use crate::fit::truncate;
use crate::show::{AttemptRow, Cycle, LedgerLine, ReviewReport};

/// The whole report, with a final line break.
pub fn junit(document: &ReportDocument) -> String {
    let mut suites = Vec::new();
    if let Some(run) = document.run.as_ref().filter(|_| document.subject.is_run()) {
        let class = format!("signoff.run-{}", run.id);
        suites.push(Suite {
            name: format!("run {}", run.id),
            timestamp: run.started_at.clone(),
            properties: run_properties(run),
            cases: vec![result_case(&class, &run.result, 0)],
        });
    }
    let driven = document.run.as_ref().is_some_and(|run| run.driven);
    suites.extend(document.parts.iter().map(|section| part(section, driven)));
    suites.extend(document.tasks.iter().map(task));
    xml_document(&suites)
}

fn run_properties(run: &RunSection) -> Vec<(&'static str, String)> {
    let mut properties = vec![("preset", run.preset.clone()), ("status", run.status.into_str().to_owned())];
    properties.extend(run.outcome.map(|outcome| ("outcome", outcome.into_str().to_owned())));
    properties.extend(run.specification.clone().map(|name| ("specification", name)));
    properties.extend(run.asked.clone().map(|text| ("asked", text)));
    properties
}

fn task(task: &TaskSection) -> Suite {
    let (row, report) = (task.row(), &task.report);
    let class = format!("signoff.task-{}", row.id);
    let reviews = review_cases(&class, &report.cycles, &report.ledger);
    let mut cases = vec![result_case(&class, &task.result, remaining_ms(&report.attempts, &reviews))];
    cases.extend(reviews);
    let property = |name: &'static str, value: &Option<String>| value.clone().map(|value| (name, value));
    let mut properties = vec![("status", row.status.into_str().to_owned()), ("cost_usd", row.cost_usd.to_string())];
    properties.extend(Some(("asked", task.asked.clone())).filter(|(_, asked)| *asked != row.title));
    properties.extend(row.final_verdict.map(|verdict| ("verdict", verdict.into_str().to_owned())));
    properties.extend(row.reason.map(|reason| ("reason", reason.into_str().to_owned())));
    properties.extend(property("branch", &row.branch));
    // An approval of an older commit is void.
    properties.extend(property("approved_commit", &report.approved_commit).filter(|_| report.voided.is_none()));
    properties.extend(property("voided", &report.voided));
    let name = format!("task {}: {}", row.id, row.title);
    Suite { name, timestamp: row.started_at.clone(), properties, cases }
}

fn part(part: &PartSection, driven: bool) -> Suite {
    let class = format!("signoff.{}", part.name);
    let found_nothing = part.is_checkpoint && part.ledger.is_empty();
    let kind = ReportResultKind::for_outcome(part.outcome, driven);
    let kind = if found_nothing && kind == ReportResultKind::Open { ReportResultKind::Passed } else { kind };
    let why = part.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let text = format!("{}{why}", part.outcome.map_or("unfinished", <&str>::from));
    let result = ReportResult::new(kind, text);
    let reviews = review_cases(&class, &part.cycles, &part.ledger);
    let mut cases = vec![result_case(&class, &result, remaining_ms(&part.attempts, &reviews))];
    cases.extend(reviews);
    let timestamp = part.attempts.first().map(|attempt| attempt.started_at.clone());
    Suite { name: part.name.clone(), timestamp, properties: Vec::new(), cases }
}

/// The working time that is not part of the other cases.
fn remaining_ms(attempts: &[AttemptRow], others: &[Case]) -> u64 {
    let worked: u64 = attempts.iter().map(|attempt| attempt.duration_ms).sum();
    worked.saturating_sub(others.iter().map(|case| case.took_ms).sum())
}

fn result_case(class: &str, result: &ReportResult, took_ms: u64) -> Case {
    let text = result.text.to_string();
    let end = match result.kind {
        ReportResultKind::Passed => CaseOutcome::Passed(Some(text)),
        ReportResultKind::Open => {
            CaseOutcome::Failed { kind: "not_approved".to_owned(), message: text, body: String::new() }
        }
        ReportResultKind::Broken => CaseOutcome::Error { kind: "failed".to_owned(), message: text },
        ReportResultKind::Left => CaseOutcome::Error { kind: "unfinished".to_owned(), message: text },
        ReportResultKind::Unfinished => CaseOutcome::Skipped(text),
    };
    Case { class: class.to_owned(), name: "end".to_owned(), file: None, took_ms, outcome: end }
}

/// The last review of each reviewer at each gate, and every finding.
fn review_cases(class: &str, cycles: &[Cycle], ledger: &[LedgerLine]) -> Vec<Case> {
    let mut last: Vec<&Cycle> = Vec::new();
    for cycle in cycles {
        last.retain(|earlier| earlier.phase != cycle.phase);
        last.push(cycle);
    }
    let reviews = last
        .iter()
        .flat_map(|cycle| cycle.reviews.iter().map(move |reviewer_report| review(class, cycle, reviewer_report)));
    reviews.chain(ledger.iter().map(|line| finding(class, line))).collect()
}

fn review(class: &str, cycle: &Cycle, review: &ReviewReport) -> Case {
    let message = review.reason.clone().unwrap_or_else(|| review.verdict.into_str().replace('_', " "));
    let end = if review.verdict == VerdictKind::Inconclusive {
        CaseOutcome::Error { kind: "inconclusive".to_owned(), message }
    } else {
        CaseOutcome::Passed(Some(message))
    };
    let class = format!("{class}.{}", cycle.phase);
    let name = format!("{} {} by {}", cycle.phase, cycle.n, review.reviewer);
    Case { class, name, file: None, took_ms: review.duration_ms, outcome: end }
}

fn finding(class: &str, line: &LedgerLine) -> Case {
    let finding = &line.finding;
    let source_location =
        finding.file.as_ref().map(|file| format!(" {}", location(file, finding.line))).unwrap_or_default();
    let message = one_line(&finding.description);
    let settled = line.decisions.last().map(|last| format!(" by {}: {}", last.by, last.evidence));
    let state = format!("{}{}", line.state.label(), settled.unwrap_or_default());
    let end = match line.state {
        FindingState::Refuted | FindingState::Deferred | FindingState::OutOfScope => CaseOutcome::Skipped(state),
        FindingState::Open if line.blocks => CaseOutcome::Failed {
            kind: finding.severity.into_str().to_owned(),
            message: message.clone(),
            body: body(line, &source_location),
        },
        FindingState::Open => CaseOutcome::Passed(Some("open, below fail_on".to_owned())),
        FindingState::Fixed => CaseOutcome::Passed(Some(state)),
    };
    let phase = line.seen.last().map(|seen| format!(".{}", seen.phase)).unwrap_or_default();
    let name = format!("{} [{}]{source_location} {message}", finding.id, finding.severity);
    Case { class: format!("{class}{phase}"), name, file: finding.file.clone(), took_ms: 0, outcome: end }
}

/// The finding in full.
fn body(line: &LedgerLine, source_location: &str) -> String {
    let finding = &line.finding;
    let named =
        |name: &str, text: &Option<String>| text.as_ref().map(|text| format!("\n{name}: {text}")).unwrap_or_default();
    format!(
        "[{}]{source_location}\n{}{}{}\nReported by {}",
        finding.severity,
        finding.description,
        named("Requirement", &finding.requirement),
        named("Suggestion", &finding.suggestion),
        finding.sources.join(", "),
    )
}

/// Maximum length of a name or a message; lists of failures show it in one line.
const NAME: usize = 240;

struct Suite {
    name: String,
    timestamp: Option<String>,
    properties: Vec<(&'static str, String)>,
    cases: Vec<Case>,
}

struct Case {
    class: String,
    name: String,
    file: Option<String>,
    took_ms: u64,
    outcome: CaseOutcome,
}

/// The result of a case. A passed case may have output.
enum CaseOutcome {
    Passed(Option<String>),
    Failed { kind: String, message: String, body: String },
    Error { kind: String, message: String },
    Skipped(String),
}

/// The document, with a final line break.
fn xml_document(suites: &[Suite]) -> String {
    let root = XmlElement::new("testsuites").attribute("name", "signoff");
    let root = counted(root, suites.iter().flat_map(|suite| &suite.cases)).children(suites.iter().map(suite_element));
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}", root.document())
}

/// Adds the counts and the time of these cases to the element of their suite, or of the whole document.
fn counted<'a>(element: XmlElement, cases: impl Iterator<Item = &'a Case> + Clone) -> XmlElement {
    let count = |is_it: fn(&CaseOutcome) -> bool| cases.clone().filter(|case| is_it(&case.outcome)).count().to_string();
    element
        .attribute("tests", count(|_| true))
        .attribute("failures", count(|end| matches!(end, CaseOutcome::Failed { .. })))
        .attribute("errors", count(|end| matches!(end, CaseOutcome::Error { .. })))
        .attribute("skipped", count(|end| matches!(end, CaseOutcome::Skipped(_))))
        .attribute("time", seconds(cases.map(|case| case.took_ms).sum()))
}

fn seconds(milliseconds: u64) -> String {
    format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000)
}

fn suite_element(suite: &Suite) -> XmlElement {
    let property = |(name, value): &(&'static str, String)| {
        XmlElement::new("property").attribute("name", *name).attribute("value", in_one_line(value))
    };
    let properties = XmlElement::new("properties").children(suite.properties.iter().map(property));
    let properties = Some(properties).filter(|_| !suite.properties.is_empty());
    counted(XmlElement::new("testsuite").attribute("name", in_one_line(&suite.name)), suite.cases.iter())
        .attributes(suite.timestamp.iter().map(|at| ("timestamp", in_one_line(at))))
        .children(properties.into_iter().chain(suite.cases.iter().map(case_element)))
}

fn case_element(case: &Case) -> XmlElement {
    let problem = |name, message| XmlElement::new(name).attribute("message", in_one_line(message));
    XmlElement::new("testcase")
        .attribute("classname", in_one_line(&case.class))
        .attribute("name", in_one_line(&case.name))
        .attributes(case.file.iter().map(|file| ("file", in_one_line(file))))
        .attribute("time", seconds(case.took_ms))
        .children(match &case.outcome {
            CaseOutcome::Passed(text) => text.as_ref().map(|text| with_text(XmlElement::new("system-out"), text)),
            CaseOutcome::Failed { kind, message, body } => {
                Some(with_text(problem("failure", message).attribute("type", in_one_line(kind)), body))
            }
            CaseOutcome::Error { kind, message } => {
                Some(problem("error", message).attribute("type", in_one_line(kind)))
            }
            CaseOutcome::Skipped(message) => Some(problem("skipped", message)),
        })
}

fn with_text(element: XmlElement, text: &str) -> XmlElement {
    if text.is_empty() { element } else { element.text(visible(text)) }
}

fn in_one_line(text: &str) -> String {
    truncate(representable(&one_line(text)), NAME)
}
