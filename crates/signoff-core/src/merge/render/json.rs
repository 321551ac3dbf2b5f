//! The merged review as JSON, version 1. Also what `Merged` serialises as.

use serde::Serialize;

use super::{plain_text, reason};
use crate::ids::{FindingId, ReviewerName};
use crate::merge::{Action, Conflict, Group, Issue, Merged, Overall, SeatResult, SourcedNote};
use crate::review::{Confidence, Severity};

/// The whole document.
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    version: u32,
    overall_verdict: Overall,
    action: Action,
    reviews: Vec<ReviewLine<'a>>,
    issues: Vec<IssueLine<'a>>,
    groups: Vec<GroupLine<'a>>,
    minor: Vec<NoteLine<'a>>,
    conflicts: Vec<ConflictLine<'a>>,
}

#[derive(Debug, Serialize)]
struct ReviewLine<'a> {
    reviewer: &'a ReviewerName,
    role: &'static str,
    verdict: &'static str,
    confidence: Confidence,
    summary: &'a str,
    /// Why there is no verdict.
    reason: Option<String>,
}

#[derive(Debug, Serialize)]
struct IssueLine<'a> {
    id: &'a FindingId,
    aliases: &'a [FindingId],
    sources: &'a [ReviewerName],
    priority: u8,
    kind: &'a str,
    severity: Severity,
    file: Option<&'a str>,
    line: Option<u32>,
    description: &'a str,
    requirement: Option<&'a str>,
    suggestion: Option<&'a str>,
    group: Option<usize>,
}

#[derive(Debug, Serialize)]
struct GroupLine<'a> {
    issues: Vec<&'a FindingId>,
}

#[derive(Debug, Serialize)]
struct NoteLine<'a> {
    source: &'a ReviewerName,
    file: Option<&'a str>,
    line: Option<u32>,
    description: &'a str,
}

#[derive(Debug, Serialize)]
struct ConflictLine<'a> {
    issues: Vec<&'a FindingId>,
    about: &'a str,
}

impl<'a> Document<'a> {
    pub fn of(merged: &'a Merged) -> Self {
        Self {
            version: 1,
            overall_verdict: merged.overall,
            action: merged.action,
            reviews: merged.seats.iter().map(ReviewLine::of).collect(),
            issues: merged.issues.iter().map(IssueLine::of).collect(),
            groups: merged.groups.iter().map(|group| GroupLine::of(merged, group)).collect(),
            minor: merged.minor.iter().map(NoteLine::of).collect(),
            conflicts: merged.conflicts.iter().map(|conflict| ConflictLine::of(merged, conflict)).collect(),
        }
    }
}

impl<'a> ReviewLine<'a> {
    fn of(seat: &'a SeatResult) -> Self {
        Self {
            reviewer: &seat.reviewer,
            role: seat.kind.word(),
            verdict: seat.verdict.word(),
            confidence: seat.confidence,
            summary: &seat.summary,
            reason: reason(seat),
        }
    }
}

impl<'a> IssueLine<'a> {
    fn of(issue: &'a Issue) -> Self {
        let finding = &issue.finding;
        Self {
            id: &finding.id,
            aliases: &issue.aliases,
            sources: &finding.sources,
            priority: issue.priority,
            kind: &finding.kind,
            severity: finding.severity,
            file: finding.file.as_deref(),
            line: finding.line,
            description: &finding.description,
            requirement: finding.requirement.as_deref(),
            suggestion: finding.suggestion.as_deref(),
            group: issue.group,
        }
    }
}

impl<'a> GroupLine<'a> {
    fn of(merged: &'a Merged, group: &Group) -> Self {
        Self { issues: group.issues.iter().map(|&index| &merged.issues[index].finding.id).collect() }
    }
}

impl<'a> NoteLine<'a> {
    fn of(sourced: &'a SourcedNote) -> Self {
        let note = &sourced.note;
        Self {
            source: &sourced.source,
            file: note.file.as_deref(),
            line: note.line,
            description: &note.description,
        }
    }
}

impl<'a> ConflictLine<'a> {
    fn of(merged: &'a Merged, conflict: &'a Conflict) -> Self {
        let issues = [conflict.a, conflict.b].map(|index| &merged.issues[index].finding.id);
        Self { issues: issues.to_vec(), about: &conflict.about }
    }
}

pub(super) fn json(merged: &Merged) -> String {
    let json = serde_json::to_string_pretty(&Document::of(merged)).expect("plain data always serialises");
    let mut json = plain_text::escaped_json(&json);
    json.push('\n');
    json
}
