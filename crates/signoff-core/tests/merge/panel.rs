//! Reviews in few words.

use signoff_core::ids::{FindingId, ReviewerName};
use signoff_core::merge::Merged;
use signoff_core::review::{
    Confidence, Finding, Inconclusive, Note, Review, ReviewerKind, Severity, Verdict,
};

pub const CRITICAL: Severity = Severity::Critical;
pub const IMPORTANT: Severity = Severity::Important;
pub const MINOR: Severity = Severity::Minor;

/// A review by the reviewer of that name; a name that is no role is a general reviewer's.
pub fn review(name: &str, verdict: Verdict) -> Review {
    let kind = ReviewerKind::from_word(name).unwrap_or(ReviewerKind::General);
    let mut review = Review::of(ReviewerName::new(name), kind, verdict);
    review.confidence = Confidence::High;
    review
}

pub fn approved(name: &str) -> Review {
    review(name, Verdict::Approved)
}

pub fn issues(name: &str, findings: impl IntoIterator<Item = Finding>) -> Review {
    let mut review = review(name, Verdict::ChangesRequested);
    review.findings = findings.into_iter().collect();
    for finding in &mut review.findings {
        finding.sources = vec![review.reviewer.clone()];
    }
    review
}

pub fn unheard(name: &str) -> Review {
    let why = Inconclusive::Missing("timed out after 3m".into());
    Review::inconclusive(ReviewerName::new(name), review(name, Verdict::Approved).kind, why)
}

/// A finding at `file:line`, `file` or nowhere.
pub fn finding(severity: Severity, place: &str, description: &str) -> Finding {
    let (file, line) = match place.rsplit_once(':') {
        Some((file, line)) => (file, line.parse().ok()),
        None => (place, None),
    };
    Finding {
        id: FindingId::new(format!("{description}@{place}")),
        sources: Vec::new(),
        kind: "bug".into(),
        severity,
        file: Some(file.to_owned()).filter(|file| !file.is_empty()),
        line,
        description: description.into(),
        requirement: None,
        suggestion: None,
    }
}

pub fn note(file: &str, line: u32, description: &str) -> Note {
    Note { file: Some(file.into()), line: Some(line), description: description.into() }
}

/// One line per issue: priority, group, sources, place, description.
pub fn listing(merged: &Merged) -> String {
    let lines = merged.issues.iter().map(|issue| {
        let finding = &issue.finding;
        let group = issue.group.map_or("-".to_owned(), |group| group.to_string());
        let sources: Vec<&str> = finding.sources.iter().map(ReviewerName::as_str).collect();
        let place = finding.file.as_deref().unwrap_or("nowhere");
        let line = finding.line.map_or("-".to_owned(), |line| line.to_string());
        let said = &finding.description;
        format!("{} group {group} [{}] {place}:{line} {said}", issue.priority, sources.join("+"))
    });
    lines.collect::<Vec<_>>().join("\n")
}
