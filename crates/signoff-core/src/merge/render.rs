//! Renders the merged review for people and programs.
//!
//! Text of agents is data in every format: it cannot end an element, open a fence, move the cursor or look like one
//! of our verdicts.

pub mod json;
mod markdown;
pub mod plain_text;
pub mod sarif;
mod text;
mod xml;

use super::{MergeAction, MergedIssue, MergedReview, SeatResult};
use crate::ids::ReviewerName;
use crate::review::{FailThreshold, Inconclusive, Verdict};

/// The output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReviewFormat {
    Text,
    Xml,
    Json,
    Markdown,
    Sarif,
}

impl ReviewFormat {
    pub const ALL: [Self; 5] = [Self::Text, Self::Xml, Self::Json, Self::Markdown, Self::Sarif];
    pub const WORDS: [&'static str; 5] = ["text", "xml", "json", "markdown", "sarif"];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Xml => "xml",
            Self::Json => "json",
            Self::Markdown => "markdown",
            Self::Sarif => "sarif",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.as_str() == word)
    }
}

/// Renders a merged review under the bar it was merged with. Every format ends with one line break.
pub fn render(merged: &MergedReview, bar: FailThreshold, format: ReviewFormat) -> String {
    match format {
        ReviewFormat::Text => block(merged, bar, merged.advice()),
        ReviewFormat::Xml => xml::xml(merged),
        ReviewFormat::Json => json::json(merged),
        ReviewFormat::Markdown => markdown::markdown(merged, bar),
        ReviewFormat::Sarif => sarif::sarif(merged),
    }
}

/// Renders the text format, with the given action if it is known.
pub fn block(merged: &MergedReview, bar: FailThreshold, action: Option<MergeAction>) -> String {
    text::text(merged, bar, action)
}

/// Renders an answer that could not be parsed, as a section of an artifact. `whole` names the file with the full
/// answer.
pub fn unread_answer(reviewer: &ReviewerName, text: &str, whole: &str) -> String {
    markdown::answer(reviewer.as_str(), text, whole)
}

/// A seat's verdict in the words of the XML contract, plus two words that it lacks.
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
        Verdict::Approved | Verdict::ApprovedWithMinor | Verdict::ChangesRequested | Verdict::NeedsDiscussion => None,
    }
}

/// A reviewer's name as a title: `spec` is `Spec`.
fn title(name: &ReviewerName) -> String {
    let mut chars = name.as_str().chars();
    chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect()
}

/// `Spec Critical`, followed by the other sources and whether it is below the bar.
fn label(issue: &MergedIssue, bar: FailThreshold) -> String {
    let severity = issue.finding.severity.title();
    let mut sources = issue.finding.sources.iter();
    let lead = sources.next().map(title).unwrap_or_default();
    let also: String = sources.map(|name| format!(", also {}", title(name))).collect();
    let below = if issue.is_below(bar) { ", below the bar" } else { "" };
    format!("{lead} {severity}{also}{below}")
}

/// `file:line`, or the part of it that is known.
fn location(file: Option<&str>, line: Option<u32>) -> Option<String> {
    match (file, line) {
        (Some(file), Some(line)) => Some(format!("{file}:{line}")),
        (Some(file), None) => Some(file.to_owned()),
        (None, Some(line)) => Some(format!("line {line}")),
        (None, None) => None,
    }
}

/// The heading of the issue list: the number of issues to fix and the number below the bar.
fn issues_heading(merged: &MergedReview, bar: FailThreshold) -> Option<String> {
    let to_fix = merged.blocking(bar).count();
    match (to_fix, merged.issues.len() - to_fix) {
        (0, 0) => None,
        (0, below) => Some(format!("Issues Below the Bar ({below})")),
        (to_fix, 0) => Some(format!("Issues to Fix ({to_fix})")),
        (to_fix, below) => Some(format!("Issues to Fix ({to_fix}), Below the Bar ({below})")),
    }
}

/// The fixed action for issues of this kind.
fn standing_action(kind: &str) -> Option<&'static str> {
    (kind == "extra_feature").then_some("Remove or get approval to add")
}

/// The numbers of a group's issues as shown, which are always consecutive.
fn related(merged: &MergedReview, issue: &MergedIssue) -> Option<String> {
    let group = merged.groups.get(issue.group?)?;
    Some(format!("{}-{}", group.issues.first()? + 1, group.issues.last()? + 1))
}
