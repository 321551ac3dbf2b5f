//! Sentences that contradict an approval: "I reject this", "do not merge", "I retract my approval".
//!
//! The rule is a list of phrases. It reads sentences of the reviewer's own, not code and not quotations. A sentence it
//! takes for a contradiction by mistake costs a second try, never an approval.

use std::ops::Range;

use super::Ask;
use super::binding::{Candidate, Standing};
use super::message::Message;
use super::outline::Shown;
use crate::review::{Violation, ViolationCode};

/// Phrases that contradict an approval wherever they stand: words in order, where `a|b` is one of several, `a*` a word
/// that begins so, `~` up to four [`FILLERS`], `^` the begin of the sentence, `$` its end, and a capital letter one of the
/// [`LISTS`].
const ANYWHERE: [&str; 27] = [
    "T",
    "^ f-* $",
    "f-* ~ still|remain*|persist*|unresolved|unfixed|reproduc*",
    "f-* ~ open $",
    "f-* ~ N ~ fixed|resolved|addressed|gone|solved|done|dealt",
    "V ~ R",
    "V ~ needs ~ work|changes|rework|fixes",
    "V ~ request changes",
    "V ~ issues|drift $",
    "this|it|change|patch must|should N be ~ merged|landed|shipped|approved",
    "V ~ N ~ approv*|accept*",
    "V ~ changes requested|required|needed",
    "^ ~ changes requested $",
    "I ~ W ~ A",
    "^ ~ W ~ A",
    "W my ~ A",
    "my ~ A ~ W|void|wrong|mistaken|mistake|premature|invalid|reject*|denied",
    "^ ~ A ~ W|void|denied|rejected|invalid ~ $",
    "I ~ N ~ approve|approving|accept|sign|sign-off ~ this|it|that|the|these|$|as",
    "I ~ refus*|declin* ~ approve|accept|merge|sign",
    "I ~ reject|rejecting|veto|nack|block|blocking this|it|these|$",
    "I ~ reject|rejecting|veto|nack|block|blocking ~ C",
    "I ~ disapprov*",
    "^ ~ reject|block this|it|these|$",
    "^ ~ reject|block ~ C",
    "^ rejected|disapproved|denied|nack|vetoed $",
    "^ ~ N ~ approve|approved|lgtm|merge|land|ship this|it|that|yet|until|as|before|in|$",
];

/// Phrases that take back an approval which comes before them.
const AFTERWARDS: [&str; 30] = [
    "I ~ W it|that|this|$",
    "^ W $",
    "I ~ take|taking ~ back",
    "I ~ take|taking ~ A back",
    "disregard|ignore|nevermind ~ A|above",
    "N mind ~ A|above",
    "approv* by mistake",
    "I ~ approved ~ too|prematurely",
    "spoke too soon",
    "I ~ wrong|mistaken",
    "I ~ chang* ~ mind|verdict|vote",
    "second thought*",
    "scratch|strike that",
    "^ ~ wait|correction i|we|my|this|that|the|it|there|changes|no|not|actually|$",
    "I ~ N ~ stand",
    "I ~ chang* ~ changes requested",
    "^ ~ this|it|change is|was rejected|refused $",
    "do N approve|merge|land|ship this|it|yet|$",
    "dont approve|merge|land|ship this|it|yet|$",
    "S ~ N ~ approve|approved|approving|sign|sign-off",
    "S ~ N ~ L",
    "I ~ N think|believe ~ L|approved|ready|good",
    "N ready|safe|fit to|for ~ L|production",
    "^|S ~ N ready $",
    "I ~ request|requesting changes before|first|here|because|as|in|$",
    "S ~ should|must be rejected|blocked|reverted",
    "changes ~ required|needed|necessary ~ before|first|here|$",
    "^|S ~ needs|need|requires ~ changes|work|rework|fixing|fixes|fixed|reworked",
    "S ~ must|should ~ fixed|reworked",
    "^ ~ hold off|this|it",
];

/// The same for words about findings, and for a prefix that denies itself: `APPROVED: NO`.
const REMAINING: [&str; 5] = [
    "I ~ found|missed|overlooked ~ critical|blocking|serious|severe",
    "there is|are ~ critical|blocking|serious bug|bugs|issue|issues|problem|problems|defect|defects",
    "critical|blocking|serious issue|issues|bug|bugs|problem|problems|finding|findings ~ remain|remains|left|open",
    "^ approved no|false $|it|this|that|not|because|the",
    "^ approved ~ N approved",
];

const LISTS: [(&str, &str); 11] = [
    ("I", "i we im id ill ive"),
    ("S", "i we im id this it change changes work diff patch commit branch pr"),
    ("C", "change changes work diff patch commit branch pr"),
    ("A", "approval approve approved verdict signoff sign-off lgtm"),
    ("L", "merge merged merging land landed ship shipped release deploy"),
    ("N", "not never cannot cant dont wont shouldnt mustnt isnt no couldnt wouldnt nothing none"),
    ("P", "previous previously earlier last prior old former first round before"),
    ("R", "reject* fail failed fails denied deny blocked nack veto* disapprov* declin*"),
    ("T", "changes_requested request_changes needs_discussion needs_work not_approved"),
    ("V", "verdict decision recommendation"),
    ("W", "retract* withdraw* withdrew revok* rescind* recant* overturn* unapprov* revers* cancel*"),
];

/// Words that change nothing about a phrase: "I must *therefore* reject it", "*the* approval *is hereby* withdrawn".
const FILLERS: &str = "a above actually again am an and any are as be been but can could do earlier final first further \
                       had has have having hereby i initial is it just like longer more must my need now of off on \
                       please previous prior reason should so some sorry still that the therefore this to want was \
                       were will would";

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

/// Whether a text of its own, such as a summary, contradicts the approval beside it.
pub(super) fn is_stated_in(text: &str) -> bool {
    let contradicts = |words: &[String]| is_anywhere(words) || is_afterwards(words);
    sentences(text).any(|sentence| !asks(&text[sentence.clone()]) && contradicts(&words(&text[sentence])))
}

/// The first sentence from `from` on that takes an approval back, and is said.
pub(super) fn first_after(message: &Message<'_>, from: usize) -> Option<usize> {
    first(message, from, is_afterwards)
}

/// The first sentence that contradicts an approval, and is said.
pub(super) fn first_anywhere(message: &Message<'_>) -> Option<usize> {
    first(message, 0, is_anywhere)
}

fn first(message: &Message<'_>, from: usize, contradicts: fn(&[String]) -> bool) -> Option<usize> {
    let text = &message.text()[from..];
    let is_said = |at: usize| matches!(message.outline().shown(from + at), None | Some(Shown::Html));
    sentences(text)
        .filter(|sentence| !asks(&text[sentence.clone()]) && contradicts(&words(&text[sentence.clone()])))
        .find(|sentence| {
            let said: String = text[sentence.clone()]
                .char_indices()
                .filter(|(at, _)| is_said(sentence.start + at))
                .map(|(_, c)| c)
                .collect();
            contradicts(&words(&said))
        })
        .map(|sentence| from + sentence.start)
}

/// The sentences of a text, and each line of those that go over several.
fn sentences(text: &str) -> impl Iterator<Item = Range<usize>> {
    paragraphs(text).flat_map(move |sentence| {
        let lines = text[sentence.clone()].split_inclusive('\n').scan(sentence.start, |start, line| {
            let range = *start..*start + line.len();
            *start = range.end;
            Some(range)
        });
        let lines: Vec<_> = lines.filter(|line| *line != sentence).collect();
        std::iter::once(sentence).chain(lines)
    })
}

/// The text up to a stop and white space, a blank line, or a line that begins a list item, a heading or a quotation.
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
            let breaks = c == '\n' && begins_anew(after);
            (stops || breaks).then_some(at + c.len_utf8())
        });
        from = start + end.unwrap_or(rest.len());
        Some(start..from)
    })
}

/// Whether it is a question, which states nothing: "Is it still there?"
fn asks(sentence: &str) -> bool {
    sentence.trim_end().ends_with('?')
}

fn begins_anew(line: &str) -> bool {
    let bare = line.trim_start_matches([' ', '\t', '\r']);
    let number = bare.trim_start_matches(|c: char| c.is_ascii_digit());
    bare.starts_with(['\n', '#', '>', '-', '*', '+', '|', '`', '<'])
        || (number.len() < bare.len() && number.starts_with(['.', ')']))
}

/// The words in lower case, without apostrophes and what is in quotation marks: `don’t` is `dont`. Longer ones than any
/// that counts are cut.
fn words(sentence: &str) -> Vec<String> {
    const LONGEST: usize = 18;
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '\\' | '\'' | '’');
    let word = |word: &str| {
        let letters = word.trim_matches(['_', '-']).chars().filter(|c| !matches!(c, '\'' | '’' | '\\'));
        letters.take(LONGEST).flat_map(char::to_lowercase).collect::<String>()
    };
    let unquoted = sentence.split(['"', '“', '”']).step_by(2);
    unquoted.flat_map(|text| text.split(|c| !is_word(c))).map(word).filter(|word| !word.is_empty()).collect()
}

fn is_anywhere(words: &[String]) -> bool {
    contains(words, &ANYWHERE)
}

fn is_afterwards(words: &[String]) -> bool {
    contains(words, &AFTERWARDS) || contains(words, &REMAINING)
}

fn contains(words: &[String], phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| {
        let phrase: Vec<&str> = phrase.split(' ').collect();
        (0..=words.len()).any(|at| follows(words, at, &phrase) && !is_denied(words, at, &phrase))
    })
}

/// Whether the words from `at` on follow the phrase.
fn follows(words: &[String], at: usize, phrase: &[&str]) -> bool {
    const MOST: usize = 4;
    match phrase.split_first() {
        None => true,
        Some((&"~", rest)) => {
            let fillers = words[at..].iter().take(MOST).take_while(|word| is_in(word, FILLERS));
            (at..=at + fillers.count()).any(|next| follows(words, next, rest))
        }
        Some((slot, rest)) => slot.split('|').any(|choice| match choice {
            "^" => at == 0 && follows(words, at, rest),
            "$" => at == words.len() && follows(words, at, rest),
            _ => words.get(at).is_some_and(|word| is_one_of(word, choice)) && follows(words, at + 1, rest),
        }),
    }
}

/// Whether the word is the one that a slot of a phrase asks for.
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
/// *previous* verdict was CHANGES_REQUESTED".
fn is_denied(words: &[String], at: usize, phrase: &[&str]) -> bool {
    let before = words[..at].iter().rev().find(|word| !is_in(word, FILLERS));
    let negated = || {
        let first = words.first().filter(|_| at > 0);
        before.is_some_and(|word| is_one_of(word, "N"))
            || first.is_some_and(|word| is_in(word, "nothing no none"))
    };
    let is_past = || words[..at].iter().any(|word| is_one_of(word, "P"));
    (!phrase.contains(&"N") && negated()) || (matches!(phrase[0], "T" | "V") && is_past())
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
        ];
        let mistaken: Vec<&str> = others.into_iter().filter(|text| is_stated_in(text)).collect();
        assert!(mistaken.is_empty(), "{mistaken:#?}");
    }
}
