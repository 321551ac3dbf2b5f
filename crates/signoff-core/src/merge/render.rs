//! Renders the merged review for people and programs.
//!
//! Text of agents is data in every format: it cannot end an element, open a fence, move the cursor or look like one
//! of our verdicts.

mod markdown;
pub mod markdown_text;
pub mod plain_text;
pub mod sarif;
pub mod xml;

use std::fmt::Write;

use serde_json::{Value, json};

use plain_text::{one_line, visible};

use super::{MergeAction, MergedIssue, MergedReview, ReviewerResult};
use crate::ids::{FindingId, ReviewerName};
use crate::review::{Confidence, FailThreshold, Inconclusive, Verdict};

/// The output formats.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::VariantArray,
    strum::VariantNames,
)]
#[strum(const_into_str, serialize_all = "lowercase")]
pub enum ReviewFormat {
    Text,
    Xml,
    Json,
    Markdown,
    Sarif,
}

/// Renders a merged review under the threshold it was merged with. Every format ends with one line break.
pub fn render(merged: &MergedReview, threshold: FailThreshold, format: ReviewFormat) -> String {
    match format {
        ReviewFormat::Text => render_text(merged, threshold, merged.advice()),
        ReviewFormat::Xml => xml::xml(merged),
        ReviewFormat::Json => plain_text::json_document(merged),
        ReviewFormat::Markdown => markdown::markdown(merged, threshold),
        ReviewFormat::Sarif => sarif::sarif(merged),
    }
}

/// The merged review as JSON, version 1.
pub fn merged_json(merged: &MergedReview) -> Value {
    let ids = |issues: &[usize]| -> Vec<&FindingId> {
        issues.iter().map(|&index| &merged.issues[index].finding.id).collect()
    };
    let groups = merged.groups.iter().map(|group| json!({ "issues": ids(&group.issues) }));
    let conflicts = merged.conflicts.iter();
    let conflicts = conflicts.map(|one| json!({ "issues": ids(&[one.a, one.b]), "about": one.about }));
    json!({
        "version": 1,
        "overall_verdict": merged.overall,
        "action": merged.action,
        "reviews": merged.results.iter().map(result_json).collect::<Vec<_>>(),
        "issues": merged.issues.iter().map(issue_json).collect::<Vec<_>>(),
        "groups": groups.collect::<Vec<_>>(),
        "minor": merged.minor,
        "conflicts": conflicts.collect::<Vec<_>>(),
    })
}

fn result_json(result: &ReviewerResult) -> Value {
    json!({
        "reviewer": result.reviewer,
        "role": result.kind,
        "verdict": result.verdict.into_str(),
        "confidence": result.confidence,
        "summary": result.summary,
        "reason": reason(result),
    })
}

fn issue_json(issue: &MergedIssue) -> Value {
    let finding = &issue.finding;
    json!({
        "id": finding.id,
        "aliases": issue.aliases,
        "sources": finding.sources,
        "priority": issue.priority,
        "kind": finding.kind,
        "severity": finding.severity,
        "file": finding.file,
        "line": finding.line,
        "description": finding.description,
        "requirement": finding.requirement,
        "suggestion": finding.suggestion,
        "group": issue.group,
    })
}

/// Renders an answer that could not be parsed, as a section of an artifact. `artifact` names the file with the full
/// answer.
pub fn unparsed_answer(reviewer: &ReviewerName, text: &str, artifact: &str) -> String {
    markdown::answer(reviewer.as_str(), text, artifact)
}

/// The verdict of a reviewer in the words of the XML contract, plus two words that it lacks.
fn verdict_word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Approved => "APPROVED",
        Verdict::ApprovedWithMinor => "APPROVED_WITH_MINOR",
        Verdict::ChangesRequested => "ISSUES",
        Verdict::NeedsDiscussion => "NEEDS_DISCUSSION",
        Verdict::Inconclusive(_) => "INCONCLUSIVE",
    }
}

/// Why a reviewer has no verdict.
fn reason(result: &ReviewerResult) -> Option<String> {
    match &result.verdict {
        Verdict::Inconclusive(Inconclusive::Missing(why)) if why.is_empty() => Some("no answer".to_owned()),
        Verdict::Inconclusive(Inconclusive::Missing(why)) => Some(format!("no answer: {why}")),
        Verdict::Inconclusive(
            Inconclusive::Unparsable(violation)
            | Inconclusive::Contradictory(violation)
            | Inconclusive::Truncated(violation)
            | Inconclusive::Unbound(violation),
        ) => Some(format!("{}: {violation}", violation.code)),
        Verdict::Approved | Verdict::ApprovedWithMinor | Verdict::ChangesRequested | Verdict::NeedsDiscussion => None,
    }
}

/// A reviewer's name as a title: `spec` is `Spec`.
fn title(name: &ReviewerName) -> String {
    let mut chars = name.as_str().chars();
    chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect()
}

/// `Spec Critical`, followed by the other sources and whether it is below the threshold.
fn label(issue: &MergedIssue, threshold: FailThreshold) -> String {
    let severity = issue.finding.severity.title();
    let mut sources = issue.finding.sources.iter();
    let lead = sources.next().map(title).unwrap_or_default();
    let also: String = sources.map(|name| format!(", also {}", title(name))).collect();
    let below = if issue.is_below(threshold) { ", below the threshold" } else { "" };
    format!("{lead} {severity}{also}{below}")
}

/// `file:line`, or the part of it that is known.
fn location(file: Option<&str>, line: Option<u32>) -> Option<String> {
    let in_file = file.map(|file| plain_text::location(file, line));
    in_file.or_else(|| line.map(|line| format!("line {line}")))
}

/// The heading of the issue list: the number of issues to fix and the number below the threshold.
fn issues_heading(merged: &MergedReview, threshold: FailThreshold) -> Option<String> {
    let to_fix = merged.blocking(threshold).count();
    match (to_fix, merged.issues.len() - to_fix) {
        (0, 0) => None,
        (0, below) => Some(format!("Issues Below the Threshold ({below})")),
        (to_fix, 0) => Some(format!("Issues to Fix ({to_fix})")),
        (to_fix, below) => Some(format!("Issues to Fix ({to_fix}), Below the Threshold ({below})")),
    }
}

/// The fixed action for issues of this kind.
fn required_action(kind: &str) -> Option<&'static str> {
    (kind == "extra_feature").then_some("Remove or get approval to add")
}

/// The numbers of a group's issues as shown, which are always consecutive.
fn related(merged: &MergedReview, issue: &MergedIssue) -> Option<String> {
    let group = merged.groups.get(issue.group?)?;
    Some(format!("{}-{}", group.issues.first()? + 1, group.issues.last()? + 1))
}

/// Renders the text format, which fixers get, with the given action if it is known.
pub fn render_text(merged: &MergedReview, threshold: FailThreshold, action: Option<MergeAction>) -> String {
    let mut out = String::from("Review Results:\n");
    for result in &merged.results {
        line(
            &mut out,
            &format!("  {} Review: {}", one_line(&title(&result.reviewer)), result_status(result, one_line)),
        );
    }
    issues(&mut out, merged, threshold);
    conflicts(&mut out, merged);
    notes(&mut out, merged);
    if let Some(action) = action {
        line(&mut out, &format!("\nAction: {}", action.sentence()));
    }
    out
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

/// The verdict, the confidence and why there is no verdict; `clean` makes text of agents safe in the format.
fn result_status(result: &ReviewerResult, clean: fn(&str) -> String) -> String {
    let mut status = verdict_word(&result.verdict).to_owned();
    if result.confidence != Confidence::Unstated {
        let _ = write!(status, " ({} confidence)", result.confidence.into_str());
    }
    if let Some(reason) = reason(result) {
        let _ = write!(status, " - {}", clean(&reason));
    }
    status
}

fn issues(out: &mut String, merged: &MergedReview, threshold: FailThreshold) {
    let Some(heading) = issues_heading(merged, threshold) else { return };
    line(out, &format!("\n{heading}:"));
    for (index, issue) in merged.issues.iter().enumerate() {
        out.push('\n');
        item(out, merged, threshold, index + 1, issue);
    }
}

fn item(out: &mut String, merged: &MergedReview, threshold: FailThreshold, number: usize, issue: &MergedIssue) {
    let finding = &issue.finding;
    let head = format!("  {number}. ");
    let indent = " ".repeat(head.len());
    let location = location(finding.file.as_deref(), finding.line).map(|location| format!(" {}", one_line(&location)));
    line(out, &format!("{head}[{}]{}", one_line(&label(issue, threshold)), location.unwrap_or_default()));
    indented(out, &indent, &finding.description);
    if let Some(requirement) = &finding.requirement {
        indented(out, &indent, &format!("Requirement: \"{}\"", unquoted(requirement)));
    }
    if let Some(suggestion) = &finding.suggestion {
        indented(out, &indent, &format!("Fix: {}", suggestion.trim()));
    }
    if let Some(action) = required_action(&finding.kind) {
        indented(out, &indent, &format!("Action: {action}"));
    }
    if let Some(numbers) = related(merged, issue) {
        indented(out, &indent, &format!("Related: {numbers}"));
    }
}

/// Writes every line of a text indented, because only our own text starts at the margin.
fn indented(out: &mut String, indent: &str, text: &str) {
    for each in visible(text.trim()).lines() {
        line(out, format!("{indent}{each}").trim_end());
    }
}

fn unquoted(text: &str) -> &str {
    let text = text.trim();
    text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text)
}

fn conflicts(out: &mut String, merged: &MergedReview) {
    if merged.conflicts.is_empty() {
        return;
    }
    line(out, &format!("\nConflicts ({}), not resolved:", merged.conflicts.len()));
    for conflict in &merged.conflicts {
        let (a, b) = (conflict.a + 1, conflict.b + 1);
        line(out, &format!("  - {a} and {b} - {}", one_line(&conflict.about)));
    }
}

fn notes(out: &mut String, merged: &MergedReview) {
    if merged.minor.is_empty() {
        return;
    }
    line(out, &format!("\nMinor Notes ({}):", merged.minor.len()));
    for sourced in &merged.minor {
        let note = &sourced.note;
        let location = location(note.file.as_deref(), note.line).map(|location| format!("{} - ", one_line(&location)));
        let text = visible(note.description.trim()).replace('\n', "\n    ");
        line(out, &format!("  - {}{text}", location.unwrap_or_default()));
    }
}
