//! Short constructors for reviews and findings.

use signoff_core::ids::{FindingId, ReviewerName};
use signoff_core::merge::render::{ReviewFormat, render};
use signoff_core::merge::{MergedReview, merge};
use signoff_core::review::{
    Confidence, FailThreshold, Finding, Inconclusive, Note, Review, ReviewerKind, Severity, Verdict,
};

pub const CRITICAL: Severity = Severity::Critical;
pub const IMPORTANT: Severity = Severity::Important;
pub const MINOR: Severity = Severity::Minor;

/// A review by the named reviewer. A name that is not a role means a general reviewer.
pub fn review(name: &str, verdict: Verdict) -> Review {
    let kind = name.parse::<ReviewerKind>().unwrap_or(ReviewerKind::General);
    let mut review = Review::new(ReviewerName::new(name), kind, verdict);
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

pub fn missing(name: &str) -> Review {
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

/// One line per issue: priority, group, sources, location, description.
pub fn listing(merged: &MergedReview) -> String {
    let lines = merged.issues.iter().map(|issue| {
        let finding = &issue.finding;
        let group = issue.group.map_or("-".to_owned(), |group| group.to_string());
        let sources: Vec<&str> = finding.sources.iter().map(ReviewerName::as_str).collect();
        let file = finding.file.as_deref().unwrap_or("nowhere");
        let line = finding.line.map_or("-".to_owned(), |line| line.to_string());
        let description = &finding.description;
        format!("{} group {group} [{}] {file}:{line} {description}", issue.priority, sources.join("+"))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The panel of the example in the design document.
pub fn example() -> [Review; 2] {
    let spec = issues(
        "spec",
        [
            Finding {
                kind: "missing_requirement".into(),
                requirement: Some("Support OAuth 2.0 login".into()),
                ..finding(CRITICAL, "src/auth.ts:45", "Missing OAuth flow implementation")
            },
            Finding {
                kind: "extra_feature".into(),
                ..finding(IMPORTANT, "src/auth.ts:78", "Extra feature not in spec")
            },
        ],
    );
    let mut code = review("code", Verdict::ApprovedWithMinor);
    code.minor.push(note("src/auth.ts", 30, "Magic number could be constant"));
    [spec, code]
}

/// A panel with a group, a conflict, two sources, a finding below the threshold, and text of several lines.
pub fn crowded() -> Vec<Review> {
    let spec = issues(
        "spec",
        [
            finding(IMPORTANT, "src/pay.rs:20", "Retries are required by the specification"),
            finding(CRITICAL, "src/pay.rs:90", "Charges the card twice"),
        ],
    );
    let fix = Some("Check the id first.\nThen charge.".to_owned());
    let code = issues(
        "code",
        [
            Finding { suggestion: fix, ..finding(CRITICAL, "src/pay.rs:91", "Charges the card twice") },
            finding(IMPORTANT, "src/pay.rs:23", "Remove the retries"),
            finding(MINOR, "src/x.rs", "Name is vague:\n\n  let x = 1;"),
        ],
    );
    let mut security = review("security", Verdict::NeedsDiscussion);
    security.summary = "Who may charge whom is not written down.\n\n1. Ask.".into();
    security.confidence = Confidence::Unstated;
    vec![security, code, spec, missing("tests")]
}

/// Merges and renders the reviews at the default threshold.
pub fn shown(reviews: &[Review], format: &str) -> String {
    let format = format.parse::<ReviewFormat>().expect("a format");
    render(&merge(reviews, FailThreshold::Medium), FailThreshold::Medium, format)
}
