//! JUnit XML for continuous integration: a suite per task, with a case for its result, for the last review of each
//! reviewer and for each finding.
//!
//! Blocking findings fail. Inconclusive reviews are errors. Fixed findings, and open ones that do not block, pass.
//! Findings that were refuted, deferred or put out of scope are skipped. A task that is still being worked on is
//! skipped; an unfinished task without a running process is an error.
//!
//! The times of a suite add up to the working time of its agents: the case `end` has the time that is not part of the
//! listed reviews.

use std::borrow::Cow;
use std::io;

use quick_xml::escape::partial_escape;
use quick_xml::events::{BytesDecl, BytesText, Event};
use quick_xml::writer::{ElementWriter, Writer};
use signoff_core::merge::render::plain_text::{escaped_xml, one_line, visible};

use super::{PartSection, ReportDocument, ReportResult, RunSection, TaskSection};
use crate::fit::shorten;
use crate::show::{AttemptRow, Cycle, LedgerLine, ReviewReport};
use signoff_core::ledger::FindingState;
use signoff_core::machine::OutcomeKind;

/// The whole report, with a final line break.
pub fn junit(document: &ReportDocument) -> String {
    let mut suites = Vec::new();
    if let Some(run) = document.run.as_ref().filter(|_| document.subject.kind == "run") {
        let class = format!("signoff.run-{}", run.id);
        suites.push(Suite {
            name: format!("run {}", run.id),
            timestamp: run.started_at.clone(),
            properties: run_properties(run),
            cases: vec![result_case(&class, &run.result, 0)],
        });
    }
    let driven = document.run.as_ref().is_some_and(|run| run.driven);
    suites.extend(document.parts.iter().map(|one| part(one, driven)));
    suites.extend(document.tasks.iter().map(task));
    xml_document(&suites)
}

fn run_properties(run: &RunSection) -> Vec<(&'static str, String)> {
    let mut properties = vec![("preset", run.preset.clone()), ("status", run.status.as_str().to_owned())];
    properties.extend(run.outcome.map(|outcome| ("outcome", outcome.to_owned())));
    properties.extend(run.specification.clone().map(|name| ("specification", name)));
    properties.extend(run.asked.clone().map(|text| ("asked", text)));
    properties
}

fn task(task: &TaskSection) -> Suite {
    let (row, report) = (task.row(), &task.report);
    let class = format!("signoff.task-{}", row.id);
    let judged = review_cases(&class, &report.cycles, &report.ledger);
    let mut cases = vec![result_case(&class, &task.result, remaining_ms(&report.attempts, &judged))];
    cases.extend(judged);
    let some = |name: &'static str, value: &Option<String>| value.clone().map(|value| (name, value));
    let mut properties = vec![("status", row.status.as_str().to_owned()), ("cost_usd", row.cost_usd.to_string())];
    properties.extend(Some(("asked", task.asked.clone())).filter(|(_, asked)| *asked != row.title));
    properties.extend(row.final_verdict.map(|verdict| ("verdict", verdict.as_str().to_owned())));
    properties.extend(row.reason.map(|reason| ("reason", reason.code().to_owned())));
    properties.extend(some("branch", &row.branch));
    // An approval of an older commit is void.
    properties.extend(some("approved_commit", &report.approved_commit).filter(|_| report.voided.is_none()));
    properties.extend(some("voided", &report.voided));
    let name = format!("task {}: {}", row.id, row.title);
    Suite { name, timestamp: row.started_at.clone(), properties, cases }
}

fn part(part: &PartSection, driven: bool) -> Suite {
    let class = format!("signoff.{}", part.name);
    let kind = match part.outcome {
        Some(outcome) if outcome.is_approval() => "passed",
        Some(OutcomeKind::Failed | OutcomeKind::Stuck | OutcomeKind::Cancelled) => "broken",
        Some(_) if part.is_checkpoint && part.ledger.is_empty() => "passed",
        Some(_) => "open",
        None if driven => "unfinished",
        None => "left",
    };
    let why = part.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let text = format!("{}{why}", part.outcome.map_or("unfinished", OutcomeKind::as_str));
    let standing = ReportResult::new(kind, text);
    let judged = review_cases(&class, &part.cycles, &part.ledger);
    let mut cases = vec![result_case(&class, &standing, remaining_ms(&part.attempts, &judged))];
    cases.extend(judged);
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
        "passed" => CaseOutcome::Passed(Some(text)),
        "open" => CaseOutcome::Failed { kind: "not_approved".to_owned(), message: text, body: String::new() },
        "broken" => CaseOutcome::Error { kind: "failed".to_owned(), message: text },
        "left" => CaseOutcome::Error { kind: "unfinished".to_owned(), message: text },
        _ => CaseOutcome::Skipped(text),
    };
    Case { class: class.to_owned(), name: "end".to_owned(), file: None, took_ms, outcome: end }
}

/// The last review of each reviewer at each gate, and every finding.
fn review_cases(class: &str, cycles: &[Cycle], ledger: &[LedgerLine]) -> Vec<Case> {
    let mut last: Vec<&Cycle> = Vec::new();
    for cycle in cycles {
        last.retain(|known| known.phase != cycle.phase);
        last.push(cycle);
    }
    let reviews = last.iter().flat_map(|cycle| cycle.reviews.iter().map(move |one| review(class, cycle, one)));
    reviews.chain(ledger.iter().map(|line| finding(class, line))).collect()
}

fn review(class: &str, cycle: &Cycle, review: &ReviewReport) -> Case {
    let message = review.reason.clone().unwrap_or_else(|| review.verdict.replace('_', " "));
    let end = if review.verdict == "inconclusive" {
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
    let place = match (&finding.file, finding.line) {
        (Some(file), Some(line)) => format!(" {file}:{line}"),
        (Some(file), None) => format!(" {file}"),
        (None, _) => String::new(),
    };
    let message = one_line(&finding.description);
    let settled = line.decisions.last().map(|last| format!(" by {}: {}", last.by, last.evidence));
    let state = format!("{}{}", line.state.words(), settled.unwrap_or_default());
    let end = match line.state {
        FindingState::Refuted | FindingState::Deferred | FindingState::OutOfScope => CaseOutcome::Skipped(state),
        FindingState::Open if line.blocks => CaseOutcome::Failed {
            kind: finding.severity.as_str().to_owned(),
            message: message.clone(),
            body: body(line, &place),
        },
        FindingState::Open => CaseOutcome::Passed(Some("open, below the bar".to_owned())),
        FindingState::Fixed => CaseOutcome::Passed(Some(state)),
    };
    let phase = line.seen.last().map(|seen| format!(".{}", seen.phase)).unwrap_or_default();
    let name = format!("{} [{}]{place} {message}", finding.id, finding.severity);
    Case { class: format!("{class}{phase}"), name, file: finding.file.clone(), took_ms: 0, outcome: end }
}

/// The finding in full.
fn body(line: &LedgerLine, place: &str) -> String {
    let finding = &line.finding;
    let named =
        |name: &str, text: &Option<String>| text.as_ref().map(|text| format!("\n{name}: {text}")).unwrap_or_default();
    format!(
        "[{}]{place}\n{}{}{}\nReported by {}",
        finding.severity,
        finding.description,
        named("Requirement", &finding.requirement),
        named("Suggestion", &finding.suggestion),
        finding.sources.join(", "),
    )
}

/// Maximum length of a name or a message; lists of failures show it in one line.
const NAME: usize = 240;

type XmlWriter = Writer<Vec<u8>>;
type XmlAttributes = Vec<(&'static str, Cow<'static, str>)>;

pub struct Suite {
    pub name: String,
    pub timestamp: Option<String>,
    pub properties: Vec<(&'static str, String)>,
    pub cases: Vec<Case>,
}

pub struct Case {
    pub class: String,
    pub name: String,
    pub file: Option<String>,
    pub took_ms: u64,
    pub outcome: CaseOutcome,
}

/// The result of a case. A passed case may have output.
pub enum CaseOutcome {
    Passed(Option<String>),
    Failed { kind: String, message: String, body: String },
    Error { kind: String, message: String },
    Skipped(String),
}

/// The count attributes of a suite or of the whole document.
#[derive(Default)]
struct SuiteCounts {
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
    took_ms: u64,
}

impl SuiteCounts {
    fn new<'a>(cases: impl Iterator<Item = &'a Case>) -> Self {
        let mut counts = Self::default();
        for case in cases {
            counts.tests += 1;
            counts.took_ms += case.took_ms;
            match case.outcome {
                CaseOutcome::Passed(_) => {}
                CaseOutcome::Failed { .. } => counts.failures += 1,
                CaseOutcome::Error { .. } => counts.errors += 1,
                CaseOutcome::Skipped(_) => counts.skipped += 1,
            }
        }
        counts
    }

    fn attributes(&self) -> XmlAttributes {
        let Self { tests, failures, errors, skipped, took_ms } = self;
        let numbers = [("tests", tests), ("failures", failures), ("errors", errors), ("skipped", skipped)];
        let numbers = numbers.map(|(name, number)| (name, number.to_string().into()));
        numbers.into_iter().chain([("time", seconds(*took_ms).into())]).collect()
    }
}

fn seconds(milliseconds: u64) -> String {
    format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000)
}

/// The document, with a final line break.
fn xml_document(suites: &[Suite]) -> String {
    let mut out = Writer::new_with_indent(Vec::new(), b' ', 2);
    write(&mut out, suites).expect("writing to memory does not fail");
    escaped_xml(&String::from_utf8_lossy(&out.into_inner())) + "\n"
}

fn write(out: &mut XmlWriter, suites: &[Suite]) -> io::Result<()> {
    out.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let counts = SuiteCounts::new(suites.iter().flat_map(|suite| &suite.cases));
    let attributes = [("name", "signoff".into())].into_iter().chain(counts.attributes()).collect();
    element(out, "testsuites", attributes, |out| suites.iter().try_for_each(|one| suite(out, one)))
}

fn suite(out: &mut XmlWriter, suite: &Suite) -> io::Result<()> {
    let counts = SuiteCounts::new(suite.cases.iter());
    let mut attributes: XmlAttributes = vec![("name", attribute(&suite.name))];
    attributes.extend(counts.attributes());
    attributes.extend(suite.timestamp.as_ref().map(|at| ("timestamp", attribute(at))));
    element(out, "testsuite", attributes, |out| {
        if !suite.properties.is_empty() {
            element(out, "properties", Vec::new(), |out| {
                suite.properties.iter().try_for_each(|(name, value)| {
                    start(out, "property", vec![("name", attribute(name)), ("value", attribute(value))])
                        .write_empty()?;
                    Ok(())
                })
            })?;
        }
        suite.cases.iter().try_for_each(|one| case(out, one))
    })
}

fn case(out: &mut XmlWriter, case: &Case) -> io::Result<()> {
    let mut attributes: XmlAttributes = vec![("classname", attribute(&case.class)), ("name", attribute(&case.name))];
    attributes.extend(case.file.as_ref().map(|file| ("file", attribute(file))));
    attributes.push(("time", seconds(case.took_ms).into()));
    match &case.outcome {
        CaseOutcome::Passed(None) => {
            start(out, "testcase", attributes).write_empty()?;
            Ok(())
        }
        CaseOutcome::Passed(Some(text)) => {
            element(out, "testcase", attributes, |out| leaf(out, "system-out", Vec::new(), text))
        }
        CaseOutcome::Failed { kind, message, body } => element(out, "testcase", attributes, |out| {
            leaf(out, "failure", vec![("message", attribute(message)), ("type", attribute(kind))], body)
        }),
        CaseOutcome::Error { kind, message } => element(out, "testcase", attributes, |out| {
            leaf(out, "error", vec![("message", attribute(message)), ("type", attribute(kind))], "")
        }),
        CaseOutcome::Skipped(message) => {
            element(out, "testcase", attributes, |out| leaf(out, "skipped", vec![("message", attribute(message))], ""))
        }
    }
}

fn element(
    out: &mut XmlWriter,
    name: &'static str,
    attributes: XmlAttributes,
    inner: impl FnOnce(&mut XmlWriter) -> io::Result<()>,
) -> io::Result<()> {
    start(out, name, attributes).write_inner_content(inner)?;
    Ok(())
}

fn leaf(out: &mut XmlWriter, name: &'static str, attributes: XmlAttributes, text: &str) -> io::Result<()> {
    let element = start(out, name, attributes);
    if text.is_empty() {
        element.write_empty()?;
    } else {
        let text = sanitize(text);
        element.write_text_content(BytesText::from_escaped(partial_escape(text.as_str())))?;
    }
    Ok(())
}

fn start<'a>(out: &'a mut XmlWriter, name: &'static str, attributes: XmlAttributes) -> ElementWriter<'a, Vec<u8>> {
    out.create_element(name).with_attributes(attributes)
}

/// The text as one line for an attribute.
fn attribute(text: &str) -> Cow<'static, str> {
    Cow::Owned(shorten(one_line(&sanitize(text)), NAME))
}

/// Replaces control characters and noncharacters, which XML cannot represent even as references.
fn sanitize(text: &str) -> String {
    let is_noncharacter = |c: char| matches!(c, '\u{fffe}' | '\u{ffff}');
    visible(text).chars().map(|c| if is_noncharacter(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}
