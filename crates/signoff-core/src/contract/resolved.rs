//! Whether a text says that something is done.

/// Words that say so.
const DONE: [&str; 6] = ["fixed", "resolved", "addressed", "verified", "gone", "closed"];

/// Words that take it back or ask for it.
const UNDONE: [&str; 34] = [
    "not",
    "never",
    "no",
    "still",
    "remains",
    "remain",
    "partially",
    "partly",
    "isn",
    "wasn",
    "hasn",
    "aren",
    "doesn",
    "didn",
    "but",
    "however",
    "again",
    "yet",
    "must",
    "should",
    "needs",
    "need",
    "can",
    "cannot",
    "could",
    "to",
    "be",
    "if",
    "until",
    "unless",
    "once",
    "wrongly",
    "claimed",
    "only",
];

/// Whether a text says that what it names is done, and nothing that takes it back.
pub(super) fn says_done(text: &str) -> bool {
    let is_one = |word: &str, list: &[&str]| list.iter().any(|one| one.eq_ignore_ascii_case(word));
    let words = || text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words().any(|word| is_one(word, &DONE)) && !words().any(|word| is_one(word, &UNDONE))
}
