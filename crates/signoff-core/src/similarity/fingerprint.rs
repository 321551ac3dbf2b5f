//! The fingerprint that identifies a finding across cycles.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

use super::words;
use crate::hex::hex;
use crate::ids::FindingId;
use crate::review::Finding;

const PREFIX: &str = "f-";
const DIGITS: usize = 10;

/// The fingerprint of a finding: a hash of file, kind and normalised words, without the line.
///
/// Case, punctuation, quoting, word order and lines mentioned in the text make no difference.
pub fn fingerprint(file: Option<&str>, kind: &str, description: &str) -> FindingId {
    let read = words::normalize(description);
    let mut said: BTreeSet<String> = read.words.into_iter().chain(read.numbers).collect();
    if said.is_empty() {
        said.insert(read.letters.into_iter().collect());
    }
    let mut hasher = Sha256::new();
    for field in [file.map_or("", without_dot), &kind.trim().to_lowercase()] {
        hasher.update(field);
        hasher.update([0]);
    }
    for word in said {
        hasher.update(word);
        hasher.update([0]);
    }
    FindingId::new(format!("{PREFIX}{}", hex(&hasher.finalize()[..DIGITS / 2])))
}

fn without_dot(file: &str) -> &str {
    file.trim_start_matches("./")
}

/// Assigns each finding its fingerprint as id. Equal fingerprints within one review are numbered in order of line.
///
/// Findings without a line come last. Equal lines are ordered by position.
pub fn assign_ids(findings: &mut [Finding]) {
    let mut order: Vec<&mut Finding> = findings.iter_mut().collect();
    order.sort_by_key(|finding| Reverse(finding.line.map(Reverse)));
    let mut taken: BTreeMap<FindingId, u32> = BTreeMap::new();
    for finding in order {
        let id = fingerprint(finding.file.as_deref(), &finding.kind, &finding.description);
        let count = taken.entry(id.clone()).or_insert(0);
        *count += 1;
        finding.id = if *count == 1 { id } else { numbered(&id, *count) };
    }
}

/// The id of the nth finding with one fingerprint.
pub(crate) fn numbered(family: &FindingId, count: u32) -> FindingId {
    FindingId::new(format!("{family}-{count}"))
}

/// Splits an id into fingerprint and number as [`assign_ids`] sets them. Any other id is number 1 of itself.
pub(crate) fn family(id: &FindingId) -> (FindingId, u32) {
    let family = id.as_str().split_at_checked(PREFIX.len() + DIGITS).and_then(|(family, rest)| {
        let number = rest.strip_prefix('-')?.parse().ok()?;
        family.starts_with(PREFIX).then(|| (FindingId::new(family), number))
    });
    family.unwrap_or_else(|| (id.clone(), 1))
}
