//! Secrets, and text without them.
//!
//! What agents say is kept and shown. Keys that they were given must be in none of it, so they are taken out
//! where it is written down, whatever way it came.

mod stream;

pub use stream::Redactor;

use std::collections::BTreeSet;
use std::sync::Arc;

/// What stands in the place of a secret. It means nothing in JSON, XML, Markdown or a shell.
pub const MARK: &str = "[redacted]";

/// What is shorter is no secret, or none that could be told from other text.
const SHORTEST: usize = 8;

/// A line of a longer secret counts by itself if it is as long.
const SHORTEST_LINE: usize = 16;

/// The words that names of variables with secrets have.
const WORDS: [&str; 22] = [
    "KEY",
    "KEYS",
    "APIKEY",
    "TOKEN",
    "TOKENS",
    "AUTHTOKEN",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWORDS",
    "PASSWD",
    "PASSPHRASE",
    "PASS",
    "PASSCODE",
    "PWD",
    "CREDENTIAL",
    "CREDENTIALS",
    "AUTH",
    "AUTHORIZATION",
    "BEARER",
    "COOKIE",
    "PAT",
];

/// Names that end so tell where a secret is, or something about it.
const ABOUT: [&str; 10] =
    ["FILE", "PATH", "DIR", "SOCK", "HELPER", "URL", "HOME", "MS", "TIMEOUT", "PROGRAM"];

/// Whether a variable of this name holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let words: Vec<&str> =
        name.split(|char: char| !char.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    // The directory one is in, now and before.
    let is_place = matches!(words.as_slice(), ["PWD" | "OLDPWD"]);
    let is_about = words.last().is_some_and(|last| ABOUT.contains(last));
    let ends_so =
        |word: &str| ["TOKEN", "APIKEY", "PASSWORD", "SECRET"].iter().any(|end| word.ends_with(end));
    let says_so = |word: &&str| WORDS.contains(word) || ends_so(word);
    !is_place && !is_about && words.iter().any(says_so)
}

/// Texts that nobody is to read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Secrets {
    /// Each in every way it may be written, the longest first.
    patterns: Arc<Vec<Vec<u8>>>,
}

impl Secrets {
    /// The secrets among variables: those whose names say so, and passwords within addresses.
    pub fn of_variables<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut values = Vec::new();
        for (name, value) in variables {
            if is_secret_name(name) {
                values.push(value);
            }
            values.extend(password(value));
        }
        Self::of_values(values)
    }

    pub fn of_values<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut patterns = BTreeSet::new();
        for value in values {
            let value = value.trim();
            let lines = value.lines().map(str::trim).filter(|line| line.len() >= SHORTEST_LINE);
            let lines = lines.filter(|line| value.contains('\n') && !line.starts_with("-----"));
            for text in std::iter::once(value).chain(lines).filter(|text| text.len() >= SHORTEST) {
                patterns.extend(spellings(text));
            }
        }
        let mut patterns: Vec<_> = patterns.into_iter().collect();
        patterns.sort_by_key(|pattern| std::cmp::Reverse(pattern.len()));
        Self { patterns: Arc::new(patterns) }
    }

    /// These and others.
    #[must_use]
    pub fn and(&self, others: &Self) -> Self {
        let all: BTreeSet<_> = self.patterns.iter().chain(others.patterns.iter()).cloned().collect();
        let mut patterns: Vec<_> = all.into_iter().collect();
        patterns.sort_by_key(|pattern| std::cmp::Reverse(pattern.len()));
        Self { patterns: Arc::new(patterns) }
    }

    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Whether a text holds one of them.
    pub fn are_in(&self, text: &[u8]) -> bool {
        !self.is_empty() && self.redact(text) != text
    }

    /// The text without them.
    pub fn redact(&self, text: &[u8]) -> Vec<u8> {
        if self.is_empty() {
            return text.to_vec();
        }
        let mut redactor = Redactor::new(self);
        let mut out = Vec::with_capacity(text.len());
        redactor.push(text, &mut out);
        redactor.finish(&mut out);
        out
    }

    /// The same for text.
    pub fn redact_text(&self, text: &str) -> String {
        if self.is_empty() {
            return text.to_owned();
        }
        // A secret is text, so what is left of a text is text too.
        String::from_utf8_lossy(&self.redact(text.as_bytes())).into_owned()
    }
}

/// The password of an address, `http://me:PASSWORD@proxy`.
fn password(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("://")?;
    let place = rest.split(['/', '?', '#']).next()?;
    let (who, _) = place.rsplit_once('@')?;
    who.split_once(':').map(|(_, password)| password)
}

/// As it is, as JSON has it, and as addresses have it.
fn spellings(text: &str) -> Vec<Vec<u8>> {
    let json = serde_json::to_string(text).unwrap_or_default();
    let json = json.trim_start_matches('"').strip_suffix('"').unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    let address: String = text
        .bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect();
    let mut spellings = vec![text.as_bytes().to_vec(), address.into_bytes()];
    // Where a secret begins with a quotation mark the trimming took too much, and nothing is lost but that.
    spellings.extend(Some(json.as_bytes().to_vec()).filter(|json| json.len() >= SHORTEST));
    spellings
}
