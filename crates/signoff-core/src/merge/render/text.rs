//! Renders the text format, which fixers get.

use std::fmt::Write;

use super::plain_text::{one_line, visible};
use super::{issues_heading, label, location, reason, related, standing_action, title, verdict_word};
use crate::merge::{MergeAction, MergedIssue, MergedReview, SeatResult};
use crate::review::{Confidence, FailThreshold};

pub(super) fn text(merged: &MergedReview, bar: FailThreshold, action: Option<MergeAction>) -> String {
    let mut out = String::from("Review Results:\n");
    for seat in &merged.seats {
        line(&mut out, &format!("  {} Review: {}", one_line(&title(&seat.reviewer)), seat_status(seat)));
    }
    issues(&mut out, merged, bar);
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

fn seat_status(seat: &SeatResult) -> String {
    let mut standing = verdict_word(&seat.verdict).to_owned();
    if seat.confidence != Confidence::Unstated {
        let _ = write!(standing, " ({} confidence)", seat.confidence.as_str());
    }
    if let Some(reason) = reason(seat) {
        let _ = write!(standing, " - {}", one_line(&reason));
    }
    standing
}

fn issues(out: &mut String, merged: &MergedReview, bar: FailThreshold) {
    let Some(heading) = issues_heading(merged, bar) else { return };
    line(out, &format!("\n{heading}:"));
    for (index, issue) in merged.issues.iter().enumerate() {
        out.push('\n');
        item(out, merged, bar, (index + 1, issue));
    }
}

fn item(out: &mut String, merged: &MergedReview, bar: FailThreshold, (number, issue): (usize, &MergedIssue)) {
    let finding = &issue.finding;
    let head = format!("  {number}. ");
    let indent = " ".repeat(head.len());
    let place = location(finding.file.as_deref(), finding.line).map(|place| format!(" {}", one_line(&place)));
    line(out, &format!("{head}[{}]{}", one_line(&label(issue, bar)), place.unwrap_or_default()));
    block(out, &indent, &finding.description);
    if let Some(requirement) = &finding.requirement {
        block(out, &indent, &format!("Requirement: \"{}\"", unquoted(requirement)));
    }
    if let Some(suggestion) = &finding.suggestion {
        block(out, &indent, &format!("Fix: {}", suggestion.trim()));
    }
    if let Some(action) = standing_action(&finding.kind) {
        block(out, &indent, &format!("Action: {action}"));
    }
    if let Some(numbers) = related(merged, issue) {
        block(out, &indent, &format!("Related: {numbers}"));
    }
}

/// Writes every line of a text indented, because only our own text starts at the margin.
fn block(out: &mut String, indent: &str, text: &str) {
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
        let place = location(note.file.as_deref(), note.line).map(|place| format!("{} - ", one_line(&place)));
        let text = visible(note.description.trim()).replace('\n', "\n    ");
        line(out, &format!("  - {}{text}", place.unwrap_or_default()));
    }
}
