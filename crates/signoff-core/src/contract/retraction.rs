//! Words after an approval that take it back: "I retract my approval", "do not merge this".
//!
//! The rule is short on purpose: it reads sentences of the reviewer's own, not code and not quotations, and knows
//! a few ways to say it. A sentence it takes for a retraction by mistake costs a second try, never an approval.

use std::ops::Range;

use super::Ask;
use super::binding::{Candidate, Standing};
use super::message::Message;
use super::outline::Shown;
use crate::review::{Violation, ViolationCode};

const WITHDRAWALS: [&str; 17] = [
    "retract",
    "retracts",
    "retracted",
    "retracting",
    "withdraw",
    "withdrawn",
    "withdrawing",
    "withdrew",
    "revoke",
    "revoked",
    "revoking",
    "rescind",
    "rescinded",
    "rescinding",
    "recant",
    "overturn",
    "overturned",
];
const APPROVALS: [&str; 7] = ["approval", "approve", "approved", "verdict", "signoff", "sign-off", "lgtm"];
/// What may stand between a withdrawal and the approval it is about, in either order.
const BETWEEN: [&str; 19] = [
    "my",
    "the",
    "this",
    "that",
    "previous",
    "earlier",
    "above",
    "prior",
    "initial",
    "first",
    "is",
    "was",
    "has",
    "been",
    "hereby",
    "now",
    "must",
    "be",
    "therefore",
];
const NEGATIONS: [&str; 12] = [
    "not", "never", "cannot", "cant", "dont", "wont", "shouldnt", "mustnt", "isnt", "no", "couldnt",
    "wouldnt",
];
/// What the reviewer speaks of when it says "is not approved".
const SUBJECTS: [&str; 10] =
    ["i", "we", "this", "it", "change", "changes", "work", "diff", "patch", "commit"];
/// What may stand between the reviewer and what it does: "I must therefore reject …".
const FILLERS: [&str; 17] = [
    "hereby",
    "now",
    "must",
    "have",
    "to",
    "therefore",
    "want",
    "would",
    "like",
    "will",
    "am",
    "should",
    "do",
    "actually",
    "be",
    "been",
    "longer",
];
const PHRASES: [&str; 14] = [
    " changed my mind ",
    " change my mind ",
    " on second thought ",
    " on second thoughts ",
    " scratch that ",
    " take it back ",
    " take that back ",
    " take this back ",
    " disregard the above ",
    " disregard my approval ",
    " ignore the above ",
    " ignore my approval ",
    " approved by mistake ",
    " approval was a mistake ",
];

/// The first approval with the right nonce and the first without it, as far as they are said.
pub(super) fn approvals<'c>(candidates: &'c [Candidate], ask: &Ask) -> impl Iterator<Item = &'c Candidate> {
    let approving = |carries: bool| {
        candidates.iter().find(|one| {
            let approves = one.answer.as_ref().is_ok_and(|review| review.verdict.approves());
            approves && !one.standing.is_shown() && one.binding.carries(ask) == carries
        })
    };
    [approving(false), approving(true)].into_iter().flatten()
}

/// Adds a doubt for each approval that a later sentence takes back.
pub(super) fn add(candidates: &mut Vec<Candidate>, message: &Message<'_>, ask: &Ask) {
    let doubts: Vec<Candidate> = approvals(candidates, ask)
        .filter_map(|approval| {
            let offset = first_after(message, approval.offset)?;
            let binding = approval.binding.clone();
            Some(Candidate { offset, binding, standing: Standing::Doubt, answer: Err(violation(offset)) })
        })
        .collect();
    candidates.extend(doubts);
}

pub(super) fn violation(offset: usize) -> Violation {
    let message = "the text after the verdict takes the approval back";
    Violation::new(ViolationCode::Disagreement, offset, message)
}

/// Whether a text of its own, such as a summary, takes the approval back.
pub(super) fn is_in(text: &str) -> bool {
    sentences(text).any(|sentence| withdraws(&words(&text[sentence])))
}

/// The first sentence from `from` on that takes an approval back, and is said.
pub(super) fn first_after(message: &Message<'_>, from: usize) -> Option<usize> {
    let text = &message.text()[from..];
    let is_said = |at: usize| matches!(message.outline().shown(from + at), None | Some(Shown::Html));
    sentences(text)
        .filter(|sentence| withdraws(&words(&text[sentence.clone()])))
        .find(|sentence| {
            let said: String = text[sentence.clone()]
                .char_indices()
                .filter(|(at, _)| is_said(sentence.start + at))
                .map(|(_, c)| c)
                .collect();
            withdraws(&words(&said))
        })
        .map(|sentence| from + sentence.start)
}

/// The sentences of a text: up to a stop and white space, a blank line, or a line that begins a list item, a
/// heading or a quotation.
fn sentences(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        if from >= text.len() {
            return None;
        }
        let start = from;
        let rest = &text[start..];
        let end = rest.char_indices().find_map(|(at, c)| {
            let after = &rest[at + c.len_utf8()..];
            let stops = matches!(c, '.' | '!' | '?' | ';') && after.starts_with(|c: char| c.is_whitespace());
            let breaks = c == '\n' && begins_anew(after);
            (stops || breaks).then_some(at + c.len_utf8())
        });
        from = start + end.unwrap_or(rest.len());
        Some(start..from)
    })
}

fn begins_anew(line: &str) -> bool {
    let bare = line.trim_start_matches([' ', '\t', '\r']);
    let number = bare.trim_start_matches(|c: char| c.is_ascii_digit());
    bare.starts_with(['\n', '#', '>', '-', '*', '+', '|', '`', '<'])
        || (number.len() < bare.len() && number.starts_with(['.', ')']))
}

/// The words in lower case, without apostrophes: `don’t` is `dont`. Longer ones than any that counts are cut.
fn words(sentence: &str) -> Vec<String> {
    const LONGEST: usize = 16;
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '\'' | '’');
    let word = |word: &str| {
        let letters = word.chars().filter(|c| !matches!(c, '\'' | '’')).take(LONGEST);
        letters.flat_map(char::to_lowercase).collect::<String>()
    };
    sentence.split(|c| !is_word(c)).map(word).filter(|word| !word.is_empty()).collect()
}

fn withdraws(words: &[String]) -> bool {
    let joined = format!(" {} ", words.join(" "));
    PHRASES.iter().any(|phrase| joined.contains(phrase))
        || (0..words.len()).any(|at| takes_back(words, at) || refuses(words, at) || forbids(words, at))
}

fn is_in_list(word: Option<&String>, list: &[&str]) -> bool {
    word.is_some_and(|word| list.contains(&word.as_str()))
}

/// How many of the words at `from` belong to the list, up to four.
fn run(words: &[String], from: usize, list: &[&str]) -> usize {
    const MOST: usize = 4;
    words[from.min(words.len())..].iter().take(MOST).take_while(|word| is_in_list(Some(word), list)).count()
}

/// "I retract my approval", "the approval is hereby withdrawn", "I withdraw that", "Retracted."
fn takes_back(words: &[String], at: usize) -> bool {
    let denied = at > 0 && is_in_list(words.get(at - 1), &NEGATIONS);
    if !is_in_list(words.get(at), &WITHDRAWALS) {
        let next = at + 1 + run(words, at + 1, &BETWEEN);
        return is_in_list(words.get(at), &APPROVALS) && is_in_list(words.get(next), &WITHDRAWALS);
    }
    let object = at + 1 + run(words, at + 1, &BETWEEN);
    let first_person = (0..at).rev().take(4).any(|before| {
        is_in_list(words.get(before), &["i", "we"]) && before + 1 + run(words, before + 1, &FILLERS) == at
    });
    let alone = words.len() == 1 || (first_person && at + 1 == words.len());
    let pointed = first_person && object == words.len() && at + 1 < object;
    let it = first_person && is_in_list(words.get(at + 1), &["it", "that", "this"]);
    !denied && (is_in_list(words.get(object), &APPROVALS) || alone || pointed || it)
}

/// "I do not approve this", "this is not approved", "I must reject it", "I request changes".
fn refuses(words: &[String], at: usize) -> bool {
    let word = words.get(at);
    if is_in_list(word, &NEGATIONS) {
        let next = at + 1 + run(words, at + 1, &FILLERS);
        let of_this =
            at == 0 || (at.saturating_sub(3)..at).any(|before| is_in_list(words.get(before), &SUBJECTS));
        return of_this && is_in_list(words.get(next), &["approve", "approved", "approving", "sign-off"]);
    }
    let does = at + 1 + run(words, at + 1, &FILLERS);
    let requests = is_in_list(words.get(does), &["request", "requesting"])
        && is_in_list(words.get(does + 1), &["changes"]);
    let rejects = is_in_list(words.get(does), &["reject", "rejecting"])
        && (does + 1 == words.len() || is_in_list(words.get(does + 1), &["it", "this", "the", "these"]));
    is_in_list(word, &["i", "we"]) && (requests || rejects)
}

/// "Do not merge", "this must not be landed", "not ready to ship".
fn forbids(words: &[String], at: usize) -> bool {
    const LANDS: [&str; 6] = ["merge", "merged", "land", "landed", "ship", "shipped"];
    let not = is_in_list(words.get(at), &["not", "dont", "mustnt", "shouldnt"]);
    let must = is_in_list(words.get(at), &["dont", "mustnt", "shouldnt"])
        || (at > 0 && is_in_list(words.get(at - 1), &["do", "must", "should"]));
    let ready = is_in_list(words.get(at + 1), &["ready", "safe", "fit"]);
    let skipped = if ready { at + 2 } else { at + 1 };
    let next = skipped + run(words, skipped, &["be", "to", "been", "have"]);
    not && (must || ready) && is_in_list(words.get(next), &LANDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retractions_are_told_from_other_sentences() {
        let retractions = [
            "I retract my approval, this loses money.",
            "I hereby withdraw my earlier approval.",
            "My approval is withdrawn.",
            "Approval revoked.",
            "Retracted.",
            "I take that back.",
            "I have changed my mind",
            "On second thought, the cache leaks",
            "I do not approve this.",
            "I can’t approve it as it is",
            "I no longer approve.",
            "This is not approved.",
            "Not approved!",
            "Do not merge this",
            "It must not be merged.",
            "This is not ready to ship.",
            "I must reject this",
            "I therefore request changes.",
            "I withdraw that.",
            "The verdict must be overturned",
        ];
        for text in retractions {
            assert!(is_in(text), "{text}");
        }
        let others = [
            "I withdraw my objection from the last round.",
            "I do not retract my approval.",
            "The token is revoked on logout.",
            "Users can withdraw money again.",
            "All changes requested in the last round were made.",
            "No changes requested.",
            "Orders that are not paid are rejected.",
            "The maps are not merged twice.",
            "Let me know if you want more detail.",
            "I approve this.",
            "The loader does not merge nested keys; no need to.",
            "I checked that a withdrawn offer is rejected.",
        ];
        for text in others {
            assert!(!is_in(text), "{text}");
        }
    }
}
