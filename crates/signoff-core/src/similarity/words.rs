//! Splits a description into words, letters and amounts.

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
pub(super) struct NormalizedText {
    /// Content words in order, lower case, cut to their stem.
    pub words: Vec<String>,
    /// Letters and digits in lower case, with one blank for every gap and at both ends. Empty for a blank text.
    pub letters: Vec<char>,
    /// The numbers of two digits or more except status codes, sorted and unique.
    pub amounts: Vec<String>,
    /// Every number, in order.
    pub numbers: Vec<String>,
}

/// Normalises a text. Only a blank text gives an empty result.
pub(super) fn normalize(text: &str) -> NormalizedText {
    let tokens = tokens(text);
    let mut reading = NormalizedText::default();
    for token in tokens.iter().filter(|token| !token.is_line_reference) {
        for part in token.text.split('_').filter(|part| !part.is_empty()) {
            reading.letters.push(' ');
            reading.letters.extend(part.chars().flat_map(char::to_lowercase));
        }
        if token.is_number() {
            reading.numbers.push(token.text.to_owned());
        }
        if token.is_amount() {
            reading.amounts.push(token.text.to_owned());
        }
        reading.words.extend(parts(token.text).filter_map(|part| content_word(&part)));
    }
    reading.amounts.sort_unstable();
    reading.amounts.dedup();
    if reading.letters.is_empty() {
        // A text with only signs (`???`) or a line reference is compared literally.
        reading.letters = text.trim().chars().collect();
    } else {
        reading.letters.push(' ');
    }
    reading
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
        self.text
            .strip_prefix('L')
            .is_some_and(|rest| !rest.is_empty() && rest.len() <= 6 && rest.bytes().all(|byte| byte.is_ascii_digit()))
    }
}

fn tokens(text: &str) -> Vec<TextToken<'_>> {
    let mut tokens: Vec<TextToken<'_>> = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(is_token_char) {
        let (gap, from) = rest.split_at(start);
        let (word, after) = from.split_at(from.find(|char| !is_token_char(char)).unwrap_or(from.len()));
        let mut token = TextToken { text: word, gap, is_line_reference: false };
        let marked = mark_place(&mut tokens, &token);
        token.is_line_reference = marked;
        tokens.push(token);
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
    let chars: Vec<char> = token.chars().collect();
    let mut parts = vec![String::new()];
    for (index, &char) in chars.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|before| chars.get(before)).copied();
        if before.is_some_and(|before| starts_part(before, char, chars.get(index + 1).copied())) {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut()
            && char != '_'
        {
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
    ENDINGS
        .iter()
        .filter_map(|ending| word.strip_suffix(ending))
        .find(|rest| rest.chars().count() >= ROOT)
        .unwrap_or(word)
}
