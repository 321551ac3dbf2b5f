//! A report for people: the review artifact, a comment on a pull request.
//!
//! It can be read back: the verdict line is ours, stands before anything an agent wrote, and nothing an
//! agent wrote can look like one. It can be read as plain text too: what agents wrote is not escaped. A text
//! that Markdown would make something of stands as code.

use super::plain_text::{one_line, visible};
use super::{
    issues_heading, label, location, reason, related, severity, standing_action, title, verdict_word,
};
use crate::merge::{Action, Issue, Merged, Overall, SeatResult};
use crate::review::{Bar, Confidence};

pub(super) fn markdown(merged: &Merged, bar: Bar) -> String {
    let mut out = format!("# Review\n\n{}\n\n", verdict(merged));
    merged.seats.iter().for_each(|one| seat(&mut out, one));
    issues(&mut out, merged, bar);
    conflicts(&mut out, merged);
    still_open(&mut out, merged);
    notes(&mut out, merged);
    let action = merged.advice().map(|action| format!(" Action: {}.", action.sentence()));
    out.push_str(&format!("\nOverall: {}.{}\n", merged.overall.word(), action.unwrap_or_default()));
    out
}

fn seat(out: &mut String, seat: &SeatResult) {
    out.push_str(&format!("- {} Review: {}", inline(&title(&seat.reviewer)), verdict_word(&seat.verdict)));
    if seat.confidence != Confidence::Unstated {
        out.push_str(&format!(" ({} confidence)", seat.confidence.word()));
    }
    out.push_str(&reason(seat).map(|reason| format!(" - {}", inline(&reason))).unwrap_or_default());
    out.push('\n');
    seat.interpreted_intent
        .iter()
        .for_each(|intent| paragraph(out, "- ".len(), "Interpreted intent: ", intent));
    paragraph(out, "- ".len(), "", &seat.summary);
}

/// What the bar makes of the panel, in the words of the markdown contract. Without a verdict of every
/// reviewer there is none, and nothing that could be taken for one.
fn verdict(merged: &Merged) -> &'static str {
    match (merged.overall, merged.action) {
        (Overall::Inconclusive, _) => {
            "This review is inconclusive: at least one reviewer gave no usable answer."
        }
        (Overall::NeedsDiscussion, _) => "**Verdict: NEEDS_DISCUSSION**",
        (_, Action::FixAndRereview) => "**Verdict: CHANGES_REQUESTED**",
        (_, Action::Proceed | Action::ProceedWithNotes) => "**Verdict: APPROVED**",
    }
}

fn issues(out: &mut String, merged: &Merged, bar: Bar) {
    let Some(heading) = issues_heading(merged, bar) else { return };
    out.push_str(&format!("\n## {heading}\n"));
    for (index, issue) in merged.issues.iter().enumerate() {
        item(out, merged, bar, (index + 1, issue));
    }
}

fn item(out: &mut String, merged: &Merged, bar: Bar, (number, issue): (usize, &Issue)) {
    let finding = &issue.finding;
    let head = format!("{number}. ");
    let place = location(finding.file.as_deref(), finding.line).map(|place| format!(" {}", code(&place)));
    let kind = Some(inline(&finding.kind)).filter(|kind| !kind.is_empty()).map(|kind| format!(" ({kind})"));
    out.push_str(&format!(
        "\n{head}[{}]{}{}\n",
        label_text(issue, bar),
        place.unwrap_or_default(),
        kind.unwrap_or_default(),
    ));
    let mut paragraph = |name: &str, text: &str| paragraph(out, head.len(), name, text);
    paragraph("", &finding.description);
    finding.requirement.iter().for_each(|text| paragraph("Requirement: ", text));
    finding.suggestion.iter().for_each(|text| paragraph("Fix: ", text));
    standing_action(&finding.kind).into_iter().for_each(|text| paragraph("Action: ", text));
    related(merged, issue).iter().for_each(|numbers| paragraph("Related: ", numbers));
}

/// The label, with names that Markdown would change as code.
fn label_text(issue: &Issue, bar: Bar) -> String {
    inline(&label(issue, bar))
}

fn conflicts(out: &mut String, merged: &Merged) {
    if merged.conflicts.is_empty() {
        return;
    }
    out.push_str(&format!("\n## Conflicts ({}), not resolved\n\n", merged.conflicts.len()));
    for conflict in &merged.conflicts {
        let (a, b) = (conflict.a + 1, conflict.b + 1);
        out.push_str(&format!("- {a} and {b}: {}\n", inline(&conflict.about)));
    }
}

fn still_open(out: &mut String, merged: &Merged) {
    if merged.still_open.is_empty() {
        return;
    }
    out.push_str(&format!("\n## Still open from earlier reviews ({})\n\n", merged.still_open.len()));
    for finding in &merged.still_open {
        let place =
            location(finding.file.as_deref(), finding.line).map(|place| format!("{} - ", code(&place)));
        let (id, place) = (inline(finding.id.as_str()), place.unwrap_or_default());
        let (label, text) = (severity(finding.severity), inline(&finding.description));
        out.push_str(&format!("- [{label}] {place}{text} ({id})\n"));
    }
}

fn notes(out: &mut String, merged: &Merged) {
    if merged.minor.is_empty() {
        return;
    }
    out.push_str(&format!("\n## Minor Notes ({})\n\n", merged.minor.len()));
    for sourced in &merged.minor {
        let note = &sourced.note;
        let place = location(note.file.as_deref(), note.line).map(|place| format!("{} - ", code(&place)));
        let (place, source) = (place.unwrap_or_default(), inline(sourced.source.as_str()));
        out.push_str(&format!("- {place}{} ({source})\n", inline(&note.description)));
    }
}

/// A text of a list item: a paragraph for each of its own, or a block of code where Markdown would change it.
fn paragraph(out: &mut String, indent: usize, name: &str, text: &str) {
    let text = visible(text);
    let is_plain = |line: &str| escaped_line(line, true) == line;
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

/// A path as code.
fn code(place: &str) -> String {
    span(&one_line(place))
}

/// Text of one line, as code where Markdown would change it.
fn inline(text: &str) -> String {
    let text = one_line(text);
    if escaped_line(&text, true) == text { text } else { span(&text) }
}

/// A line as a code span, with more backticks around it than any run of backticks in it has.
fn span(line: &str) -> String {
    let longest = line.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let ticks = "`".repeat(longest + 1);
    let gap = if line.starts_with('`') || line.ends_with('`') { " " } else { "" };
    if line.is_empty() { String::new() } else { format!("{ticks}{gap}{line}{gap}{ticks}") }
}

/// The answer of a reviewer that could not be read, in a fence of which no line can get out. The lines around it
/// keep a machine-readable answer from being all the fence holds: that would be an answer.
pub(super) fn answer(reviewer: &str, text: &str, whole: &str) -> String {
    const LONGEST: usize = 16 * 1024;
    let text = visible(text);
    let end = (0..=text.len().min(LONGEST)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    let cut = if end < text.len() {
        format!("[cut: the whole answer is in {}]\n", one_line(whole))
    } else {
        String::new()
    };
    let shown = &text[..end];
    let longest = shown.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let name = one_line(reviewer);
    format!(
        "\n## Answer of {}, not understood\n\n{fence}text\n--- answer of {name} ---\n{}\n{cut}--- end of the answer ---\n{fence}\n",
        inline(reviewer),
        shown.trim_end(),
    )
}

/// Text of one line that Markdown shows as it is: no emphasis, link, HTML, code, heading or list. A word
/// that announces a verdict loses its colon's meaning, even to readers that do not know Markdown.
fn escaped_line(line: &str, starts_line: bool) -> String {
    let digits = line.chars().take_while(char::is_ascii_digit).count();
    let mut out = String::with_capacity(line.len() + 8);
    let mut before = ' ';
    let mut chars = line.chars().enumerate().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map_or(' ', |(_, next)| *next);
        let opens = starts_line && at == 0 && "#>-+=:".contains(c);
        let numbers = starts_line && digits > 0 && at == digits && matches!(c, '.' | ')');
        match c {
            '<' => out.push_str("&lt;"),
            '_' if before.is_alphanumeric() && next.is_alphanumeric() => out.push('_'),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '&' | '$' => out.extend(['\\', c]),
            ':' if announces_verdict(&out) => out.push_str("\\:"),
            _ if opens || numbers => out.extend(['\\', c]),
            _ => out.push(c),
        }
        before = c;
    }
    out
}

fn announces_verdict(before: &str) -> bool {
    let tail = before.len().saturating_sub("verdict".len());
    before.as_bytes()[tail..].eq_ignore_ascii_case(b"verdict")
}
