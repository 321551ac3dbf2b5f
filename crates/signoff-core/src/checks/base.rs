//! Separates new findings from those that the base has too, so that a task is not rejected for earlier failures.

use super::{CheckRun, findings, review};
use crate::ids::ReviewerName;
use crate::review::{Finding, Note, Review, ReviewerKind, Verdict};

/// The findings of checks on a commit, compared with those of the same checks on its base.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BaseComparison {
    /// Findings that the base does not have.
    pub new: Vec<Finding>,
    /// Findings that the base has too.
    pub on_base: Vec<Finding>,
}

impl BaseComparison {
    /// `2 failures of the checks are on the base (0123456789ab) too, and do not count: …`; none if there is none.
    pub fn note(&self, base: &str) -> Option<String> {
        let first = self.on_base.first()?.description.lines().next().unwrap_or_default();
        let base = base.get(..12).unwrap_or(base);
        Some(match self.on_base.len() {
            1 => format!("1 failure of the checks is on the base ({base}) too, and does not count: {first}"),
            count => {
                format!("{count} failures of the checks are on the base ({base}) too, and do not count: {first}, …")
            }
        })
    }
}

/// Splits the findings of a commit. Without a result for the base, all of them are new.
pub fn compare_with_base(source: &ReviewerName, ran: &[CheckRun], base: &[CheckRun]) -> BaseComparison {
    compare_findings(findings(source, ran), &findings(source, base))
}

/// Pairs each finding of the base with at most one of the commit. Of two equal findings, one is new if the base has
/// one.
fn compare_findings(found: Vec<Finding>, base: &[Finding]) -> BaseComparison {
    let mut left: Vec<&Finding> = base.iter().collect();
    let mut take = |is_it: &dyn Fn(&Finding) -> bool| {
        let found = left.iter().position(|other| is_it(other));
        found.map(|index| left.swap_remove(index)).is_some()
    };
    let (mut on_base, others): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|finding| take(&|other| is_same(finding, other)));
    let (moved, new) = others.into_iter().partition(|finding| take(&|other| differs_only_in_line(finding, other)));
    on_base.extend::<Vec<_>>(moved);
    BaseComparison { new, on_base }
}

/// Whether two findings of the same command are the same failure. Findings without a location are compared by their
/// whole output, because their fingerprint only covers the exit code.
fn is_same(one: &Finding, other: &Finding) -> bool {
    let same = one.id == other.id && one.requirement == other.requirement;
    same && (one.file.is_some() || stable(&one.description) == stable(&other.description))
}

/// Whether two findings differ only in their lines.
fn differs_only_in_line(one: &Finding, other: &Finding) -> bool {
    let place = one.file.is_some() && one.file == other.file;
    place && one.requirement == other.requirement && one.description == other.description
}

/// The text without numbers and temporary paths, which differ between runs.
fn stable(text: &str) -> String {
    let words = text.split_whitespace().filter(|word| !word.contains("/tmp/"));
    let words = words.map(|word| word.replace(|char: char| char.is_ascii_digit(), ""));
    words.collect::<Vec<_>>().join(" ")
}

/// Reviews the checks of a commit against those of its base. Failures that the base has too become notes and do not
/// block.
pub fn review_against_base(
    reviewer: &ReviewerName,
    kind: ReviewerKind,
    ran: &[CheckRun],
    base: &[CheckRun],
) -> (Review, BaseComparison) {
    let review = review(reviewer, kind, ran);
    let sorted = compare_findings(review.findings.clone(), &findings(reviewer, base));
    if sorted.on_base.is_empty() {
        return (review, sorted);
    }
    let verdict = if sorted.new.is_empty() { Verdict::ApprovedWithMinor } else { review.verdict };
    let minor = sorted.on_base.iter().map(note).chain(review.minor).collect();
    let findings = sorted.new.clone();
    (Review { verdict, findings, minor, ..review }, sorted)
}

fn note(finding: &Finding) -> Note {
    let description = format!("fails on the base too: {}", finding.description);
    Note { file: finding.file.clone(), line: finding.line, description }
}
