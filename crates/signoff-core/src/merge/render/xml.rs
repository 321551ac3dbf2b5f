//! Renders `<merged-review>`, for programs that parse single reviews as XML too.

use std::borrow::Cow;
use std::io;

use quick_xml::escape::partial_escape;
use quick_xml::events::BytesText;
use quick_xml::writer::{ElementWriter, Writer};

use super::{plain_text, reason, verdict_word};
use crate::ids::ReviewerName;
use crate::merge::{FindingConflict, MergedIssue, MergedReview, SeatResult, SourcedNote};
use crate::review::ReviewerKind;

type ReviewXmlWriter = Writer<Vec<u8>>;
type ReviewXmlAttributes<'a> = Vec<(&'static str, Cow<'a, str>)>;

pub(super) fn xml(merged: &MergedReview) -> String {
    let mut out = Writer::new_with_indent(Vec::new(), b' ', 2);
    document(&mut out, merged).expect("writing to memory does not fail");
    let mut xml = plain_text::escaped_xml(&String::from_utf8_lossy(&out.into_inner()));
    xml.push('\n');
    xml
}

fn document(out: &mut ReviewXmlWriter, merged: &MergedReview) -> io::Result<()> {
    element(out, "merged-review", Vec::new(), |out| {
        leaf(out, "overall-verdict", merged.overall.as_str())?;
        seats(out, &merged.seats)?;
        issues(out, merged)?;
        minor(out, &merged.minor)?;
        if !merged.conflicts.is_empty() {
            element(out, "conflicts", Vec::new(), |out| {
                merged.conflicts.iter().try_for_each(|conflict| write_conflict(out, merged, conflict))
            })?;
        }
        leaf(out, "action", merged.action.as_str())
    })
}

/// Writes `spec-result` and `code-result` for the first seat of each kind, and `result` for all others.
fn seats(out: &mut ReviewXmlWriter, seats: &[SeatResult]) -> io::Result<()> {
    for (index, seat) in seats.iter().enumerate() {
        let first = seats[..index].iter().all(|before| before.kind != seat.kind);
        match seat.kind {
            ReviewerKind::Spec if first => result(out, "spec-result", seat),
            ReviewerKind::Code if first => result(out, "code-result", seat),
            ReviewerKind::Spec
            | ReviewerKind::Code
            | ReviewerKind::Security
            | ReviewerKind::Tests
            | ReviewerKind::General => result(out, "result", seat),
        }?;
    }
    Ok(())
}

fn result(out: &mut ReviewXmlWriter, name: &'static str, seat: &SeatResult) -> io::Result<()> {
    let mut attributes = ReviewXmlAttributes::new();
    if name == "result" || seat.reviewer.as_str() != seat.kind.as_str() {
        attributes.push(("reviewer", seat.reviewer.as_str().into()));
    }
    attributes.push(("verdict", verdict_word(&seat.verdict).into()));
    attributes.push(("confidence", seat.confidence.as_str().into()));
    attributes.extend(reason(seat).map(|reason| ("reason", reason.into())));
    empty(out, name, attributes)
}

fn issues(out: &mut ReviewXmlWriter, merged: &MergedReview) -> io::Result<()> {
    if merged.issues.is_empty() {
        return empty(out, "issues", Vec::new());
    }
    element(out, "issues", Vec::new(), |out| {
        for together in merged.issues.chunk_by(|a, b| a.group.is_some() && a.group == b.group) {
            if together.iter().any(|issue| issue.group.is_some()) {
                element(out, "issue-group", vec![("related", "true".into())], |out| {
                    together.iter().try_for_each(|one| issue(out, one))
                })?;
            } else {
                together.iter().try_for_each(|one| issue(out, one))?;
            }
        }
        Ok(())
    })
}

fn issue(out: &mut ReviewXmlWriter, issue: &MergedIssue) -> io::Result<()> {
    let finding = &issue.finding;
    let sources: Vec<&str> = finding.sources.iter().map(ReviewerName::as_str).collect();
    let mut attributes: ReviewXmlAttributes<'_> = vec![
        ("source", sources.join(",").into()),
        ("priority", issue.priority.to_string().into()),
        ("type", finding.kind.as_str().into()),
        ("severity", finding.severity.as_str().into()),
    ];
    attributes.extend(place(finding.file.as_deref(), finding.line));
    attributes.push(("id", finding.id.as_str().into()));
    element(out, "issue", attributes, |out| {
        leaf(out, "description", &finding.description)?;
        finding.requirement.iter().try_for_each(|text| leaf(out, "requirement", text))?;
        finding.suggestion.iter().try_for_each(|text| leaf(out, "fix", text))
    })
}

fn place(file: Option<&str>, line: Option<u32>) -> ReviewXmlAttributes<'_> {
    let file = file.map(|file| ("file", file.into()));
    file.into_iter().chain(line.map(|line| ("line", line.to_string().into()))).collect()
}

fn minor(out: &mut ReviewXmlWriter, notes: &[SourcedNote]) -> io::Result<()> {
    if notes.is_empty() {
        return empty(out, "minor", Vec::new());
    }
    element(out, "minor", Vec::new(), |out| notes.iter().try_for_each(|one| note(out, one)))
}

fn note(out: &mut ReviewXmlWriter, sourced: &SourcedNote) -> io::Result<()> {
    let note = &sourced.note;
    let mut attributes: ReviewXmlAttributes<'_> =
        vec![("source", sourced.source.as_str().into()), ("priority", "5".into())];
    attributes.extend(place(note.file.as_deref(), note.line));
    element(out, "note", attributes, |out| leaf(out, "description", &note.description))
}

fn write_conflict(out: &mut ReviewXmlWriter, merged: &MergedReview, conflict: &FindingConflict) -> io::Result<()> {
    element(out, "conflict", Vec::new(), |out| {
        for finding in [conflict.a, conflict.b].map(|index| &merged.issues[index].finding) {
            empty(out, "between", vec![("issue", finding.id.as_str().into())])?;
        }
        leaf(out, "about", &conflict.about)
    })
}

fn element(
    out: &mut ReviewXmlWriter,
    name: &'static str,
    attributes: ReviewXmlAttributes<'_>,
    inner: impl FnOnce(&mut ReviewXmlWriter) -> io::Result<()>,
) -> io::Result<()> {
    start(out, name, attributes).write_inner_content(inner)?;
    Ok(())
}

fn empty(out: &mut ReviewXmlWriter, name: &'static str, attributes: ReviewXmlAttributes<'_>) -> io::Result<()> {
    start(out, name, attributes).write_empty()?;
    Ok(())
}

fn start<'a>(
    out: &'a mut ReviewXmlWriter,
    name: &'static str,
    attributes: ReviewXmlAttributes<'_>,
) -> ElementWriter<'a, Vec<u8>> {
    let carried = attributes.iter().map(|(key, value)| (*key, Cow::Owned(without_control_chars(value))));
    out.create_element(name).with_attributes(carried.collect::<ReviewXmlAttributes<'static>>())
}

fn leaf(out: &mut ReviewXmlWriter, name: &'static str, text: &str) -> io::Result<()> {
    let text = without_control_chars(text);
    out.create_element(name).write_text_content(BytesText::from_escaped(partial_escape(text.as_str())))?;
    Ok(())
}

/// Replaces control characters, most of which XML cannot represent even as references.
fn without_control_chars(text: &str) -> String {
    let can = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..);
    text.chars().map(|c| if can(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}
