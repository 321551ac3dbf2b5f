//! What a finding asks for, read from its words.

use std::collections::BTreeMap;

use super::words::{self, Action};
use crate::review::Finding;

/// How many wishes of one finding are read, how many words of one thought, and how many characters of one
/// word: bounds for texts that are no findings.
const WISHES: usize = 16;
const WORDS: usize = 48;
const LETTERS: usize = 40;

/// One thing a finding wants, or wants not.
pub(super) struct Ask {
    pub action: Action,
    pub wanted: bool,
    /// What it is about: the stems of the thought's other words, each with its place and as said.
    pub about: BTreeMap<String, (usize, String)>,
    /// The word that asks, with its negation.
    pub said: String,
}

/// Everything one finding asks for.
pub(super) struct Asks(Vec<Ask>);

impl Asks {
    /// Reads the description and the suggestion, thought by thought.
    pub fn of(finding: &Finding) -> Self {
        let mut asks = Vec::new();
        for thought in thoughts(&finding.description) {
            let before = asks.len();
            read(&thought, &mut asks);
            if asks[before..].iter().all(|ask| matches!(ask.action, Action::Verb(_))) {
                asks.extend(by_kind(&finding.kind, &thought));
            }
            if asks.len() > WISHES {
                break;
            }
        }
        for thought in thoughts(finding.suggestion.as_deref().unwrap_or_default()) {
            read(&thought, &mut asks);
            if asks.len() > 2 * WISHES {
                break;
            }
        }
        Self(asks)
    }

    pub fn each(&self) -> impl Iterator<Item = &Ask> {
        self.0.iter()
    }
}

/// The words of one clause, in lower case.
type Thought = Vec<String>;

/// Cuts a text at punctuation and at the words that join clauses.
fn thoughts(text: &str) -> Vec<Thought> {
    let mut thoughts = vec![Thought::new()];
    for piece in text.split_whitespace() {
        for word in words_of(piece) {
            put(&mut thoughts, word);
        }
        if piece.ends_with(['.', ',', ';', ':', '!', '?', ')']) {
            thoughts.push(Thought::new());
        }
    }
    thoughts.retain(|thought| !thought.is_empty());
    thoughts
}

fn words_of(piece: &str) -> impl Iterator<Item = String> {
    piece
        .split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '\'' | '’')))
        .map(|word| word.chars().take(LETTERS).collect::<String>().replace('’', "'"))
        .map(|word| word.trim_matches('\'').to_lowercase())
        .filter(|word| !word.is_empty())
}

/// Adds a word to the current thought, or begins the next one with it.
fn put(thoughts: &mut Vec<Thought>, word: String) {
    let current = thoughts.last().map(Vec::as_slice).unwrap_or_default();
    let last = current.last().map(String::as_str);
    let opens = match (last, word.as_str()) {
        // "X instead of Y" and "X rather than Y" do not want Y.
        (Some("instead"), "of") | (Some("rather"), "than") => Some("drop"),
        // "replace X with Y" wants Y.
        (_, "with" | "by") if current.iter().any(|word| word == "replace") => Some("use"),
        (_, joint) if words::breaks(joint) || current.len() == WORDS => Some(""),
        _ => None,
    };
    match opens {
        Some("") => thoughts.push(Thought::new()),
        Some(verb) => thoughts.push(vec![verb.to_owned()]),
        None => match thoughts.last_mut() {
            Some(thought) => thought.push(word),
            None => thoughts.push(vec![word]),
        },
    }
}

fn read(thought: &[String], asks: &mut Vec<Ask>) {
    let found = verbs(thought).chain(complaint(thought)).chain(out_of_scope(thought));
    for found in found {
        let about = about(thought, &found.position);
        if !about.is_empty() {
            asks.push(Ask { action: found.action, wanted: found.wanted, about, said: found.said });
        }
    }
}

/// A word that asks, with its place in the thought.
struct Found {
    action: Action,
    wanted: bool,
    said: String,
    position: std::ops::Range<usize>,
}

/// The verbs that are an order, a wish or a ban. A verb that merely tells what happens ("removes the
/// check", "was removed", "fails to add") asks for nothing.
fn verbs(thought: &[String]) -> impl Iterator<Item = Found> {
    (0..thought.len()).filter_map(|at| {
        let word = thought[at].as_str();
        if words::leads(word) || words::is_empty(word) || words::complaint(word).is_some() {
            return None;
        }
        let start = thought[..at].iter().rposition(|word| !words::leads(word)).map_or(0, |index| index + 1);
        let run = &thought[start..at];
        let demanded = start == 0 || run.iter().any(|word| words::demands(word));
        if !demanded || !has_fitting_form(word, run) {
            return None;
        }
        let negated = run.iter().filter(|word| words::negates(word)).count() % 2 == 1;
        let (action, pole) = words::action_of(word);
        let said = if negated { format!("not {word}") } else { word.to_owned() };
        Some(Found { action, wanted: pole != negated, said, position: at..at + 1 })
    })
}

/// `remove`, `be removed` and `consider removing` ask; `removed`, `removing` and `removes` tell.
fn has_fitting_form(word: &str, run: &[String]) -> bool {
    if word.ends_with("ing") {
        run.iter().any(|word| words::takes_gerund(word))
    } else if word.ends_with("ed") {
        run.iter().any(|word| word == "be")
    } else {
        true
    }
}

/// "missing X", "X is not needed", "no X".
fn complaint(thought: &[String]) -> Option<Found> {
    (0..thought.len()).find_map(|at| {
        let before = &thought[at.saturating_sub(2)..at];
        let wanted = match thought[at].as_str() {
            "no" => no(thought.get(at + 1)?, before)?,
            word => {
                let negated = before.iter().any(|word| words::negates(word));
                words::complaint(word)? != negated
            }
        };
        let said = if wanted { "wanted" } else { "unwanted" };
        Some(Found { action: Action::Presence, wanted, said: said.into(), position: at..at + 1 })
    })
}

/// "There is no X" misses it, "no need for X" and "there must be no X" do not want it.
fn no(next: &str, before: &[String]) -> Option<bool> {
    match next {
        "longer" => None,
        "need" => Some(false),
        _ => Some(!before.iter().any(|word| words::demands(word))),
    }
}

/// "X is out of scope", "X is not in the spec".
fn out_of_scope(thought: &[String]) -> Option<Found> {
    let phrases: [&[&str]; 4] = [
        &["out", "of", "scope"],
        &["not", "in", "spec"],
        &["not", "in", "the", "spec"],
        &["not", "in", "the", "specification"],
    ];
    let found = phrases.into_iter().find_map(|phrase| {
        let at = thought.windows(phrase.len()).position(|window| window.iter().eq(phrase.iter()))?;
        Some(at..at + phrase.len())
    })?;
    Some(Found { action: Action::Presence, wanted: false, said: "out of scope".into(), position: found })
}

fn by_kind(kind: &str, thought: &[String]) -> Option<Ask> {
    let wanted = words::wanted_by_kind(kind)?;
    let said = kind.to_owned();
    let about = about(thought, &(0..0));
    (!about.is_empty()).then_some(Ask { action: Action::Presence, wanted, about, said })
}

/// The words that are left when the asking and the empty ones are gone.
fn about(thought: &[String], asking: &std::ops::Range<usize>) -> BTreeMap<String, (usize, String)> {
    let tells =
        |word: &str| !words::leads(word) && !words::is_empty(word) && words::complaint(word).is_none();
    let left = thought.iter().enumerate().filter(|(at, word)| !asking.contains(at) && tells(word));
    left.map(|(at, word)| (words::stem(word), (at, word.clone()))).collect()
}
