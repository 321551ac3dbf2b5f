//! When two findings are the same one said twice: the word rule, and the fingerprint built on it.
//!
//! Two texts are *alike* when the mean of two overlaps reaches [`ALIKE_PERMILLE`]:
//!
//! 1. **Words.** Identifiers are split at case, underscore and digit; words of grammar are dropped; the rest is
//!    lower case without its ending, cut to six letters. A word weighs what its place gives it (1 for the first,
//!    then 4.5 % less from word to word: people say first what is wrong), once per mention.
//! 2. **Letters.** Every run of five letters or digits, a gap between words being one more letter.
//!
//! An overlap is what both have over what either has (weighted Jaccard). Two texts that both name amounts (two
//! digits or more, status codes aside) are alike only if these are the same: `30%` is not `50%`. References to
//! lines (`line 45`, `a.rs:45`) are no words and no amounts. One word in common is never enough where both have
//! more. All arithmetic is on integers.

use std::collections::BTreeMap;

mod fingerprint;
mod words;

pub use fingerprint::{assign_ids, fingerprint};
pub(crate) use fingerprint::{family, numbered};

/// The mean overlap, in thousandths, from which two texts are alike. See ADR 2 for how it was found.
pub const ALIKE_PERMILLE: u32 = 130;

/// The mean overlap, in thousandths, from which two texts are nearly the same. One changed word in a sentence of ten
/// gives about 800. See ADR 2.
pub const NEARLY_SAME_PERMILLE: u32 = 900;

/// How much a word weighs against the one before it, in thousandths.
const FADING: u32 = 955;
/// What the first word weighs.
const FIRST_WEIGHT: u32 = 1_000_000;
/// Letters in a run.
const RUN: usize = 5;

/// Whether two descriptions speak of the same issue, by their words alone.
pub fn alike(a: &str, b: &str) -> bool {
    Signature::of(a).alike(&Signature::of(b))
}

/// What the word rule knows of a text, computed once to be compared often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    words: Bag,
    runs: Bag,
    amounts: Vec<String>,
}

impl Signature {
    pub fn of(text: &str) -> Self {
        let read = words::read(text);
        Self { words: fading(&read.words), runs: runs(&read.letters), amounts: read.amounts }
    }

    /// Whether both speak of the same issue. Symmetric; true of any text and itself, unless it is blank.
    pub fn alike(&self, other: &Self) -> bool {
        self.score(other) >= ALIKE_PERMILLE && self.shares_enough_words(other)
    }

    /// One word in common is a topic, not an issue: "missing input validation" and "user input not sanitized"
    /// are two findings. A text with a single word has no second one to share.
    fn shares_enough_words(&self, other: &Self) -> bool {
        let fewer = self.words.weights.len().min(other.words.weights.len());
        self.words.common(&other.words).len() >= fewer.min(2)
    }

    /// The mean overlap in thousandths; 0 where amounts contradict each other.
    pub fn score(&self, other: &Self) -> u32 {
        if self.contradicts(other) {
            return 0;
        }
        let letters = self.runs.overlap(&other.runs);
        // Texts made of grammar or numbers alone have no words to compare.
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

/// Weighted things, by the hash of what they are; sorted, so that two can be walked together.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bag {
    weights: Vec<(u64, u64)>,
    total: u64,
}

impl Bag {
    fn of(things: impl Iterator<Item = (u64, u64)>) -> Self {
        let mut weights = BTreeMap::new();
        for (thing, weight) in things {
            *weights.entry(thing).or_insert(0) += weight;
        }
        let total = weights.values().sum();
        Self { weights: weights.into_iter().collect(), total }
    }

    /// What both have, with the weight that both give it.
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

    /// What both have over what either has, in thousandths.
    fn overlap(&self, other: &Self) -> u32 {
        let shared: u64 = self.common(other).into_iter().sum();
        let either = self.total + other.total - shared;
        let permille = (shared * 1000).checked_div(either).unwrap_or(0);
        u32::try_from(permille).unwrap_or(1000)
    }
}

/// The words with weights that fade from the first to the last.
fn fading(words: &[String]) -> Bag {
    let weights = std::iter::successors(Some(FIRST_WEIGHT), |weight| {
        Some(u32::try_from(u64::from(*weight) * u64::from(FADING) / 1000).unwrap_or(1).max(1))
    });
    Bag::of(words.iter().zip(weights).map(|(word, weight)| (hash(word.chars()), u64::from(weight))))
}

/// Every run of five letters, once per mention; a shorter text is one run.
fn runs(letters: &[char]) -> Bag {
    if letters.len() <= RUN {
        return Bag::of(letters.first().map(|_| (hash(letters.iter().copied()), 1)).into_iter());
    }
    Bag::of(letters.windows(RUN).map(|run| (hash(run.iter().copied()), 1)))
}

/// FNV-1a: the standard library promises no hash that stays the same from release to release.
fn hash(chars: impl Iterator<Item = char>) -> u64 {
    chars.fold(0xcbf2_9ce4_8422_2325, |hash: u64, char| {
        (hash ^ u64::from(u32::from(char))).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
