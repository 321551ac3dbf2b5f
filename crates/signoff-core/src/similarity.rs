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

/// A preprocessed text. Computed once and compared often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    words: WeightedBag,
    runs: WeightedBag,
    amounts: BTreeSet<String>,
}

impl Signature {
    pub fn new(text: &str) -> Self {
        let read = NormalizedText::new(text);
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
    let length = letters.len().clamp(1, RUN);
    WeightedBag::from_weights(letters.windows(length).map(|run| (hash(run.iter().copied()), 1)))
}

/// FNV-1a. The hash of the standard library may change between releases.
fn hash(chars: impl Iterator<Item = char>) -> u64 {
    chars.fold(0xcbf2_9ce4_8422_2325, |hash: u64, char| {
        (hash ^ u64::from(u32::from(char))).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Word endings that are removed. The first match is used.
const ENDINGS: [&str; 6] = ["ing", "ies", "ed", "es", "s", "ly"];
/// Minimum letters left after removing the ending.
const ROOT: usize = 3;
/// Maximum letters of a stem, so that `compare` matches `comparison`.
const STEM: usize = 6;

/// Grammatical words, which do not describe the problem.
const GRAMMAR: &str = " a an the and or but nor so yet if then else of in on at to for from by with without \
    within into onto over under up down out off is are was were be been being am do does did done doing has \
    have had having will would shall should can could may might must it its this that these those there here \
    he she they them their we our you your i me my not no yes as than too very also just only even still when \
    while where which who whom whose what why how because since until after before during between through \
    across against about all any each every some both few more most other another such same own via per etc \
    eg ie e g s t don doesn isn aren cannot ";

/// A normalised text.
#[derive(Debug, Default)]
struct NormalizedText {
    /// Content words in order, lower case, cut to their stem.
    words: Vec<String>,
    /// Letters and digits in lower case, with one blank for every gap and at both ends. Empty for a blank text.
    letters: Vec<char>,
    /// The numbers of two digits or more except status codes.
    amounts: BTreeSet<String>,
    /// Every number, in order.
    numbers: Vec<String>,
}

impl NormalizedText {
    /// Only a blank text gives an empty result.
    fn new(text: &str) -> Self {
        let tokens = tokens(text);
        let mut read = Self::default();
        for token in tokens.iter().filter(|token| !token.is_line_reference) {
            for part in token.text.split('_').filter(|part| !part.is_empty()) {
                read.letters.push(' ');
                read.letters.extend(part.chars().flat_map(char::to_lowercase));
            }
            read.numbers.extend(token.is_number().then(|| token.text.to_owned()));
            read.amounts.extend(token.is_amount().then(|| token.text.to_owned()));
            read.words.extend(parts(token.text).filter_map(|part| content_word(&part)));
        }
        if read.letters.is_empty() {
            // A text with only signs (`???`) or a line reference is compared literally.
            read.letters = text.trim().chars().collect();
        } else {
            read.letters.push(' ');
        }
        read
    }
}

/// A run of letters, digits and underscores.
#[derive(Debug)]
struct TextToken<'a> {
    text: &'a str,
    /// The text between it and the previous token.
    gap: &'a str,
    /// Whether it is part of a reference to a line.
    is_line_reference: bool,
}

impl TextToken<'_> {
    fn is_number(&self) -> bool {
        self.text.bytes().all(|byte| byte.is_ascii_digit())
    }

    /// Whether it is an amount. Digits after a decimal point are not, and `500` is a status code.
    fn is_amount(&self) -> bool {
        let is_status = self.text.len() == 3 && self.text.starts_with(['4', '5']);
        self.is_number() && self.text.len() >= 2 && !is_status && !self.gap.ends_with('.')
    }

    fn is_word(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.text.eq_ignore_ascii_case(word))
    }

    /// Whether it is a line anchor of a code forge: `L45`.
    fn is_anchor(&self) -> bool {
        let digits = self.text.strip_prefix('L').unwrap_or_default();
        (1..=6).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
    }
}

fn tokens(text: &str) -> Vec<TextToken<'_>> {
    let mut tokens: Vec<TextToken<'_>> = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(is_token_char) {
        let (gap, from) = rest.split_at(start);
        let (word, after) = from.split_at(from.find(|char| !is_token_char(char)).unwrap_or(from.len()));
        let token = TextToken { text: word, gap, is_line_reference: false };
        let is_line_reference = mark_place(&mut tokens, &token);
        tokens.push(TextToken { is_line_reference, ..token });
        rest = after;
    }
    tokens
}

fn is_token_char(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

/// Whether a token is a line number, given the tokens before it. Marks the words `line` and `to` and the path as
/// well.
fn mark_place(before: &mut [TextToken<'_>], token: &TextToken<'_>) -> bool {
    if token.is_anchor() {
        return true;
    }
    let [earlier @ .., last] = before else { return false };
    if !token.is_number() {
        return false;
    }
    let gap = token.gap.trim();
    if last.is_word(&["line", "lines"]) && matches!(gap, "" | ":" | "#" | "~" | "-") {
        last.is_line_reference = true;
        return true;
    }
    if last.is_line_reference {
        return matches!(gap, ":" | "-" | "–" | "—" | "," | "/" | "&" | "+");
    }
    let joins = last.is_word(&["to", "and", "or"]) && matches!(last.gap.trim(), "" | ",") && gap.is_empty();
    if joins && earlier.last().is_some_and(|token| token.is_line_reference) {
        last.is_line_reference = true;
        return true;
    }
    // `src/a.rs:45`, but not `timeout:45`.
    let is_path = token.gap == ":" && joins_path(last.gap) && !last.is_number();
    if is_path {
        mark_path(before);
    }
    is_path
}

/// Marks the path before a line number as part of the reference. A finding that names its own location adds
/// nothing.
fn mark_path(before: &mut [TextToken<'_>]) {
    for token in before.iter_mut().rev() {
        token.is_line_reference = true;
        if !joins_path(token.gap) {
            break;
        }
    }
}

fn joins_path(gap: &str) -> bool {
    matches!(gap, "." | "/" | "-" | "\\")
}

/// Splits an identifier: `HTTPServer_v2` is `HTTP`, `Server`, `v`, `2`.
fn parts(token: &str) -> impl Iterator<Item = String> {
    let mut parts = vec![String::new()];
    let mut chars = token.chars().peekable();
    let mut before = None;
    while let Some(char) = chars.next() {
        if before.is_some_and(|before| starts_part(before, char, chars.peek().copied())) {
            parts.push(String::new());
        }
        before = Some(char);
        if let Some(part) = parts.last_mut().filter(|_| char != '_') {
            part.push(char);
        }
    }
    parts.into_iter().filter(|part| !part.is_empty())
}

fn starts_part(before: char, char: char, after: Option<char>) -> bool {
    let hump = char.is_uppercase() && (!before.is_uppercase() || after.is_some_and(|after| after.is_lowercase()));
    hump || char == '_' || before.is_numeric() != char.is_numeric()
}

/// The normalised word, unless it is grammatical or a number.
fn content_word(part: &str) -> Option<String> {
    let lower = part.to_lowercase();
    let counts = !lower.chars().all(char::is_numeric) && !GRAMMAR.contains(&format!(" {lower} "));
    counts.then(|| root(&lower).chars().take(STEM).collect())
}

fn root(word: &str) -> &str {
    let mut roots = ENDINGS.iter().filter_map(|ending| word.strip_suffix(ending));
    roots.find(|rest| rest.chars().count() >= ROOT).unwrap_or(word)
}

/// The prefix of a fingerprint, and the number of digits after it.
const PREFIX: &str = "f-";
const DIGITS: usize = 10;

/// The fingerprint of a finding: a hash of file, kind and normalised words, without the line.
///
/// Case, punctuation, quoting, word order and lines mentioned in the text make no difference.
pub fn fingerprint(file: Option<&str>, kind: &str, description: &str) -> FindingId {
    let read = NormalizedText::new(description);
    let mut tokens: BTreeSet<String> = read.words.into_iter().chain(read.numbers).collect();
    if tokens.is_empty() {
        tokens.insert(read.letters.into_iter().collect());
    }
    let mut hasher = Sha256::new();
    let file = file.map_or("", |file| file.trim_start_matches("./")).to_owned();
    for field in [file, kind.trim().to_lowercase()].into_iter().chain(tokens) {
        hasher.update(field);
        hasher.update([0]);
    }
    FindingId::new(format!("{PREFIX}{}", hex(&hasher.finalize()[..DIGITS / 2])))
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
