//! `<merged-review>`, for whoever reads the single reviews as XML too.

use std::borrow::Cow;
use std::io;

use quick_xml::escape::partial_escape;
use quick_xml::events::BytesText;
use quick_xml::writer::{ElementWriter, Writer};

use super::{plain_text, reason, verdict_word};
use crate::ids::ReviewerName;
use crate::merge::{Conflict, Issue, Merged, SeatResult, SourcedNote};
use crate::review::ReviewerKind;

type Out = Writer<Vec<u8>>;
type Attributes<'a> = Vec<(&'static str, Cow<'a, str>)>;

pub(super) fn xml(merged: &Merged) -> String {
    let mut out = Writer::new_with_indent(Vec::new(), b' ', 2);
    document(&mut out, merged).expect("writing to memory does not fail");
    let mut xml = plain_text::escaped_xml(&String::from_utf8_lossy(&out.into_inner()));
    xml.push('\n');
    xml
}

fn document(out: &mut Out, merged: &Merged) -> io::Result<()> {
    element(out, "merged-review", Vec::new(), |out| {
        leaf(out, "overall-verdict", merged.overall.word())?;
        seats(out, &merged.seats)?;
        issues(out, merged)?;
        minor(out, &merged.minor)?;
        if !merged.conflicts.is_empty() {
            element(out, "conflicts", Vec::new(), |out| {
                merged.conflicts.iter().try_for_each(|conflict| clash(out, merged, conflict))
            })?;
        }
        leaf(out, "action", merged.action.word())
    })
}

/// `spec-result` and `code-result` for the first seat of each, `result` for everyone else.
fn seats(out: &mut Out, seats: &[SeatResult]) -> io::Result<()> {
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

fn result(out: &mut Out, name: &'static str, seat: &SeatResult) -> io::Result<()> {
    let mut attributes = Attributes::new();
    if name == "result" || seat.reviewer.as_str() != seat.kind.word() {
        attributes.push(("reviewer", seat.reviewer.as_str().into()));
    }
    attributes.push(("verdict", verdict_word(&seat.verdict).into()));
    attributes.push(("confidence", seat.confidence.word().into()));
    attributes.extend(reason(seat).map(|reason| ("reason", reason.into())));
    empty(out, name, attributes)
}

fn issues(out: &mut Out, merged: &Merged) -> io::Result<()> {
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

fn issue(out: &mut Out, issue: &Issue) -> io::Result<()> {
    let finding = &issue.finding;
    let sources: Vec<&str> = finding.sources.iter().map(ReviewerName::as_str).collect();
    let mut attributes: Attributes<'_> = vec![
        ("source", sources.join(",").into()),
        ("priority", issue.priority.to_string().into()),
        ("type", finding.kind.as_str().into()),
        ("severity", finding.severity.word().into()),
    ];
    attributes.extend(place(finding.file.as_deref(), finding.line));
    attributes.push(("id", finding.id.as_str().into()));
    element(out, "issue", attributes, |out| {
        leaf(out, "description", &finding.description)?;
        finding.requirement.iter().try_for_each(|text| leaf(out, "requirement", text))?;
        finding.suggestion.iter().try_for_each(|text| leaf(out, "fix", text))
    })
}

fn place(file: Option<&str>, line: Option<u32>) -> Attributes<'_> {
    let file = file.map(|file| ("file", file.into()));
    file.into_iter().chain(line.map(|line| ("line", line.to_string().into()))).collect()
}

fn minor(out: &mut Out, notes: &[SourcedNote]) -> io::Result<()> {
    if notes.is_empty() {
        return empty(out, "minor", Vec::new());
    }
    element(out, "minor", Vec::new(), |out| notes.iter().try_for_each(|one| note(out, one)))
}

fn note(out: &mut Out, sourced: &SourcedNote) -> io::Result<()> {
    let note = &sourced.note;
    let mut attributes: Attributes<'_> =
        vec![("source", sourced.source.as_str().into()), ("priority", "5".into())];
    attributes.extend(place(note.file.as_deref(), note.line));
    element(out, "note", attributes, |out| leaf(out, "description", &note.description))
}

fn clash(out: &mut Out, merged: &Merged, conflict: &Conflict) -> io::Result<()> {
    element(out, "conflict", Vec::new(), |out| {
        for finding in [conflict.a, conflict.b].map(|index| &merged.issues[index].finding) {
            empty(out, "between", vec![("issue", finding.id.as_str().into())])?;
        }
        leaf(out, "about", &conflict.about)
    })
}

fn element(
    out: &mut Out,
    name: &'static str,
    attributes: Attributes<'_>,
    inner: impl FnOnce(&mut Out) -> io::Result<()>,
) -> io::Result<()> {
    start(out, name, attributes).write_inner_content(inner)?;
    Ok(())
}

fn empty(out: &mut Out, name: &'static str, attributes: Attributes<'_>) -> io::Result<()> {
    start(out, name, attributes).write_empty()?;
    Ok(())
}

fn start<'a>(out: &'a mut Out, name: &'static str, attributes: Attributes<'_>) -> ElementWriter<'a, Vec<u8>> {
    let carried = attributes.iter().map(|(key, value)| (*key, Cow::Owned(carried(value))));
    out.create_element(name).with_attributes(carried.collect::<Attributes<'static>>())
}

fn leaf(out: &mut Out, name: &'static str, text: &str) -> io::Result<()> {
    let text = carried(text);
    out.create_element(name).write_text_content(BytesText::from_escaped(partial_escape(text.as_str())))?;
    Ok(())
}

/// XML has no way to write most control characters, not even as references.
fn carried(text: &str) -> String {
    let can = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..);
    text.chars().map(|c| if can(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}
