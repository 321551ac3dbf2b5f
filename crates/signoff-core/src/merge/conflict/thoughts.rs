//! Texts cut into thoughts: clauses, each with how it hangs together with the one before.

use super::words;

/// How many characters of a text, words of a thought and characters of a word are read: bounds for texts
/// that are no findings.
const TEXT: usize = 4000;
const WORDS: usize = 48;
const LETTERS: usize = 40;

/// How a thought begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    Sentence,
    /// After a comma, or after `and`, `or`, `but`, `then`.
    Clause,
    /// A condition or a reason: after `if`, `because`, `which` and the like.
    Aside,
    /// What the thought before is to be preferred to: after `instead of`, `rather than`.
    InsteadOf,
    /// What is to come in place of the thought before: `replace … with`.
    With,
}

/// One clause, in lower case words.
pub(super) struct Thought {
    pub start: Start,
    pub words: Vec<String>,
}

impl Thought {
    fn new(start: Start) -> Self {
        Self { start, words: Vec::new() }
    }
}

/// Cuts a text at punctuation and at the words that join clauses. Some thoughts are empty.
pub(super) fn thoughts(text: &str) -> Vec<Thought> {
    let mut cut = Cut { done: Vec::new(), current: Thought::new(Start::Sentence) };
    let end = text.char_indices().nth(TEXT).map_or(text.len(), |(end, _)| end);
    for line in text[..end].lines() {
        for piece in line.split_whitespace() {
            if !piece.contains(char::is_alphanumeric) {
                // A dash or a bullet.
                cut.begin(Start::Sentence);
            }
            words_of(piece).for_each(|word| cut.put(word));
            if piece.ends_with(['.', ';', ':', '!', '?']) {
                cut.begin(Start::Sentence);
            } else if piece.ends_with([',', ')']) {
                cut.begin(Start::Clause);
            }
        }
        cut.begin(Start::Sentence);
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

struct Cut {
    done: Vec<Thought>,
    current: Thought,
}

impl Cut {
    fn begin(&mut self, start: Start) {
        self.done.push(std::mem::replace(&mut self.current, Thought::new(start)));
    }

    /// Adds a word to the current thought, or begins the next one with it.
    fn put(&mut self, word: String) {
        let words = &mut self.current.words;
        match (words.last().map(String::as_str), word.as_str()) {
            (Some("instead"), "of") | (Some("rather"), "than") => self.begin(Start::InsteadOf),
            (_, "with" | "by") if words.iter().any(|word| word == "replace") => self.begin(Start::With),
            (_, "and" | "or" | "but" | "then") => self.begin(Start::Clause),
            (_, joint) if words::subordinates(joint) => self.begin(Start::Aside),
            (_, _) if words.len() == WORDS => self.begin(Start::Aside),
            (_, _) => words.push(word),
        }
    }
}
