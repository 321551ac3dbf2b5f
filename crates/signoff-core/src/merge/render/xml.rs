//! Renders `<merged-review>`, for programs that parse single reviews as XML too; and the elements of XML documents.

use std::io;

use quick_xml::escape::partial_escape;
use quick_xml::events::BytesText;
use quick_xml::writer::Writer;

use super::{plain_text, reason, verdict_word};
use crate::ids::ReviewerName;
use crate::merge::{FindingConflict, MergedIssue, MergedReview, ReviewerResult, SourcedNote};
use crate::review::ReviewerKind;

/// An XML element. Characters that XML cannot represent are replaced, and all others escaped, when it is written.
pub struct XmlElement {
    name: &'static str,
    attributes: Vec<(&'static str, String)>,
    text: Option<String>,
    children: Vec<Self>,
}

impl XmlElement {
    pub fn new(name: &'static str) -> Self {
        Self { name, attributes: Vec::new(), text: None, children: Vec::new() }
    }

    #[must_use]
    pub fn attribute(self, name: &'static str, value: impl Into<String>) -> Self {
        self.attributes([(name, value.into())])
    }

    #[must_use]
    pub fn attributes(mut self, attributes: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        self.attributes.extend(attributes);
        self
    }

    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..self }
    }

    #[must_use]
    pub fn children(self, children: impl IntoIterator<Item = Self>) -> Self {
        Self { children: children.into_iter().collect(), ..self }
    }

    /// The document with this root, followed by one line break.
    pub fn document(&self) -> String {
        let mut out = Writer::new_with_indent(Vec::new(), b' ', 2);
        self.write(&mut out).expect("writing to memory does not fail");
        plain_text::escaped_xml(&String::from_utf8_lossy(&out.into_inner())) + "\n"
    }

    fn write(&self, out: &mut Writer<Vec<u8>>) -> io::Result<()> {
        let attributes: Vec<_> = self.attributes.iter().map(|(name, value)| (*name, representable(value))).collect();
        let attributes = attributes.iter().map(|(name, value)| (*name, value.as_str()));
        let element = out.create_element(self.name).with_attributes(attributes);
        if let Some(text) = self.text.as_deref().map(representable) {
            element.write_text_content(BytesText::from_escaped(partial_escape(text.as_str())))?;
        } else if self.children.is_empty() {
            element.write_empty()?;
        } else {
            element.write_inner_content(|out| self.children.iter().try_for_each(|child| child.write(out)))?;
        }
        Ok(())
    }
}

/// Replaces control characters, most of which XML cannot represent even as references.
pub fn representable(text: &str) -> String {
    let can = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..);
    text.chars().map(|c| if can(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}

pub(super) fn xml(merged: &MergedReview) -> String {
    let conflicts = merged.conflicts.iter().map(|conflict| conflict_element(merged, conflict));
    let mut parts = vec![leaf("overall-verdict", merged.overall.into_str())];
    parts.extend((0..merged.results.len()).map(|index| result_element(&merged.results, index)));
    parts.push(XmlElement::new("issues").children(issues(merged)));
    parts.push(XmlElement::new("minor").children(merged.minor.iter().map(note)));
    parts.extend((!merged.conflicts.is_empty()).then(|| XmlElement::new("conflicts").children(conflicts)));
    parts.push(leaf("action", merged.action.into_str()));
    XmlElement::new("merged-review").children(parts).document()
}

fn leaf(name: &'static str, text: &str) -> XmlElement {
    XmlElement::new(name).text(text)
}

/// `spec-result` and `code-result` for the first result of each kind, and `result` for all others.
fn result_element(results: &[ReviewerResult], index: usize) -> XmlElement {
    let result = &results[index];
    let is_first = results[..index].iter().all(|before| before.kind != result.kind);
    let name = match result.kind {
        ReviewerKind::Spec if is_first => "spec-result",
        ReviewerKind::Code if is_first => "code-result",
        ReviewerKind::Spec
        | ReviewerKind::Code
        | ReviewerKind::Security
        | ReviewerKind::Tests
        | ReviewerKind::General => "result",
    };
    let reviewer =
        (name == "result" || result.reviewer.as_str() != result.kind.into_str()).then(|| result.reviewer.to_string());
    XmlElement::new(name)
        .attributes(reviewer.map(|reviewer| ("reviewer", reviewer)))
        .attribute("verdict", verdict_word(&result.verdict))
        .attribute("confidence", result.confidence.into_str())
        .attributes(reason(result).map(|reason| ("reason", reason)))
}

fn issues(merged: &MergedReview) -> impl Iterator<Item = XmlElement> {
    let chunks = merged.issues.chunk_by(|a, b| a.group.is_some() && a.group == b.group);
    chunks.map(|together| match together {
        [alone] if alone.group.is_none() => issue(alone),
        related => XmlElement::new("issue-group").attribute("related", "true").children(related.iter().map(issue)),
    })
}

fn issue(issue: &MergedIssue) -> XmlElement {
    let finding = &issue.finding;
    let sources: Vec<&str> = finding.sources.iter().map(ReviewerName::as_str).collect();
    let description = leaf("description", &finding.description);
    let requirement = finding.requirement.iter().map(|text| leaf("requirement", text));
    let fix = finding.suggestion.iter().map(|text| leaf("fix", text));
    XmlElement::new("issue")
        .attribute("source", sources.join(","))
        .attribute("priority", issue.priority.to_string())
        .attribute("type", finding.kind.as_str())
        .attribute("severity", finding.severity.into_str())
        .attributes(location_attributes(finding.file.as_deref(), finding.line))
        .attribute("id", finding.id.as_str())
        .children([description].into_iter().chain(requirement).chain(fix))
}

fn location_attributes(file: Option<&str>, line: Option<u32>) -> impl Iterator<Item = (&'static str, String)> {
    let file = file.map(|file| ("file", file.to_owned()));
    file.into_iter().chain(line.map(|line| ("line", line.to_string())))
}

fn note(sourced: &SourcedNote) -> XmlElement {
    let note = &sourced.note;
    XmlElement::new("note")
        .attribute("source", sourced.source.as_str())
        .attribute("priority", "5")
        .attributes(location_attributes(note.file.as_deref(), note.line))
        .children([leaf("description", &note.description)])
}

fn conflict_element(merged: &MergedReview, conflict: &FindingConflict) -> XmlElement {
    let finding = |index: usize| &merged.issues[index].finding;
    let between = |index| XmlElement::new("between").attribute("issue", finding(index).id.as_str());
    XmlElement::new("conflict").children([between(conflict.a), between(conflict.b), leaf("about", &conflict.about)])
}
