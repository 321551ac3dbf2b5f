//! Extracts what a finding requests from its words: the clauses of the text, and the requests in each clause.

use std::collections::BTreeMap;
use std::ops::Range;

use super::vocabulary::{self, RequestedAction};
use crate::review::Finding;

/// Maximum number of requests per text.
const MAX_REQUESTS: usize = 16;

/// One thing that a finding requests or forbids.
pub(in crate::merge) struct ChangeRequest {
    pub action: RequestedAction,
    pub wanted: bool,
    /// The subject: the stems of the other words of the clause, each with its position and original spelling.
    pub about: BTreeMap<String, (usize, String)>,
    /// The requesting word, with its negation.
    pub phrase: String,
}

/// All requests of one finding. Reads the description and the suggestion, clause by clause.
pub(in crate::merge) fn change_requests(finding: &Finding) -> Vec<ChangeRequest> {
    let mut requests = read(&finding.description, vocabulary::wanted_by_kind(&finding.kind), &finding.kind);
    requests.extend(read(finding.suggestion.as_deref().unwrap_or_default(), None, ""));
    requests
}

/// The requests of one text. If the words state none, the kind of the finding may.
fn read(text: &str, wanted_by_kind: Option<bool>, kind: &str) -> Vec<ChangeRequest> {
    let mut requests: Vec<ChangeRequest> = Vec::new();
    let mut context = ClauseContext { orders: false, asked: false };
    for clause in split_clauses(text) {
        let found = context.read_clause(&clause);
        let stated = found.iter().any(|found| !matches!(found.action, RequestedAction::Verb(_)));
        requests.extend(found.into_iter().filter_map(|found| found.about(&clause.words)));
        if let Some(wanted) = wanted_by_kind.filter(|_| !stated && clause.start != ClauseStart::Aside) {
            requests.extend(RequestMatch::whole_clause(wanted, kind).about(&clause.words));
        }
        if requests.len() >= MAX_REQUESTS {
            break;
        }
    }
    requests
}

/// State carried from one clause to the next.
struct ClauseContext {
    /// Whether the next clause may be an imperative: the previous clause was one, or it is the first.
    orders: bool,
    /// Whether the previous clause requested something.
    asked: bool,
}

impl ClauseContext {
    fn read_clause(&mut self, clause: &Clause) -> Vec<RequestMatch> {
        let words = &clause.words;
        match clause.start {
            ClauseStart::Sentence if words.is_empty() => {
                *self = Self { orders: true, asked: false };
                Vec::new()
            }
            ClauseStart::Sentence => self.record(statements(words, true)),
            ClauseStart::Continuation => self.record(statements(words, self.orders)),
            ClauseStart::Aside => Vec::new(),
            ClauseStart::InsteadOf if self.asked => vec![RequestMatch::whole_clause(false, "instead of")],
            ClauseStart::With if self.asked => vec![RequestMatch::whole_clause(true, "replace with")],
            ClauseStart::InsteadOf | ClauseStart::With => Vec::new(),
        }
    }

    fn record(&mut self, found: Vec<RequestMatch>) -> Vec<RequestMatch> {
        let known = |found: &RequestMatch| !matches!(found.action, RequestedAction::Verb(_));
        self.orders = found.iter().any(|found| known(found) && found.position.start == 0);
        self.asked = found.iter().any(known);
        found
    }
}

/// A requesting word and its position in the clause.
struct RequestMatch {
    action: RequestedAction,
    wanted: bool,
    phrase: String,
    position: Range<usize>,
}

impl RequestMatch {
    /// A request for or against the clause as a whole.
    fn whole_clause(wanted: bool, phrase: &str) -> Self {
        Self { action: RequestedAction::Presence, wanted, phrase: phrase.to_owned(), position: 0..0 }
    }

    /// Completes the request with the remaining words of the clause. Returns `None` if there are none.
    fn about(self, clause: &[String]) -> Option<ChangeRequest> {
        let about: BTreeMap<_, _> = clause
            .iter()
            .enumerate()
            .filter(|(at, word)| !self.position.contains(at) && !vocabulary::is_empty(word))
            .map(|(at, word)| (vocabulary::stem(word), (at, word.clone())))
            .collect();
        let Self { action, wanted, phrase, .. } = self;
        (!about.is_empty()).then_some(ChangeRequest { action, wanted, about, phrase })
    }
}

fn statements(clause: &[String], may_order: bool) -> Vec<RequestMatch> {
    verbs(clause, may_order).chain(missing_or_superfluous(clause, may_order)).chain(out_of_scope(clause)).collect()
}

/// The verbs that are an imperative, a demand or a prohibition. A verb that only describes what happens ("removes
/// the check", "was removed", "fails to add", "never closes") requests nothing.
fn verbs(clause: &[String], may_order: bool) -> impl Iterator<Item = RequestMatch> {
    (0..clause.len()).filter_map(move |at| {
        let word = clause[at].as_str();
        if vocabulary::is_empty(word) {
            return None;
        }
        let start = clause[..at].iter().rposition(|word| !vocabulary::leads(word)).map_or(0, |index| index + 1);
        let run = &clause[start..at];
        let is_order = start == 0
            && may_order
            && run.first().is_none_or(|word| vocabulary::has_role(word, vocabulary::DEMAND | vocabulary::OPENING));
        let is_demand = run.iter().any(|word| vocabulary::demands(word));
        if !(is_order || is_demand) || !has_fitting_form(word, run) {
            return None;
        }
        let negated = run.iter().filter(|word| vocabulary::negates(word)).count() % 2 == 1;
        let (action, pole) = vocabulary::action_of(word);
        let phrase = if negated { format!("not {word}") } else { word.to_owned() };
        let position = if is_order { 0..at + 1 } else { at..at + 1 };
        Some(RequestMatch { action, wanted: pole != negated, phrase, position })
    })
}

/// Whether the form of the verb requests something: `remove`, `be removed` and `consider removing` do, `removed`,
/// `removing` and `removes` do not.
fn has_fitting_form(word: &str, run: &[String]) -> bool {
    if word.ends_with("ing") {
        // "Consider removing".
        run.iter().any(|word| matches!(word.as_str(), "consider" | "avoid" | "stop" | "suggest" | "recommend"))
    } else if word.ends_with("ed") {
        run.iter().any(|word| word == "be")
    } else {
        !word.ends_with('s') || word.ends_with("ss")
    }
}

/// Finds "missing X", "X is not needed", "no X".
fn missing_or_superfluous(clause: &[String], opens: bool) -> Option<RequestMatch> {
    (0..clause.len()).find_map(|at| {
        let before = &clause[at.saturating_sub(2)..at];
        let wanted = match clause[at].as_str() {
            "no" => negated_noun(clause.get(at + 1)?, before, opens)?,
            word => {
                let negated = before.iter().any(|word| vocabulary::negates(word));
                vocabulary::missing_or_superfluous(word)? != negated
            }
        };
        let phrase = if wanted { "wanted" } else { "unwanted" };
        Some(RequestMatch { action: RequestedAction::Presence, wanted, phrase: phrase.into(), position: at..at + 1 })
    })
}

/// Whether "no X" requests X: "No X" and "there is no X" do, "No need for X" and "there must be no X" forbid it.
fn negated_noun(next: &str, before: &[String], opens: bool) -> Option<bool> {
    let misses = (opens && before.is_empty()) || before.first().is_some_and(|word| word == "there");
    match next {
        "longer" | "effect" | "purpose" | "reason" | "impact" | "way" | "point" => None,
        "need" => Some(false),
        _ if before.iter().any(|word| vocabulary::demands(word)) => Some(false),
        _ => misses.then_some(true),
    }
}

/// Finds "X is out of scope", "X is not in the spec".
fn out_of_scope(clause: &[String]) -> Option<RequestMatch> {
    let phrases: [&[&str]; 4] = [
        &["out", "of", "scope"],
        &["not", "in", "spec"],
        &["not", "in", "the", "spec"],
        &["not", "in", "the", "specification"],
    ];
    let position = phrases.into_iter().find_map(|phrase| {
        let at = clause.windows(phrase.len()).position(|window| window.iter().eq(phrase.iter()))?;
        Some(at..at + phrase.len())
    })?;
    Some(RequestMatch { position, ..RequestMatch::whole_clause(false, "out of scope") })
}

/// Maximum characters of a text, words of a clause and characters of a word.
const MAX_TEXT_CHARS: usize = 4000;
const MAX_CLAUSE_WORDS: usize = 48;
const MAX_WORD_CHARS: usize = 40;

/// How a clause begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClauseStart {
    Sentence,
    /// After a comma, or after `and`, `or`, `but`, `then`.
    Continuation,
    /// A condition or a reason: after `if`, `because`, `which` and similar words.
    Aside,
    /// The rejected alternative: after `instead of`, `rather than`.
    InsteadOf,
    /// The replacement: after `replace … with`.
    With,
}

/// One clause, as words in lower case.
struct Clause {
    start: ClauseStart,
    words: Vec<String>,
}

/// Splits a text at punctuation and at the words that join clauses. Some clauses are empty.
fn split_clauses(text: &str) -> Vec<Clause> {
    let mut clauses = vec![Clause { start: ClauseStart::Sentence, words: Vec::new() }];
    let end = text.char_indices().nth(MAX_TEXT_CHARS).map_or(text.len(), |(end, _)| end);
    for line in text[..end].lines() {
        for piece in line.split_whitespace() {
            if !piece.contains(char::is_alphanumeric) {
                // A dash or a bullet.
                begin(&mut clauses, ClauseStart::Sentence);
            }
            words_of(piece).for_each(|word| push_word(&mut clauses, word));
            if piece.ends_with(['.', ';', ':', '!', '?']) {
                begin(&mut clauses, ClauseStart::Sentence);
            } else if piece.ends_with([',', ')']) {
                begin(&mut clauses, ClauseStart::Continuation);
            }
        }
        begin(&mut clauses, ClauseStart::Sentence);
    }
    clauses
}

fn words_of(piece: &str) -> impl Iterator<Item = String> {
    let one_spelling = |word: &str| {
        let letters = word.chars().take(MAX_WORD_CHARS).map(|c| if c == '’' { '\'' } else { c });
        letters.flat_map(char::to_lowercase).collect()
    };
    let words = piece.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '\'' | '’')));
    words.map(|word| word.trim_matches('\'')).filter(|word| !word.is_empty()).map(one_spelling)
}

fn begin(clauses: &mut Vec<Clause>, start: ClauseStart) {
    clauses.push(Clause { start, words: Vec::new() });
}

/// Adds a word to the last clause, or begins the next one with it.
fn push_word(clauses: &mut Vec<Clause>, word: String) {
    let Some(Clause { words, .. }) = clauses.last_mut() else { return };
    match (words.last().map(String::as_str), word.as_str()) {
        (Some("instead"), "of") | (Some("rather"), "than") => begin(clauses, ClauseStart::InsteadOf),
        (_, "with" | "by") if words.iter().any(|word| word == "replace") => begin(clauses, ClauseStart::With),
        (_, "and" | "or" | "but" | "then") => begin(clauses, ClauseStart::Continuation),
        (_, joint) if vocabulary::has_role(joint, vocabulary::SUBORDINATION) => begin(clauses, ClauseStart::Aside),
        (_, _) if words.len() == MAX_CLAUSE_WORDS => begin(clauses, ClauseStart::Aside),
        (_, _) => words.push(word),
    }
}
