//! The merged review as people and programs read it.
//!
//! What agents wrote is data in every format: it cannot end an element, open a fence, move the cursor or
//! pass for a verdict of ours.

pub mod json;
mod markdown;
pub mod plain_text;
pub mod sarif;
mod text;
mod xml;

use super::{Action, Issue, Merged, SeatResult};
use crate::ids::ReviewerName;
use crate::review::{Bar, Inconclusive, Severity, Verdict};

/// The formats by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    Text,
    Xml,
    Json,
    Markdown,
    Sarif,
}

impl Format {
    pub const ALL: [Self; 5] = [Self::Text, Self::Xml, Self::Json, Self::Markdown, Self::Sarif];
    pub const WORDS: [&'static str; 5] = ["text", "xml", "json", "markdown", "sarif"];

    pub fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Xml => "xml",
            Self::Json => "json",
            Self::Markdown => "markdown",
            Self::Sarif => "sarif",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.word() == word)
    }
}

/// Renders a merged review under the bar it was merged with. Every format ends with one line break.
pub fn render(merged: &Merged, bar: Bar, format: Format) -> String {
    match format {
        Format::Text => block(merged, bar, merged.advice()),
        Format::Xml => xml::xml(merged),
        Format::Json => json::json(merged),
        Format::Markdown => markdown::markdown(merged, bar),
        Format::Sarif => sarif::sarif(merged),
    }
}

/// The text with the action that really follows, where somebody knows it.
pub fn block(merged: &Merged, bar: Bar, action: Option<Action>) -> String {
    text::text(merged, bar, action)
}

/// The part of an artifact that shows an answer which could not be read; `whole` names the file that has all of it.
pub fn unread_answer(reviewer: &ReviewerName, text: &str, whole: &str) -> String {
    markdown::answer(reviewer.as_str(), text, whole)
}

/// A seat's verdict in the words of the XML contract, with the two it lacks.
fn verdict_word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Approved => "APPROVED",
        Verdict::ApprovedWithMinor => "APPROVED_WITH_MINOR",
        Verdict::ChangesRequested => "ISSUES",
        Verdict::NeedsDiscussion => "NEEDS_DISCUSSION",
        Verdict::Inconclusive(_) => "INCONCLUSIVE",
    }
}

/// Why a seat has no verdict.
fn reason(seat: &SeatResult) -> Option<String> {
    match &seat.verdict {
        Verdict::Inconclusive(Inconclusive::Missing(why)) if why.is_empty() => Some("no answer".to_owned()),
        Verdict::Inconclusive(Inconclusive::Missing(why)) => Some(format!("no answer: {why}")),
        Verdict::Inconclusive(
            Inconclusive::Unparsable(violation)
            | Inconclusive::Contradictory(violation)
            | Inconclusive::Truncated(violation)
            | Inconclusive::Unbound(violation),
        ) => Some(format!("{}: {violation}", violation.code)),
        Verdict::Approved
        | Verdict::ApprovedWithMinor
        | Verdict::ChangesRequested
        | Verdict::NeedsDiscussion => None,
    }
}

/// A reviewer's name as a title: `spec` is `Spec`.
fn title(name: &ReviewerName) -> String {
    let mut chars = name.as_str().chars();
    chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect()
}

/// `Spec Critical`, with whoever else said it and whether the bar lets it pass.
fn label(issue: &Issue, bar: Bar) -> String {
    let severity = severity(issue.finding.severity);
    let mut sources = issue.finding.sources.iter();
    let lead = sources.next().map(title).unwrap_or_default();
    let also: String = sources.map(|name| format!(", also {}", title(name))).collect();
    let below = if issue.is_below(bar) { ", below the bar" } else { "" };
    format!("{lead} {severity}{also}{below}")
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "Critical",
        Severity::Important => "Important",
        Severity::Minor => "Minor",
    }
}

/// `file:line`, as far as known.
fn location(file: Option<&str>, line: Option<u32>) -> Option<String> {
    match (file, line) {
        (Some(file), Some(line)) => Some(format!("{file}:{line}")),
        (Some(file), None) => Some(file.to_owned()),
        (None, Some(line)) => Some(format!("line {line}")),
        (None, None) => None,
    }
}

/// What the list of issues is called: how many are to be fixed, how many the bar lets pass.
fn issues_heading(merged: &Merged, bar: Bar) -> Option<String> {
    let to_fix = merged.blocking(bar).count();
    match (to_fix, merged.issues.len() - to_fix) {
        (0, 0) => None,
        (0, below) => Some(format!("Issues Below the Bar ({below})")),
        (to_fix, 0) => Some(format!("Issues to Fix ({to_fix})")),
        (to_fix, below) => Some(format!("Issues to Fix ({to_fix}), Below the Bar ({below})")),
    }
}

/// What an issue of this kind asks for by its nature.
fn standing_action(kind: &str) -> Option<&'static str> {
    (kind == "extra_feature").then_some("Remove or get approval to add")
}

/// The numbers of a group's issues as shown, which are always consecutive.
fn related(merged: &Merged, issue: &Issue) -> Option<String> {
    let group = merged.groups.get(issue.group?)?;
    Some(format!("{}-{}", group.issues.first()? + 1, group.issues.last()? + 1))
}
