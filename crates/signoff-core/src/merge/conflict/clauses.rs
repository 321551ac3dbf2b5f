//! Splits a text into clauses, each with its relation to the clause before it.

use super::words;

/// Maximum characters of a text, words of a clause and characters of a word.
const TEXT: usize = 4000;
const WORDS: usize = 48;
const LETTERS: usize = 40;

/// How a clause begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClauseStart {
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
pub(super) struct Clause {
    pub start: ClauseStart,
    pub words: Vec<String>,
}

impl Clause {
    fn new(start: ClauseStart) -> Self {
        Self { start, words: Vec::new() }
    }
}

/// Splits a text at punctuation and at the words that join clauses. Some clauses are empty.
pub(super) fn split_clauses(text: &str) -> Vec<Clause> {
    let mut cut = ClauseSplitter { done: Vec::new(), current: Clause::new(ClauseStart::Sentence) };
    let end = text.char_indices().nth(TEXT).map_or(text.len(), |(end, _)| end);
    for line in text[..end].lines() {
        for piece in line.split_whitespace() {
            if !piece.contains(char::is_alphanumeric) {
                // A dash or a bullet.
                cut.begin(ClauseStart::Sentence);
            }
            words_of(piece).for_each(|word| cut.push_word(word));
            if piece.ends_with(['.', ';', ':', '!', '?']) {
                cut.begin(ClauseStart::Sentence);
            } else if piece.ends_with([',', ')']) {
                cut.begin(ClauseStart::Continuation);
            }
        }
        cut.begin(ClauseStart::Sentence);
    }
    cut.done
}

fn words_of(piece: &str) -> impl Iterator<Item = String> {
    piece
        .split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '\'' | '’')))
        .map(|word| word.trim_matches('\''))
        .filter(|word| !word.is_empty())
        .map(one_spelling)
}

fn one_spelling(word: &str) -> String {
    let letters = word.chars().take(LETTERS).map(|c| if c == '’' { '\'' } else { c });
    letters.flat_map(char::to_lowercase).collect()
}

struct ClauseSplitter {
    done: Vec<Clause>,
    current: Clause,
}

impl ClauseSplitter {
    fn begin(&mut self, start: ClauseStart) {
        self.done.push(std::mem::replace(&mut self.current, Clause::new(start)));
    }

    /// Adds a word to the current clause, or begins the next one with it.
    fn push_word(&mut self, word: String) {
        let words = &mut self.current.words;
        match (words.last().map(String::as_str), word.as_str()) {
            (Some("instead"), "of") | (Some("rather"), "than") => self.begin(ClauseStart::InsteadOf),
            (_, "with" | "by") if words.iter().any(|word| word == "replace") => self.begin(ClauseStart::With),
            (_, "and" | "or" | "but" | "then") => self.begin(ClauseStart::Continuation),
            (_, joint) if words::subordinates(joint) => self.begin(ClauseStart::Aside),
            (_, _) if words.len() == WORDS => self.begin(ClauseStart::Aside),
            (_, _) => words.push(word),
        }
    }
}
