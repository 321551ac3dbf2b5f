//! The merged review as JSON, version 1. `MergedReview` serializes to it.

use serde::Serialize;

use super::{plain_text, reason};
use crate::ids::{FindingId, ReviewerName};
use crate::merge::{
    FindingConflict, IssueGroup, MergeAction, MergedIssue, MergedReview, Overall, SeatResult, SourcedNote,
};
use crate::review::{Confidence, Severity};

/// The whole document.
#[derive(Debug, Serialize)]
pub struct MergedReviewJson<'a> {
    version: u32,
    overall_verdict: Overall,
    action: MergeAction,
    reviews: Vec<SeatJson<'a>>,
    issues: Vec<IssueJson<'a>>,
    groups: Vec<GroupJson<'a>>,
    minor: &'a [SourcedNote],
    conflicts: Vec<ConflictJson<'a>>,
}

#[derive(Debug, Serialize)]
struct SeatJson<'a> {
    reviewer: &'a ReviewerName,
    role: &'static str,
    verdict: &'static str,
    confidence: Confidence,
    summary: &'a str,
    /// Why there is no verdict.
    reason: Option<String>,
}

#[derive(Debug, Serialize)]
struct IssueJson<'a> {
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
struct GroupJson<'a> {
    issues: Vec<&'a FindingId>,
}

#[derive(Debug, Serialize)]
struct ConflictJson<'a> {
    issues: Vec<&'a FindingId>,
    about: &'a str,
}

impl<'a> MergedReviewJson<'a> {
    pub fn new(merged: &'a MergedReview) -> Self {
        Self {
            version: 1,
            overall_verdict: merged.overall,
            action: merged.action,
            reviews: merged.seats.iter().map(SeatJson::new).collect(),
            issues: merged.issues.iter().map(IssueJson::new).collect(),
            groups: merged.groups.iter().map(|group| GroupJson::new(merged, group)).collect(),
            minor: &merged.minor,
            conflicts: merged.conflicts.iter().map(|conflict| ConflictJson::new(merged, conflict)).collect(),
        }
    }
}

impl<'a> SeatJson<'a> {
    fn new(seat: &'a SeatResult) -> Self {
        Self {
            reviewer: &seat.reviewer,
            role: seat.kind.as_str(),
            verdict: seat.verdict.as_str(),
            confidence: seat.confidence,
            summary: &seat.summary,
            reason: reason(seat),
        }
    }
}

impl<'a> IssueJson<'a> {
    fn new(issue: &'a MergedIssue) -> Self {
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

impl<'a> GroupJson<'a> {
    fn new(merged: &'a MergedReview, group: &IssueGroup) -> Self {
        Self { issues: group.issues.iter().map(|&index| &merged.issues[index].finding.id).collect() }
    }
}

impl<'a> ConflictJson<'a> {
    fn new(merged: &'a MergedReview, conflict: &'a FindingConflict) -> Self {
        let issues = [conflict.a, conflict.b].map(|index| &merged.issues[index].finding.id);
        Self { issues: issues.to_vec(), about: &conflict.about }
    }
}

pub(super) fn json(merged: &MergedReview) -> String {
    let json = serde_json::to_string_pretty(&MergedReviewJson::new(merged)).expect("plain data always serialises");
    let mut json = plain_text::escaped_json(&json);
    json.push('\n');
    json
}
