//! The parts of SARIF 2.1.0 documents, and the merged review as one, for code scanning services.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{plain_text, reason};
use crate::merge::{MergedIssue, MergedReview, MergedVerdict, SourcedNote};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The rule id of findings without a kind, and of minor notes.
const UNNAMED: &str = "finding";
const NOTE: &str = "note";

/// The file of a finding that names none. An existing file would mark unrelated lines and services reject a
/// directory, so this is a name that no file has.
const PLACEHOLDER_FILE: &str = "no-file-was-named";

pub(super) fn sarif(merged: &MergedReview) -> String {
    let kinds = merged.issues.iter().map(|issue| issue.finding.kind.as_str());
    let results: Vec<Value> = merged.issues.iter().map(issue).chain(merged.minor.iter().map(note)).collect();
    // It marks an inconclusive review as failed, so that it does not look like one without results.
    let missing = merged.results.iter().filter_map(|result| Some(format!("{}: {}", result.reviewer, reason(result)?)));
    let notifications = missing.map(|text| notification("error", &text)).collect();
    document(&json!({
        "tool": tool(kinds.chain(merged.minor.iter().map(|_| NOTE))),
        "invocations": [invocation(merged.overall != MergedVerdict::Inconclusive, notifications)],
        "results": results,
        "properties": { "overallVerdict": merged.overall, "action": merged.action },
    }))
}

fn issue(issue: &MergedIssue) -> Value {
    let finding = &issue.finding;
    let level = finding.severity.sarif_level();
    let mut result = result(&finding.kind, level, &finding.description, finding.file.as_deref(), finding.line);
    result.insert("partialFingerprints".into(), json!({ "signoff/v1": finding.id }));
    let properties = json!({ "sources": finding.sources, "priority": issue.priority, "group": issue.group });
    result.insert("properties".into(), properties);
    result.into()
}

fn note(sourced: &SourcedNote) -> Value {
    let note = &sourced.note;
    let mut result = result(NOTE, "note", &note.description, note.file.as_deref(), note.line);
    result.insert("properties".into(), json!({ "sources": [sourced.source], "priority": 5 }));
    result.into()
}

/// Serializes a document with this run, followed by one line break.
pub fn document(run: &Value) -> String {
    plain_text::json_document(&json!({ "$schema": SCHEMA, "version": "2.1.0", "runs": [run] }))
}

/// This program as the tool, with a rule for each kind of finding.
pub fn tool<'a>(kinds: impl Iterator<Item = &'a str>) -> Value {
    let ids: BTreeSet<&str> = kinds.map(rule).collect();
    let rules: Vec<Value> = ids.into_iter().map(|id| json!({ "id": id })).collect();
    json!({ "driver": { "name": "signoff", "version": env!("CARGO_PKG_VERSION"), "rules": rules } })
}

pub fn invocation(is_successful: bool, notifications: Vec<Value>) -> Value {
    json!({ "executionSuccessful": is_successful, "toolExecutionNotifications": notifications })
}

pub fn notification(level: &str, text: &str) -> Value {
    json!({ "level": level, "message": { "text": text } })
}

/// The rule id for findings of this kind.
fn rule(kind: &str) -> &str {
    if kind.trim().is_empty() { UNNAMED } else { kind }
}

/// The result of a finding of this kind: rule, level, message and location.
pub fn result(kind: &str, level: &str, description: &str, file: Option<&str>, line: Option<u32>) -> Map<String, Value> {
    // Services reject an empty message.
    let text = if description.trim().is_empty() { rule(kind) } else { description };
    let fields = [
        ("ruleId", json!(rule(kind))),
        ("level", json!(level)),
        ("message", json!({ "text": text })),
        ("locations", locations(file, line)),
    ];
    fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// The location of a result. GitHub rejects a file in which a result has none.
fn locations(file: Option<&str>, line: Option<u32>) -> Value {
    let named = file.map(uri).filter(|uri| !uri.is_empty());
    let line = line.filter(|line| *line >= 1 && named.is_some()).or(named.is_none().then_some(1));
    let mut physical = json!({ "artifactLocation": { "uri": named.as_deref().unwrap_or(PLACEHOLDER_FILE) } });
    if let Some(line) = line {
        physical["region"] = json!({ "startLine": line });
    }
    json!([{ "physicalLocation": physical }])
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
