//! Sentences that contradict an approval: "I reject this", "do not merge", "I retract my approval".
//!
//! The rule is a list of phrases. It reads only the reviewer's own sentences, not code or quotations. A false
//! positive costs a retry, never a wrong approval.

use std::ops::Range;
use std::sync::LazyLock;

use super::candidates::{AnswerCandidate, CandidateKind};
use super::markdown_structure::MarkupKind;
use super::message::{FinalMessage, lines_from};
use super::{ReviewRequest, wording};
use crate::review::{Violation, ViolationCode};

/// Phrases that contradict an approval anywhere in the text, one in each line. A phrase is a sequence of words: `a|b`
/// is one of several, `a*` a word with this prefix, `~` up to four fillers, `%` up to 16 words that do not settle
/// a finding, `^` the start of the sentence, `$` its end, and a capital letter one of the `LISTS`.
const CONTRADICTIONS: &str = include_str!("text/contradictions.txt");

/// Phrases that withdraw an approval before them. The last ones are about findings that remain, and prefixes that
/// negate themselves: `APPROVED: NO`.
const WITHDRAWALS: &str = include_str!("text/withdrawals.txt");

/// Lists of words by the capital letter that stands for them in a phrase, one in each line. `F` are words that do not
/// change a phrase: "I must *therefore* reject it", "*the* approval *is hereby* withdrawn".
static LISTS: LazyLock<Vec<(&str, &str)>> =
    LazyLock::new(|| include_str!("text/word_lists.txt").lines().filter_map(|line| line.split_once(' ')).collect());

/// The first approval with the right nonce and the first without it, unless they are quoted.
pub(super) fn approvals<'c>(
    candidates: &'c [AnswerCandidate],
    request: &ReviewRequest,
) -> impl Iterator<Item = &'c AnswerCandidate> {
    let approving = |carries: bool| {
        let counts = |candidate: &&AnswerCandidate| {
            !candidate.kind.is_quoted_or_fragment() && candidate.binding.has_nonce_of(request) == carries
        };
        candidates.iter().find(|candidate| candidate.approves() == Some(true) && counts(candidate))
    };
    [approving(false), approving(true)].into_iter().flatten()
}

/// Adds an objection for each approval that a later sentence withdraws.
pub(super) fn add_retractions(
    candidates: &mut Vec<AnswerCandidate>,
    message: &FinalMessage<'_>,
    request: &ReviewRequest,
) {
    let objections: Vec<AnswerCandidate> = approvals(candidates, request)
        .filter_map(|approval| {
            let offset = first_after(message, approval.offset)?;
            let binding = approval.binding.clone();
            Some(AnswerCandidate { offset, binding, kind: CandidateKind::Doubt, answer: Err(violation(offset)) })
        })
        .collect();
    candidates.extend(objections);
}

pub(super) fn violation(offset: usize) -> Violation {
    let message = "the text after the verdict withdraws the approval";
    Violation::new(ViolationCode::Disagreement, offset, message)
}

/// Whether a separate text, such as a summary, contradicts the approval beside it.
pub(super) fn is_stated_in(text: &str) -> bool {
    let contradicts = |words: &[String]| contradicts_anywhere(words) || withdraws_approval(words);
    sentences(text).any(|sentence| !is_question(&text[sentence.clone()]) && contradicts(&words(&text[sentence])))
}

/// The first unquoted sentence after `from` that withdraws an approval.
pub(super) fn first_after(message: &FinalMessage<'_>, from: usize) -> Option<usize> {
    first(message, from, withdraws_approval)
}

/// The first unquoted sentence that contradicts an approval.
pub(super) fn first_anywhere(message: &FinalMessage<'_>) -> Option<usize> {
    first(message, 0, contradicts_anywhere)
}

fn first(message: &FinalMessage<'_>, from: usize, contradicts: fn(&[String]) -> bool) -> Option<usize> {
    let text = &message.text()[from..];
    sentences(text)
        .filter(|sentence| !is_question(&text[sentence.clone()]) && contradicts(&words(&text[sentence.clone()])))
        .find(|sentence| contradicts(&words(&own_text(message, from + sentence.start..from + sentence.end))))
        .map(|sentence| from + sentence.start)
}

/// The reviewer's own text in a sentence: link texts without their targets, and of inline code only finding ids.
fn own_text(message: &FinalMessage<'_>, sentence: Range<usize>) -> String {
    let mut visible = String::new();
    let mut in_target = false;
    for (at, c) in message.text()[sentence.clone()].char_indices() {
        let at = sentence.start + at;
        let markup = message.markup_at(at);
        in_target = markup == Some(MarkupKind::Link) && (in_target || message.text()[at..].starts_with("]("));
        let is_prose = match markup {
            None | Some(MarkupKind::Html) => true,
            Some(MarkupKind::Link) => !in_target,
            Some(MarkupKind::InlineCode) => wording::is_in_finding_id(message.text(), at),
            Some(
                MarkupKind::Code
                | MarkupKind::Diff
                | MarkupKind::Quote
                | MarkupKind::Comment
                | MarkupKind::Struck
                | MarkupKind::Element,
            ) => false,
        };
        visible.extend(is_prose.then_some(c));
    }
    visible
}

/// The sentences of a text, and each line of sentences that span several lines.
fn sentences(text: &str) -> impl Iterator<Item = Range<usize>> {
    paragraphs(text).flat_map(move |sentence| {
        let lines = lines_from(&text[..sentence.end], sentence.start).map(|line| line.range());
        let lines: Vec<_> = lines.filter(|line| *line != sentence).collect();
        std::iter::once(sentence).chain(lines)
    })
}

/// Splits the text at a full stop followed by white space, at a blank line, and before a list item, heading or
/// quotation.
fn paragraphs(text: &str) -> impl Iterator<Item = Range<usize>> {
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
            // `Ready to merge? No` is one statement.
            let stops = stops && !(c == '?' && rest[..at].ends_with("merge") && !after.starts_with('\n'));
            let breaks = c == '\n' && begins_block(after);
            (stops || breaks).then_some(at + c.len_utf8())
        });
        from = start + end.unwrap_or(rest.len());
        Some(start..from)
    })
}

/// Whether it is a question, which states nothing: "Is it still there?"
fn is_question(sentence: &str) -> bool {
    sentence.trim_end().ends_with('?')
}

fn begins_block(line: &str) -> bool {
    let bare = line.trim_start_matches([' ', '\t', '\r']);
    let number = bare.trim_start_matches(|c: char| c.is_ascii_digit());
    bare.starts_with(['\n', '#', '>', '-', '*', '+', '|', '`', '<'])
        || (number.len() < bare.len() && number.starts_with(['.', ')']))
}

/// The words in lower case, without apostrophes and without text in quotation marks: `don’t` is `dont`. Long words
/// are truncated. `No` before a comma, colon or dash is an answer and becomes `nope`, because it does not negate
/// what follows. A mark such as ✅ beside a finding id becomes `fixed`.
fn words(sentence: &str) -> Vec<String> {
    const MAX_WORD_CHARS: usize = 18;
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '\\' | '\'' | '’');
    let word = |word: &str| {
        let answers = word.ends_with([',', ':']);
        let word = word.trim_end_matches(|c| !is_word(c)).trim_matches(['_', '-']);
        let letters = word.chars().filter(|c| !matches!(c, '\'' | '’' | '\\'));
        let word: String = letters.take(MAX_WORD_CHARS).flat_map(char::to_lowercase).collect();
        if answers && word == "no" { "nope".to_owned() } else { word }
    };
    let sentence = [" - ", " – ", " — "].iter().fold(sentence.to_owned(), |text, dash| text.replace(dash, ", "));
    let unquoted = sentence.split(['"', '“', '”']).step_by(2);
    let words = unquoted.flat_map(|text| text.split_inclusive(|c| !is_word(c)));
    let ticked = wording::has_check_mark(&sentence) && wording::contains_finding_id(&sentence);
    let words = words.map(word).filter(|word| !word.is_empty());
    words.chain(ticked.then(|| "fixed".to_owned())).collect()
}

fn contradicts_anywhere(words: &[String]) -> bool {
    contains(words, CONTRADICTIONS)
}

fn withdraws_approval(words: &[String]) -> bool {
    contains(words, WITHDRAWALS)
}

fn contains(words: &[String], phrases: &str) -> bool {
    phrases.lines().any(|phrase| {
        let phrase: Vec<&str> = phrase.split(' ').collect();
        (0..=words.len()).any(|at| matches_from(words, at, &phrase) && !is_cancelled(words, at, &phrase))
    })
}

/// Whether the words from `at` on match the phrase.
fn matches_from(words: &[String], at: usize, phrase: &[&str]) -> bool {
    const MAX_FILLERS: usize = 4;
    const FURTHEST: usize = 16;
    match phrase.split_first() {
        None => true,
        Some((&"~", rest)) => {
            let fillers = words[at..].iter().take(MAX_FILLERS).take_while(|word| is_one_of(word, "F"));
            (at..=at + fillers.count()).any(|next| matches_from(words, next, rest))
        }
        Some((&"%", rest)) => {
            let more = words[at..].iter().take(FURTHEST).take_while(|word| !is_one_of(word, "K"));
            (at..=at + more.count()).any(|next| matches_from(words, next, rest) && !is_negated(words, next))
        }
        Some((slot, rest)) => slot.split('|').any(|choice| match choice {
            "^" => at == 0 && matches_from(words, at, rest),
            "$" => at == words.len() && matches_from(words, at, rest),
            _ => words.get(at).is_some_and(|word| is_one_of(word, choice)) && matches_from(words, at + 1, rest),
        }),
    }
}

/// Whether a word matches one choice in a slot of a phrase.
fn is_one_of(word: &str, choice: &str) -> bool {
    match LISTS.iter().find(|(name, _)| *name == choice) {
        Some((_, words)) => is_in(word, words),
        None => choice.strip_suffix('*').map_or(word == choice, |stem| word.starts_with(stem)),
    }
}

fn is_in(word: &str, words: &str) -> bool {
    words.split(' ').any(|choice| is_one_of(word, choice))
}

/// Whether the words before a phrase cancel it: "I do *not* retract my approval", "*no* changes are required", "the
/// *previous* verdict was CHANGES_REQUESTED" (unless it still holds).
fn is_cancelled(words: &[String], at: usize, phrase: &[&str]) -> bool {
    let negated = || {
        let first = words.first().filter(|_| at > 0);
        is_negated(words, at) || first.is_some_and(|word| is_in(word, "nothing no none"))
    };
    let is_past = || {
        let stands = |word: &String| is_in(word, "stands holds remains upheld unchanged");
        words[..at].iter().any(|word| is_one_of(word, "P")) && !words.iter().any(stands)
    };
    (!phrase.contains(&"N") && negated()) || (matches!(phrase[0], "T" | "V") && is_past())
}

/// Whether the last significant word before `at` is a negation: "is *no* longer open".
fn is_negated(words: &[String], at: usize) -> bool {
    let before = words[..at].iter().rev().find(|word| !is_one_of(word, "F"));
    before.is_some_and(|word| is_one_of(word, "N"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retractions_differ_from_other_sentences() {
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
            "Wait, I was wrong.",
            "Reject this.",
            "Please reject the change",
            "Correction: changes are required before this can be merged.",
            "Changes required.",
            "CHANGES_REQUESTED",
            "My final verdict is CHANGES_REQUESTED",
            "My approval was a mistake.",
            "I should not have approved this.",
            "This can't be merged",
            "Please don't merge yet.",
            "Hold off on merging, the tests are red.",
            "This needs more work",
            "It needs to be fixed first.",
            "This change should be rejected.",
            "Sorry, I can't sign off on this.",
            "Disregard my earlier approval.",
            "I’m withdrawing my approval",
            "Never mind the approval above.",
            "This is not right, I retract my approval.",
            "I am changing my verdict",
            "Rejected.",
            "This should be rejected.",
            "I'd reject this.",
            "I'm rejecting this.",
            "I refuse to approve.",
            "I disapprove.",
            "It isn't safe to merge.",
            "Not ready for merge.",
            "I don't think this should be merged.",
            "I wouldn't merge this.",
            "I take my approval back.",
            "I'm reversing my approval.",
            "My approval is void.",
            "Ignore the verdict above.",
            "Strike that.",
            "I approved too early.",
            "I spoke too soon.",
            "My verdict was wrong.",
            "I meant CHANGES_REQUESTED.",
            "Needs changes.",
            "This must be fixed before merging.",
            "I veto this.",
            "NACK",
            "Not LGTM.",
            "Approval denied.",
            "I found a critical issue after all.",
            "One blocking issue remains: data loss.",
            "## Verdict\nCHANGES_REQUESTED",
            "Verdict: CHANGES\\_REQUESTED",
            "Verdict: REJECT",
            "**Final Verdict: FAIL**",
            "Decision: not approved",
            "Recommendation: NEEDS_WORK",
            "APPROVED: NO",
            "APPROVED: false - it deletes the users table",
            "APPROVED: no, not approved",
            "Verdict: Request changes",
            "Verdict: ISSUES",
            "I'm changing this to changes requested.",
            "This is rejected.",
            "The approval above is invalid.",
            "I no longer stand by this approval.",
            "Edit: found a critical bug, do not approve.",
            "There is a critical bug in the cart.",
            "This must not be merged: it deletes the users table.",
            "- f-dd64e547f9",
            "f-dd64e547f9 has not been dealt with.",
            "Wait, the cache leaks.",
            "No, changes are required.",
            "No: changes are required.",
            "No — changes are required",
            "APPROVED: no, changes are required",
            "Recommendation: do not merge",
            "The previous verdict still stands: CHANGES_REQUESTED.",
            "The earlier verdict was CHANGES_REQUESTED and it still stands.",
            "**Ready to merge?** No",
            "Ready to merge? No",
            "**Ready to merge?** No - a.py:1 loses data",
            "**Ready to merge?** With fixes",
            "**Status:** ❌ Changes requested",
            "Overall: CHANGES REQUESTED",
            "Overall assessment: Needs work",
            "**Assessment:** Not ready to merge",
            "| f-dd64e547f9 | critical | open |",
            "| f-dd64e547f9 | important | unresolved |",
            "The critical finding f-dd64e547f9 (new.txt:1) is still there.",
            "Critical finding f-dd64e547f9 at new.txt:1: not fixed.",
            "Still open: f-dd64e547f9",
            "Remaining findings: f-dd64e547f9",
            "f-dd64e547f9 ✅ is not fixed",
            "Not fixed: f-dd64e547f9, f-22d1aa90c4",
            "The critical finding at a.py:1 remains.",
            "Requesting changes: this loses money.",
            "There is one critical issue: a.py:6 loses money.",
            "This is a blocker.",
        ];
        let missed: Vec<&str> = retractions.into_iter().filter(|text| !is_stated_in(text)).collect();
        assert!(missed.is_empty(), "{missed:#?}");
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
            "We reject the request if the token is missing.",
            "I verified that we reject the invalid tokens.",
            "Nothing here makes me withdraw my approval.",
            "No need to change my mind.",
            "The user can revoke the approval.",
            "The approval is revoked on logout, as the spec says.",
            "The pool will take it back when done.",
            "The handler should not be merged with the other.",
            "Do not ship secrets: the new check enforces that.",
            "We request changes from the server every 5 s.",
            "The comment says \"do not merge\"; it is now obsolete.",
            "The previous verdict was CHANGES_REQUESTED; all points are resolved.",
            "The outcome is what the task asks for.",
            "The decision needs no ADR.",
            "For invalid input the outcome is rejected with 400.",
            "Wait times are bounded now.",
            "Stop words are filtered.",
            "In cycle 1 I requested changes because of the cache.",
            "Is f-dd64e547f9 still there? No: it is gone.",
            "f-dd64e547f9: open redirect, fixed.",
            "APPROVED: no issues found.",
            "No blocking issues remain.",
            "I found no critical issue.",
            "No further changes are required.",
            "There is no need to reject this.",
            "I see no reason to retract my approval.",
            "Nothing must be fixed.",
            "I was not able to break it.",
            "The branch can be merged.",
            "Ready to merge.",
            "The required changes were made.",
            "The retry does not wait any longer than before.",
            "Good work; the fix is small and well tested.",
            "**No** changes are required.",
            "No, no changes are required.",
            "Ready to merge? Yes.",
            "**Ready to merge?** No blockers left, so yes.",
            "Ready to merge with the main branch.",
            "The decision not to merge the maps is right.",
            "Jobs whose status is not approved are skipped.",
            "Status: failed jobs are retried.",
            "The previous verdict was CHANGES_REQUESTED because a test was still missing.",
            "f-dd64e547f9 is fixed and the old API still works.",
            "f-dd64e547f9 was refuted: the mutex is still held by the caller.",
            "| f-dd64e547f9 | minor | open |",
            "f-dd64e547f9: left the socket open, fixed.",
            "f-dd64e547f9 is no longer open.",
            "| f-dd64e547f9 | ✅ |",
            "The critical finding at a.py:1 no longer remains.",
        ];
        let mistaken: Vec<&str> = others.into_iter().filter(|text| is_stated_in(text)).collect();
        assert!(mistaken.is_empty(), "{mistaken:#?}");
    }
}
