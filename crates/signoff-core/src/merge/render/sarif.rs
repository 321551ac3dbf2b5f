//! Renders SARIF 2.1.0 for code scanning services.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{plain_text, reason};
use crate::merge::{MergedIssue, MergedReview, Overall, SourcedNote};
use crate::review::Finding;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The rule id of findings without a kind, and of minor notes.
const UNNAMED: &str = "finding";
const NOTE: &str = "note";

/// The file of a finding that names none. An existing file would mark unrelated lines and services reject a
/// directory, so this is a name that no file has.
const PLACEHOLDER_FILE: &str = "no-file-was-named";

pub(super) fn sarif(merged: &MergedReview) -> String {
    document(vec![run(merged)])
}

/// Serializes a document with these runs, followed by one line break.
pub fn document(runs: Vec<Value>) -> String {
    let document = json!({ "$schema": SCHEMA, "version": "2.1.0", "runs": runs });
    let sarif = serde_json::to_string_pretty(&document).expect("a JSON value always serialises");
    let mut sarif = plain_text::escaped_json(&sarif);
    sarif.push('\n');
    sarif
}

fn run(merged: &MergedReview) -> Value {
    let results: Vec<Value> = merged.issues.iter().map(issue).chain(merged.minor.iter().map(note)).collect();
    let kinds = merged.issues.iter().map(|issue| issue.finding.kind.as_str());
    json!({
        "tool": tool(kinds.map(rule).chain(merged.minor.iter().map(|_| NOTE))),
        "invocations": [invocation(merged)],
        "results": results,
        "properties": { "overallVerdict": merged.overall, "action": merged.action },
    })
}

/// The invocation. It marks an inconclusive review as failed, so that it does not look like one without results.
fn invocation(merged: &MergedReview) -> Value {
    let notifications: Vec<Value> = merged
        .seats
        .iter()
        .filter_map(|seat| {
            let text = format!("{}: {}", seat.reviewer, reason(seat)?);
            Some(json!({ "level": "error", "message": { "text": text } }))
        })
        .collect();
    json!({
        "executionSuccessful": merged.overall != Overall::Inconclusive,
        "toolExecutionNotifications": notifications,
    })
}

/// This program as the tool, with every rule that a result refers to.
pub fn tool<'a>(rules: impl Iterator<Item = &'a str>) -> Value {
    let ids: BTreeSet<&str> = rules.collect();
    let rules: Vec<Value> = ids.into_iter().map(|id| json!({ "id": id })).collect();
    json!({ "driver": { "name": "signoff", "version": env!("CARGO_PKG_VERSION"), "rules": rules } })
}

/// The rule id for findings of this kind.
pub fn rule(kind: &str) -> &str {
    if kind.trim().is_empty() { UNNAMED } else { kind }
}

fn issue(issue: &MergedIssue) -> Value {
    let finding = &issue.finding;
    let mut result = finding_result(finding);
    let properties = json!({ "sources": finding.sources, "priority": issue.priority, "group": issue.group });
    result.insert("properties".into(), properties);
    result.into()
}

/// The result of a finding: rule, level, message, location and fingerprint.
pub fn finding_result(finding: &Finding) -> Map<String, Value> {
    let mut result = result(rule(&finding.kind), finding.severity.sarif_level(), &finding.description);
    result.extend([locations(finding.file.as_deref(), finding.line)]);
    result.insert("partialFingerprints".into(), json!({ "signoff/v1": finding.id }));
    result
}

fn note(sourced: &SourcedNote) -> Value {
    let note = &sourced.note;
    let mut result = result(NOTE, "note", &note.description);
    result.extend([locations(note.file.as_deref(), note.line)]);
    result.insert("properties".into(), json!({ "sources": [sourced.source], "priority": 5 }));
    result.into()
}

fn result(rule: &str, level: &str, description: &str) -> Map<String, Value> {
    // Services reject an empty message.
    let text = if description.trim().is_empty() { rule } else { description };
    let fields = [("ruleId", json!(rule)), ("level", json!(level)), ("message", json!({ "text": text }))];
    fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// The location of a result. GitHub rejects a file in which a result has none.
fn locations(file: Option<&str>, line: Option<u32>) -> (String, Value) {
    let named = file.map(uri).filter(|uri| !uri.is_empty());
    let line = line.filter(|line| *line >= 1 && named.is_some()).or(named.is_none().then_some(1));
    let mut physical = json!({ "artifactLocation": { "uri": named.as_deref().unwrap_or(PLACEHOLDER_FILE) } });
    if let Some(line) = line {
        physical["region"] = json!({ "startLine": line });
    }
    ("locations".to_owned(), json!([{ "physicalLocation": physical }]))
}

/// A path as a URI reference. Relative paths stay relative to the repository.
fn uri(file: &str) -> String {
    let path = file.replace('\\', "/");
    let path = path.strip_prefix("./").unwrap_or(&path);
    let scheme = if path.starts_with('/') { "file://" } else { "" };
    path.bytes().fold(scheme.to_owned(), |mut uri, byte| {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
        uri
    })
}
