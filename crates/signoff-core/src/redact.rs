//! Secrets, and text without them.
//!
//! What agents say is kept and shown. Keys that they were given must be in none of it, so they are taken out
//! where it is written down, whatever way it came.

mod document;
mod names;
mod stream;

pub use names::is_secret_name;
pub use stream::Redactor;

use std::collections::BTreeSet;
use std::sync::Arc;

/// What stands in the place of a secret. It means nothing in JSON, XML, Markdown or a shell.
pub const MARK: &str = "[redacted]";

/// What is shorter is no secret, or none that could be told from other text.
const SHORTEST: usize = 8;

/// A line of a longer secret counts by itself if it is as long.
const SHORTEST_LINE: usize = 16;

/// Who is named alone in an address, or is as long as a key, is a key.
const SHORTEST_USER: usize = 16;

/// Texts that nobody is to read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Secrets {
    /// Each in every way it may be written, the longest first.
    patterns: Arc<Vec<Vec<u8>>>,
}

impl Secrets {
    /// The secrets among variables: those whose names say so, keys and passwords within addresses, and what documents
    /// in JSON hold of such.
    pub fn of_variables<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut values = Vec::new();
        for (name, value) in variables {
            let value = value.trim();
            if names::holds_secret(name, value) {
                values.extend([Some(value), names::bare(value)].into_iter().flatten().map(str::to_owned));
            }
            values.extend(of_address(value).into_iter().map(str::to_owned));
            if value.starts_with(['{', '[']) {
                values.extend(document::secrets(value));
            }
        }
        Self::of_texts(values.iter().map(String::as_str))
    }

    /// The secrets in a document in JSON: the texts whose names say so. Lines of comments are passed over; of what is no
    /// JSON there are none.
    pub fn of_document(text: &str) -> Self {
        Self::of_texts(document::secrets(text).iter().map(String::as_str))
    }

    /// Secrets by themselves, each with what is behind the kind of a key.
    pub fn of_keys<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        Self::of_values(keys.into_iter().flat_map(|key| [Some(key), names::bare(key)]).flatten())
    }

    pub fn of_values<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        Self::of_texts(values.into_iter().filter(|value| value.trim().len() >= SHORTEST))
    }

    fn of_texts<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut patterns = BTreeSet::new();
        for value in values {
            let value = value.trim();
            let lines = value.lines().map(str::trim).filter(|line| line.len() >= SHORTEST_LINE);
            let lines = lines.filter(|line| value.contains('\n') && !line.starts_with("-----"));
            for text in std::iter::once(value).chain(lines).filter(|text| !text.is_empty()) {
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

/// The password of an address, `http://me:PASSWORD@proxy`, and a key in the place of a name, `https://KEY@service`.
fn of_address(value: &str) -> Vec<&str> {
    let who =
        value.split_once("://").and_then(|(_, rest)| rest.split(['/', '?', '#']).next()?.rsplit_once('@'));
    let Some((who, _)) = who else { return Vec::new() };
    let (user, password) = who.split_once(':').map_or((who, None), |(user, password)| (user, Some(password)));
    let user = Some(user).filter(|user| user.len() >= SHORTEST_USER);
    let password = password.filter(|password| names::is_long_enough(password, true));
    user.into_iter().chain(password).collect()
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
    spellings.extend(Some(json.as_bytes().to_vec()).filter(|json| json.len() >= text.len()));
    spellings
}
