//! Renders the Markdown report: the review artifact, or a comment on a pull request.
//!
//! It can be parsed again: our verdict line comes before any text of agents, and no such text can look like one. It
//! is also readable as plain text: text of agents is not escaped. A text that Markdown would change is shown as
//! code.

use super::markdown_text::{code_span, fenced, line_chars, plain_or_code};
use super::plain_text::{one_line, visible};
use super::{issues_heading, label, location, related, required_action, result_status, title};
use crate::merge::{MergeAction, MergedIssue, MergedReview, MergedVerdict, ReviewerResult};
use crate::review::FailThreshold;

pub(super) fn markdown(merged: &MergedReview, threshold: FailThreshold) -> String {
    let mut out = format!("# Review\n\n{}\n\n", verdict(merged));
    merged.results.iter().for_each(|one| result_lines(&mut out, one));
    issues(&mut out, merged, threshold);
    conflicts(&mut out, merged);
    still_open(&mut out, merged);
    notes(&mut out, merged);
    let action = merged.advice().map(|action| format!(" Action: {}.", action.sentence()));
    out.push_str(&format!("\nOverall: {}.{}\n", merged.overall.into_str(), action.unwrap_or_default()));
    out
}

fn result_lines(out: &mut String, result: &ReviewerResult) {
    out.push_str(&format!("- {} Review: {}\n", inline(&title(&result.reviewer)), result_status(result, inline)));
    result.interpreted_intent.iter().for_each(|intent| paragraph(out, "- ".len(), "Interpreted intent: ", intent));
    paragraph(out, "- ".len(), "", &result.summary);
}

/// The verdict under the threshold, in the words of the Markdown contract. If a reviewer has no verdict, the text
/// contains none and nothing similar.
fn verdict(merged: &MergedReview) -> &'static str {
    match (merged.overall, merged.action) {
        (MergedVerdict::Inconclusive, _) => "This review is inconclusive: at least one reviewer gave no usable answer.",
        (MergedVerdict::NeedsDiscussion, _) => "**Verdict: NEEDS_DISCUSSION**",
        (_, MergeAction::FixAndRereview) => "**Verdict: CHANGES_REQUESTED**",
        (_, MergeAction::Proceed | MergeAction::ProceedWithNotes) => "**Verdict: APPROVED**",
    }
}

fn issues(out: &mut String, merged: &MergedReview, threshold: FailThreshold) {
    let Some(heading) = issues_heading(merged, threshold) else { return };
    out.push_str(&format!("\n## {heading}\n"));
    for (index, issue) in merged.issues.iter().enumerate() {
        item(out, merged, threshold, index + 1, issue);
    }
}

fn item(out: &mut String, merged: &MergedReview, threshold: FailThreshold, number: usize, issue: &MergedIssue) {
    let finding = &issue.finding;
    let head = format!("{number}. ");
    let location = location(finding.file.as_deref(), finding.line).map(|location| format!(" {}", code(&location)));
    let kind = Some(inline(&finding.kind)).filter(|kind| !kind.is_empty()).map(|kind| format!(" ({kind})"));
    out.push_str(&format!(
        "\n{head}[{}]{}{}\n",
        inline(&label(issue, threshold)),
        location.unwrap_or_default(),
        kind.unwrap_or_default(),
    ));
    let mut paragraph = |name: &str, text: &str| paragraph(out, head.len(), name, text);
    paragraph("", &finding.description);
    finding.requirement.iter().for_each(|text| paragraph("Requirement: ", text));
    finding.suggestion.iter().for_each(|text| paragraph("Fix: ", text));
    required_action(&finding.kind).into_iter().for_each(|text| paragraph("Action: ", text));
    related(merged, issue).iter().for_each(|numbers| paragraph("Related: ", numbers));
}

fn conflicts(out: &mut String, merged: &MergedReview) {
    if merged.conflicts.is_empty() {
        return;
    }
    out.push_str(&format!("\n## Conflicts ({}), not resolved\n\n", merged.conflicts.len()));
    for conflict in &merged.conflicts {
        let (a, b) = (conflict.a + 1, conflict.b + 1);
        out.push_str(&format!("- {a} and {b}: {}\n", inline(&conflict.about)));
    }
}

fn still_open(out: &mut String, merged: &MergedReview) {
    if merged.still_open.is_empty() {
        return;
    }
    out.push_str(&format!("\n## Still open from earlier reviews ({})\n\n", merged.still_open.len()));
    for finding in &merged.still_open {
        let location =
            location(finding.file.as_deref(), finding.line).map(|location| format!("{} - ", code(&location)));
        let (id, location) = (inline(finding.id.as_str()), location.unwrap_or_default());
        let (label, text) = (finding.severity.title(), inline(&finding.description));
        out.push_str(&format!("- [{label}] {location}{text} ({id})\n"));
    }
}

fn notes(out: &mut String, merged: &MergedReview) {
    if merged.minor.is_empty() {
        return;
    }
    out.push_str(&format!("\n## Minor Notes ({})\n\n", merged.minor.len()));
    for sourced in &merged.minor {
        let note = &sourced.note;
        let location = location(note.file.as_deref(), note.line).map(|location| format!("{} - ", code(&location)));
        let (location, source) = (location.unwrap_or_default(), inline(sourced.source.as_str()));
        out.push_str(&format!("- {location}{} ({source})\n", inline(&note.description)));
    }
}

/// Writes a text of a list item as paragraphs, or as a code block if Markdown would change it.
fn paragraph(out: &mut String, indent: usize, name: &str, text: &str) {
    let text = visible(text);
    if text.lines().map(str::trim).all(is_plain) {
        plain_paragraph(out, indent, name, &text);
    } else {
        code_paragraph(out, indent, name, &text);
    }
}

fn plain_paragraph(out: &mut String, indent: usize, name: &str, text: &str) {
    let indent = " ".repeat(indent);
    let mut name = name;
    let mut after_blank = true;
    for line in text.lines().map(str::trim) {
        if line.is_empty() {
            after_blank = true;
            continue;
        }
        let gap = if after_blank { "\n" } else { "" };
        out.push_str(&format!("{gap}{indent}{name}{line}\n"));
        (name, after_blank) = ("", false);
    }
}

/// Writes the text as an indented code block: Markdown interprets nothing in it.
fn code_paragraph(out: &mut String, indent: usize, name: &str, text: &str) {
    let (indent, deeper) = (" ".repeat(indent), " ".repeat(indent + 4));
    if !name.is_empty() {
        out.push_str(&format!("\n{indent}{}\n", name.trim_end()));
    }
    out.push('\n');
    for line in text.trim_matches('\n').lines().map(str::trim_end) {
        let line = if line.is_empty() { String::new() } else { format!("{deeper}{line}") };
        out.push_str(&format!("{line}\n"));
    }
}

/// Formats a path as code.
fn code(location: &str) -> String {
    code_span(&one_line(location))
}

/// Formats text on one line, as code if Markdown would change it.
fn inline(text: &str) -> String {
    plain_or_code(&one_line(text), is_plain)
}

/// Whether Markdown shows a line unchanged, and no part of it looks like our verdict line without Markdown.
fn is_plain(line: &str) -> bool {
    !line_chars(line).any(|one| {
        let opens_line = one.before.is_empty() && matches!(one.c, '#' | '>');
        one.is_syntax || opens_line || (one.c == ':' && ends_with_verdict(one.before))
    })
}

fn ends_with_verdict(text: &str) -> bool {
    let tail = text.len().saturating_sub("verdict".len());
    text.as_bytes()[tail..].eq_ignore_ascii_case(b"verdict")
}

/// Renders an answer that could not be parsed inside a fence that no line of it can close. The lines around it
/// prevent that the fence contains only a machine-readable answer, which would be parsed as an answer.
pub(super) fn answer(reviewer: &str, text: &str, artifact: &str) -> String {
    const MAX_ANSWER_BYTES: usize = 16 * 1024;
    let text = visible(text);
    let end = (0..=text.len().min(MAX_ANSWER_BYTES)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    let shown = &text[..end];
    let name = one_line(reviewer);
    let cut = format!("[cut: the whole answer is in {}]\n", one_line(artifact));
    let cut = if shown.len() < text.len() { cut } else { String::new() };
    let marked = format!("--- answer of {name} ---\n{}\n{cut}--- end of the answer ---", shown.trim_end());
    format!("\n## Answer of {}, not understood\n\n{}", inline(reviewer), fenced(&marked))
}
