//! What a finding asks for, read from its words.

use std::collections::BTreeMap;
use std::ops::Range;

use super::thoughts::{Start, Thought, thoughts};
use super::words::{self, Action};
use crate::review::Finding;

/// How many wishes of one text are read.
const WISHES: usize = 16;

/// One thing a finding wants, or wants not.
pub(in crate::merge) struct Ask {
    pub action: Action,
    pub wanted: bool,
    /// What it is about: the stems of the thought's other words, each with its place and as said.
    pub about: BTreeMap<String, (usize, String)>,
    /// The word that asks, with its negation.
    pub said: String,
}

/// Everything one finding asks for.
pub(in crate::merge) struct Asks(Vec<Ask>);

impl Asks {
    /// Reads the description and the suggestion, thought by thought.
    pub fn of(finding: &Finding) -> Self {
        let mut asks = read(&finding.description, words::wanted_by_kind(&finding.kind), &finding.kind);
        asks.extend(read(finding.suggestion.as_deref().unwrap_or_default(), None, ""));
        Self(asks)
    }

    pub(super) fn each(&self) -> impl Iterator<Item = &Ask> {
        self.0.iter()
    }
}

/// The wishes of one text. Where its words state none, the kind of the finding may.
fn read(text: &str, wanted_by_kind: Option<bool>, kind: &str) -> Vec<Ask> {
    let mut asks: Vec<Ask> = Vec::new();
    let mut mood = Mood { orders: false, asked: false };
    for thought in thoughts(text) {
        let found = mood.hear(&thought);
        let stated = found.iter().any(|found| !matches!(found.action, Action::Verb(_)));
        asks.extend(found.into_iter().filter_map(|found| found.about(&thought.words)));
        if let Some(wanted) = wanted_by_kind.filter(|_| !stated && thought.start != Start::Aside) {
            asks.extend(Found::whole(wanted, kind).about(&thought.words));
        }
        if asks.len() >= WISHES {
            break;
        }
    }
    asks
}

/// What the thoughts before leave for the next one.
struct Mood {
    /// Whether a clause may go on with an order: the one before did, or nothing was said yet.
    orders: bool,
    /// Whether the thought before asked for something.
    asked: bool,
}

impl Mood {
    fn hear(&mut self, thought: &Thought) -> Vec<Found> {
        let words = &thought.words;
        match thought.start {
            Start::Sentence if words.is_empty() => {
                *self = Self { orders: true, asked: false };
                Vec::new()
            }
            Start::Sentence => self.take(statements(words, true)),
            Start::Clause => self.take(statements(words, self.orders)),
            Start::Aside => Vec::new(),
            Start::InsteadOf if self.asked => vec![Found::whole(false, "instead of")],
            Start::With if self.asked => vec![Found::whole(true, "replace with")],
            Start::InsteadOf | Start::With => Vec::new(),
        }
    }

    fn take(&mut self, found: Vec<Found>) -> Vec<Found> {
        let known = |found: &Found| !matches!(found.action, Action::Verb(_));
        self.orders = found.iter().any(|found| known(found) && found.position.start == 0);
        self.asked = found.iter().any(known);
        found
    }
}

/// A word that asks, with its place in the thought.
struct Found {
    action: Action,
    wanted: bool,
    said: String,
    position: Range<usize>,
}

impl Found {
    /// The thought as a whole is what is wanted there, or not.
    fn whole(wanted: bool, said: &str) -> Self {
        Self { action: Action::Presence, wanted, said: said.to_owned(), position: 0..0 }
    }

    /// The words that are left when the asking and the empty ones are gone. None left, nothing asked.
    fn about(self, thought: &[String]) -> Option<Ask> {
        let about: BTreeMap<_, _> = thought
            .iter()
            .enumerate()
            .filter(|(at, word)| !self.position.contains(at) && !words::is_empty(word))
            .map(|(at, word)| (words::stem(word), (at, word.clone())))
            .collect();
        let Self { action, wanted, said, .. } = self;
        (!about.is_empty()).then_some(Ask { action, wanted, about, said })
    }
}

fn statements(thought: &[String], may_order: bool) -> Vec<Found> {
    verbs(thought, may_order).chain(complaint(thought, may_order)).chain(out_of_scope(thought)).collect()
}

/// The verbs that are an order, a wish or a ban. A verb that merely tells what happens ("removes the
/// check", "was removed", "fails to add", "never closes") asks for nothing.
fn verbs(thought: &[String], may_order: bool) -> impl Iterator<Item = Found> {
    (0..thought.len()).filter_map(move |at| {
        let word = thought[at].as_str();
        if words::is_empty(word) {
            return None;
        }
        let start = thought[..at].iter().rposition(|word| !words::leads(word)).map_or(0, |index| index + 1);
        let run = &thought[start..at];
        let is_order = start == 0 && may_order && run.first().is_none_or(|word| words::opens_order(word));
        let is_wish = run.iter().any(|word| words::demands(word));
        if !(is_order || is_wish) || !has_fitting_form(word, run) {
            return None;
        }
        let negated = run.iter().filter(|word| words::negates(word)).count() % 2 == 1;
        let (action, pole) = words::action_of(word);
        let said = if negated { format!("not {word}") } else { word.to_owned() };
        let position = if is_order { 0..at + 1 } else { at..at + 1 };
        Some(Found { action, wanted: pole != negated, said, position })
    })
}

/// `remove`, `be removed` and `consider removing` ask; `removed`, `removing` and `removes` tell.
fn has_fitting_form(word: &str, run: &[String]) -> bool {
    if word.ends_with("ing") {
        run.iter().any(|word| words::takes_gerund(word))
    } else if word.ends_with("ed") {
        run.iter().any(|word| word == "be")
    } else {
        !word.ends_with('s') || word.ends_with("ss")
    }
}

/// "missing X", "X is not needed", "no X".
fn complaint(thought: &[String], opens: bool) -> Option<Found> {
    (0..thought.len()).find_map(|at| {
        let before = &thought[at.saturating_sub(2)..at];
        let wanted = match thought[at].as_str() {
            "no" => no(thought.get(at + 1)?, before, opens)?,
            word => {
                let negated = before.iter().any(|word| words::negates(word));
                words::complaint(word)? != negated
            }
        };
        let said = if wanted { "wanted" } else { "unwanted" };
        Some(Found { action: Action::Presence, wanted, said: said.into(), position: at..at + 1 })
    })
}

/// "No X" and "there is no X" miss it, "no need for X" and "there must be no X" do not want it.
fn no(next: &str, before: &[String], opens: bool) -> Option<bool> {
    let misses = (opens && before.is_empty()) || before.first().is_some_and(|word| word == "there");
    match next {
        "longer" | "effect" | "purpose" | "reason" | "impact" | "way" | "point" => None,
        "need" => Some(false),
        _ if before.iter().any(|word| words::demands(word)) => Some(false),
        _ => misses.then_some(true),
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
    let position = phrases.into_iter().find_map(|phrase| {
        let at = thought.windows(phrase.len()).position(|window| window.iter().eq(phrase.iter()))?;
        Some(at..at + phrase.len())
    })?;
    Some(Found { position, ..Found::whole(false, "out of scope") })
}
