//! Decides when two findings are duplicates by comparing words, and computes the fingerprint of a finding.
//!
//! Two texts are *alike* when the mean of two overlaps reaches [`ALIKE_PERMILLE`]:
//!
//! 1. **Words.** Identifiers are split at case, underscore and digit. Grammatical words are dropped. The rest is
//!    lower case without its ending, cut to six letters. A word is weighted by its position (1 for the first, then 4.5
//!    % less per word, since descriptions begin with the problem), once per mention.
//! 2. **Letters.** Every run of five letters or digits. A gap between words counts as a letter.
//!
//! An overlap is the intersection divided by the union (weighted Jaccard). Two texts that both contain amounts (two
//! digits or more, except status codes) are alike only if the amounts are equal: `30%` is not `50%`. References to
//! lines (`line 45`, `a.rs:45`) are neither words nor amounts. One common word is not enough if both texts have
//! more. All arithmetic uses integers.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

use crate::hex::hex;
use crate::ids::FindingId;
use crate::review::Finding;

mod words;

/// The mean overlap, in thousandths, from which two texts are alike. ADR 2 explains the value.
pub const ALIKE_PERMILLE: u32 = 130;

/// The mean overlap, in thousandths, from which two texts are nearly the same. One changed word in a sentence of
/// ten gives about 800. See ADR 2.
pub const NEARLY_SAME_PERMILLE: u32 = 900;

/// The weight of a word relative to the previous one, in thousandths.
const WEIGHT_DECAY: u32 = 955;
/// The weight of the first word.
const FIRST_WEIGHT: u32 = 1_000_000;
/// Number of letters in a run.
const RUN: usize = 5;

/// Whether two descriptions describe the same issue, by their words alone.
pub fn alike(a: &str, b: &str) -> bool {
    Signature::new(a).alike(&Signature::new(b))
}

/// A preprocessed text. Computed once and compared often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    words: WeightedBag,
    runs: WeightedBag,
    amounts: Vec<String>,
}

impl Signature {
    pub fn new(text: &str) -> Self {
        let read = words::normalize(text);
        Self { words: weighted_words(&read.words), runs: runs(&read.letters), amounts: read.amounts }
    }

    /// Whether both describe the same issue. Symmetric, and reflexive except for blank texts.
    pub fn alike(&self, other: &Self) -> bool {
        self.score(other) >= ALIKE_PERMILLE && self.shares_enough_words(other)
    }

    /// Whether the texts share enough words. One common word is a topic, not an issue: "missing input validation"
    /// and "user input not sanitized" are two findings. A text with a single word has no second one to share.
    fn shares_enough_words(&self, other: &Self) -> bool {
        let fewer = self.words.weights.len().min(other.words.weights.len());
        self.words.common(&other.words).len() >= fewer.min(2)
    }

    /// The mean overlap in thousandths. 0 if the amounts contradict each other.
    pub fn score(&self, other: &Self) -> u32 {
        if self.contradicts(other) {
            return 0;
        }
        let letters = self.runs.overlap(&other.runs);
        // Texts with only grammatical words or numbers have no words to compare.
        if self.words.total == 0 && other.words.total == 0 {
            return letters;
        }
        (self.words.overlap(&other.words) + letters) / 2
    }

    fn contradicts(&self, other: &Self) -> bool {
        let both = !self.amounts.is_empty() && !other.amounts.is_empty();
        both && self.amounts != other.amounts
    }
}

/// A weighted multiset of hashes, sorted so that two can be merged in one pass.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WeightedBag {
    weights: Vec<(u64, u64)>,
    total: u64,
}

impl WeightedBag {
    fn from_weights(things: impl Iterator<Item = (u64, u64)>) -> Self {
        let mut weights = BTreeMap::new();
        for (thing, weight) in things {
            *weights.entry(thing).or_insert(0) += weight;
        }
        let total = weights.values().sum();
        Self { weights: weights.into_iter().collect(), total }
    }

    /// The common elements, with the smaller weight.
    fn common(&self, other: &Self) -> Vec<u64> {
        let (mut ours, mut theirs) = (self.weights.iter().peekable(), other.weights.iter().peekable());
        let mut common = Vec::new();
        while let (Some((a, weight_a)), Some((b, weight_b))) = (ours.peek(), theirs.peek()) {
            if a == b {
                common.push(*weight_a.min(weight_b));
            }
            let (step_ours, step_theirs) = (a <= b, b <= a);
            ours.next_if(|_| step_ours);
            theirs.next_if(|_| step_theirs);
        }
        common
    }

    /// The intersection divided by the union, in thousandths.
    fn overlap(&self, other: &Self) -> u32 {
        let shared: u64 = self.common(other).into_iter().sum();
        let either = self.total + other.total - shared;
        let permille = (shared * 1000).checked_div(either).unwrap_or(0);
        u32::try_from(permille).unwrap_or(1000)
    }
}

/// The words with weights that decrease from the first to the last.
fn weighted_words(words: &[String]) -> WeightedBag {
    let weights = std::iter::successors(Some(FIRST_WEIGHT), |weight| {
        Some(u32::try_from(u64::from(*weight) * u64::from(WEIGHT_DECAY) / 1000).unwrap_or(1).max(1))
    });
    WeightedBag::from_weights(words.iter().zip(weights).map(|(word, weight)| (hash(word.chars()), u64::from(weight))))
}

/// Every run of five letters, once per mention. A shorter text is one run.
fn runs(letters: &[char]) -> WeightedBag {
    if letters.len() <= RUN {
        return WeightedBag::from_weights(letters.first().map(|_| (hash(letters.iter().copied()), 1)).into_iter());
    }
    WeightedBag::from_weights(letters.windows(RUN).map(|run| (hash(run.iter().copied()), 1)))
}

/// FNV-1a. The hash of the standard library may change between releases.
fn hash(chars: impl Iterator<Item = char>) -> u64 {
    chars.fold(0xcbf2_9ce4_8422_2325, |hash: u64, char| {
        (hash ^ u64::from(u32::from(char))).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// A fingerprint is this prefix and so many digits.
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
