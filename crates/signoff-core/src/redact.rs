//! Removes secrets from text.
//!
//! The output of agents is stored and displayed. It must not contain keys that they were given, so these are removed
//! wherever output is written.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

/// Replaces a secret. It has no special meaning in JSON, XML, Markdown or a shell.
pub const PLACEHOLDER: &str = "[redacted]";

/// Minimum length of a secret, in bytes. Shorter ones cannot be distinguished from other text.
const MIN_SECRET_LEN: usize = 8;

/// Minimum length of a line of a multi-line secret that counts by itself.
const MIN_LINE_LEN: usize = 16;

/// Minimum length of a user name in a URL that counts as a key.
const MIN_USER_LEN: usize = 16;

/// A set of secrets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Secrets {
    /// All spellings of each secret, longest first.
    patterns: Arc<Vec<Vec<u8>>>,
}

impl Secrets {
    /// The secrets among environment variables: those with a secret's name, credentials in URLs, and secrets in JSON
    /// documents.
    pub fn from_variables<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut values = Vec::new();
        for (name, value) in variables {
            let value = value.trim();
            values.extend(text_secrets(value, holds_secret(name, value)));
            if value.starts_with(['{', '[']) {
                values.extend(document_secrets(value));
            }
        }
        Self::from_texts(values.iter().map(String::as_str))
    }

    /// The secrets in a JSON document: strings with a secret's name. Comment lines are ignored; invalid JSON contains
    /// none.
    pub fn from_document(text: &str) -> Self {
        Self::from_texts(document_secrets(text).iter().map(String::as_str))
    }

    /// Secrets given directly, with and without their authentication scheme.
    pub fn from_keys<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        Self::from_values(keys.into_iter().flat_map(|key| [Some(key), strip_auth_scheme(key)]).flatten())
    }

    pub fn from_values<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        Self::from_texts(values.into_iter().filter(|value| value.trim().len() >= MIN_SECRET_LEN))
    }

    fn from_texts<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut patterns = BTreeSet::new();
        for value in values {
            let value = value.trim();
            let lines = value.lines().map(str::trim).filter(|line| line.len() >= MIN_LINE_LEN);
            let lines = lines.filter(|line| value.contains('\n') && !line.starts_with("-----"));
            for text in std::iter::once(value).chain(lines).filter(|text| !text.is_empty()) {
                patterns.extend(spellings(text));
            }
        }
        Self::from_patterns(patterns)
    }

    fn from_patterns(patterns: BTreeSet<Vec<u8>>) -> Self {
        let mut patterns: Vec<_> = patterns.into_iter().collect();
        patterns.sort_by_key(|pattern| std::cmp::Reverse(pattern.len()));
        Self { patterns: Arc::new(patterns) }
    }

    /// The union of two sets.
    #[must_use]
    pub fn union(&self, others: &Self) -> Self {
        Self::from_patterns(self.patterns.iter().chain(others.patterns.iter()).cloned().collect())
    }

    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Whether a text contains a secret.
    pub fn occur_in(&self, text: &[u8]) -> bool {
        !self.is_empty() && self.redact(text) != text
    }

    /// Returns the bytes without secrets.
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

    /// Returns the text without secrets.
    pub fn redact_text(&self, text: &str) -> String {
        if self.is_empty() {
            return text.to_owned();
        }
        // Secrets are UTF-8, so what remains of a text is UTF-8 too.
        String::from_utf8_lossy(&self.redact(text.as_bytes())).into_owned()
    }
}

/// The secrets in a value: the value itself if it `is_secret`, with and without its authentication scheme, and the
/// credentials of a URL.
fn text_secrets(value: &str, is_secret: bool) -> Vec<String> {
    let whole = [Some(value), strip_auth_scheme(value)].into_iter().flatten().filter(|_| is_secret);
    whole.chain(url_credentials(value)).map(str::to_owned).collect()
}

/// The credentials in a URL: the password of `http://me:PASSWORD@proxy`, and a key as the user name of
/// `https://KEY@service`.
fn url_credentials(value: &str) -> Vec<&str> {
    let who = value.split_once("://").and_then(|(_, rest)| rest.split(['/', '?', '#']).next()?.rsplit_once('@'));
    let Some((who, _)) = who else { return Vec::new() };
    let (user, password) = who.split_once(':').map_or((who, None), |(user, password)| (user, Some(password)));
    let user = Some(user).filter(|user| user.len() >= MIN_USER_LEN);
    let password = password.filter(|password| is_long_enough(password, true));
    user.into_iter().chain(password).collect()
}

/// The secrets of a JSON document: logins and settings.
fn document_secrets(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let mut found = Vec::new();
    if let Ok(document) = serde_json::from_str::<Value>(&lines.join("\n")) {
        collect_secrets(&document, JsonMember { name: "", in_secrets: false }, &mut found);
    }
    found
}

/// The name of a value in a document, and whether it is part of a table of secrets.
#[derive(Debug, Clone, Copy)]
struct JsonMember<'a> {
    name: &'a str,
    in_secrets: bool,
}

/// The JSON parser limits the depth of the recursion.
fn collect_secrets(value: &Value, member: JsonMember<'_>, found: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            let text = text.trim();
            found.extend(text_secrets(text, is_secret_text(member.name, text, member.in_secrets)));
        }
        Value::Array(values) => values.iter().for_each(|value| collect_secrets(value, member, found)),
        Value::Object(members) => {
            let in_secrets = member.in_secrets || is_secret_container(member.name);
            members.iter().for_each(|(name, value)| collect_secrets(value, JsonMember { name, in_secrets }, found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Words in the names of variables that contain secrets.
const SECRET_WORDS: &str = "KEY KEYS APIKEY TOKEN TOKENS AUTHTOKEN SECRET SECRETS PASSWORD PASSWORDS PASSWD PASSPHRASE \
    PASS PASSCODE PWD CREDENTIAL CREDENTIALS AUTH AUTHORIZATION BEARER COOKIE PAT SK";

/// Words for URLs that are secrets themselves, or contain one.
const ADDRESSES: &str = "WEBHOOK WEBHOOKS DSN";

/// Suffixes of names that only describe a secret or its location.
const METADATA_SUFFIXES: &str = "FILE PATH DIR SOCK HELPER URL HOME MS TIMEOUT PROGRAM TYPE URI ENDPOINT NAME \
    METHOD MODE";

/// Suffixes that clearly name a secret, so that shorter values count too.
const CLEAR_SUFFIXES: &str = "TOKEN KEY SECRET PASSWORD PASSWD PASSPHRASE";

const MIN_CLEAR_LEN: usize = 6;

/// Values that are settings.
const SETTINGS: &str = "true false enabled disabled required optional default undefined";

/// Prefixes of paths. A key can begin with a slash too, but not like this.
const PATH_PREFIXES: &str = "~/ ./ ../ /home/ /Users/ /root/ /etc/ /usr/ /var/ /opt/ /run/ /tmp/ /private/ /mnt/ \
    /srv/ /nix/ /dev/ /Library/";

/// Splits a name into words in capitals: `API_KEY` and `apiKey` alike.
fn words(name: &str) -> Vec<String> {
    let mut spaced = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && spaced.ends_with(|before: char| before.is_ascii_lowercase()) {
            spaced.push(' ');
        }
        spaced.push(if letter.is_ascii_alphanumeric() { letter } else { ' ' });
    }
    spaced.to_ascii_uppercase().split_whitespace().map(str::to_owned).collect()
}

/// Whether a list, whose words are separated by blanks, contains a word.
fn is_in(word: &str, list: &str) -> bool {
    list.split(' ').any(|listed| listed == word)
}

/// Whether a variable with this name contains a secret.
pub fn is_secret_name(name: &str) -> bool {
    let words = words(name);
    names_secret(&words) || words.iter().any(|word| is_in(word, ADDRESSES))
}

fn names_secret(words: &[String]) -> bool {
    // The current and the previous directory.
    let is_place = matches!(words, [word] if word == "PWD" || word == "OLDPWD");
    let ends_so = |word: &str| ["TOKEN", "APIKEY", "PASSWORD", "SECRET"].iter().any(|end| word.ends_with(end));
    let says_so = |word: &String| is_in(word, SECRET_WORDS) || ends_so(word);
    !is_place && !is_metadata(words) && words.iter().any(says_so)
}

fn is_metadata(words: &[String]) -> bool {
    words.last().is_some_and(|last| is_in(last, METADATA_SUFFIXES))
}

/// Whether the value of a variable with this name is a secret.
fn holds_secret(name: &str, value: &str) -> bool {
    let words = words(name);
    let has = |wanted: &str| words.iter().any(|word| word.starts_with(wanted));
    let is_address = has("WEBHOOK") && value.contains("://") || has("DSN") && value.contains('@');
    let clear = words.last().is_some_and(|last| CLEAR_SUFFIXES.split(' ').any(|word| last.ends_with(word)));
    (is_address || names_secret(&words)) && !is_not_secret(value) && is_long_enough(value, clear)
}

/// Whether a value is long enough to be a secret. Short values and plain words occur in other text too.
fn is_long_enough(value: &str, clear: bool) -> bool {
    let is_word = value.chars().all(char::is_alphabetic);
    let is_number = value.chars().all(|letter| letter.is_ascii_digit() || ".,:-".contains(letter));
    value.len() >= MIN_SECRET_LEN || clear && value.len() >= MIN_CLEAR_LEN && !is_word && !is_number
}

/// Minimum length of a secret in a document, where most strings are not secrets.
const MIN_DOCUMENT_LEN: usize = 12;

/// Names of tokens in login files.
const LOGIN: &str = "ACCESS REFRESH";

/// Whether a string with this name in a document is a secret. Inside a collection of secrets (`in_secrets`) the name
/// need not say so.
fn is_secret_text(name: &str, value: &str, in_secrets: bool) -> bool {
    let words = words(name);
    let last = words.last().map_or("", String::as_str);
    let made = value.contains(|letter: char| letter.is_ascii_digit()) && !value.contains("://");
    let is_login = is_in(last, LOGIN) || in_secrets && last != "ID" && !is_metadata(&words);
    let is_address = words.iter().any(|word| word.starts_with("WEBHOOK")) && value.contains("://");
    value.len() >= MIN_DOCUMENT_LEN && !is_not_secret(value) && (names_secret(&words) || is_address || is_login && made)
}

/// Whether all members below this name are secrets, whatever their names.
fn is_secret_container(name: &str) -> bool {
    words(name).last().is_some_and(|last| is_in(last, "KEYS TOKENS SECRETS PASSWORDS CREDENTIALS COOKIES"))
}

/// Whether a value is a path, a setting, or only a reference to a secret.
fn is_not_secret(value: &str) -> bool {
    // A key may begin with a dollar sign too; variable names are in capital letters.
    let named = value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).or(value.strip_prefix('$'));
    let refers = value.starts_with("{env:") || value.starts_with("{file:");
    let name = named.unwrap_or(value);
    let is_variable = name.contains('_')
        && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        && is_secret_name(name);
    is_in(value, SETTINGS)
        || refers
        || is_variable
        || strip_auth_scheme(value).is_some_and(is_not_secret)
        || PATH_PREFIXES.split(' ').any(|place| value.starts_with(place))
}

/// The key after its authentication scheme, as in HTTP headers.
fn strip_auth_scheme(value: &str) -> Option<&str> {
    let (kind, rest) = value.split_once(' ')?;
    let known = ["bearer", "basic", "token"].iter().any(|known| kind.eq_ignore_ascii_case(known));
    Some(rest.trim()).filter(|rest| known && rest.len() >= MIN_SECRET_LEN)
}

/// The spellings of a secret: plain, escaped for JSON, and percent-encoded.
fn spellings(text: &str) -> Vec<Vec<u8>> {
    let json = serde_json::to_string(text).unwrap_or_default();
    let json = json.trim_start_matches('"').strip_suffix('"').unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    let address: String = text
        .bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect();
    let mut spellings = vec![text.as_bytes().to_vec(), address.into_bytes()];
    // If a secret begins with a quotation mark, the trimming removed too much; then only the JSON spelling is
    // missing.
    spellings.extend(Some(json.as_bytes().to_vec()).filter(|json| json.len() >= text.len()));
    spellings
}

/// Removes secrets from one byte stream. It holds back only a possible start of a secret, which is at most as long as
/// the longest one.
#[derive(Debug)]
pub struct Redactor {
    patterns: Arc<Vec<Vec<u8>>>,
    /// The bytes that a secret can begin with.
    first: [bool; 256],
    held: Vec<u8>,
}

/// The result of matching the secrets at one position.
enum PatternMatch {
    None,
    /// A secret of this length.
    Secret(usize),
    /// The start of a secret, if the next bytes match.
    Partial,
}

impl Redactor {
    pub fn new(secrets: &Secrets) -> Self {
        let mut first = [false; 256];
        for byte in secrets.patterns.iter().filter_map(|pattern| pattern.first()) {
            first[usize::from(*byte)] = true;
        }
        Self { patterns: secrets.patterns.clone(), first, held: Vec::new() }
    }

    /// Processes more bytes, and writes those that are decided.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.process(bytes, false, out);
    }

    /// Ends the stream: the held bytes are not a secret.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.process(&[], true, out);
    }

    fn process(&mut self, bytes: &[u8], is_end: bool, out: &mut Vec<u8>) {
        if self.patterns.is_empty() {
            out.extend_from_slice(bytes);
            return;
        }
        // Usually nothing is held back, and nothing is copied.
        let held = std::mem::take(&mut self.held);
        let joined = if held.is_empty() { None } else { Some([held.as_slice(), bytes].concat()) };
        let mut rest = joined.as_deref().unwrap_or(bytes);
        loop {
            let begins = |byte: &u8| self.first[usize::from(*byte)];
            let (plain, from) = rest.split_at(rest.iter().position(begins).unwrap_or(rest.len()));
            out.extend_from_slice(plain);
            let Some((byte, behind)) = from.split_first() else { return };
            rest = match self.match_at(from, is_end) {
                PatternMatch::None => {
                    out.push(*byte);
                    behind
                }
                PatternMatch::Secret(length) => {
                    out.extend_from_slice(PLACEHOLDER.as_bytes());
                    from.get(length..).unwrap_or_default()
                }
                PatternMatch::Partial => {
                    self.held = from.to_vec();
                    return;
                }
            };
        }
    }

    /// Matches the longest secret at the start. The patterns are sorted, longest first.
    fn match_at(&self, text: &[u8], is_end: bool) -> PatternMatch {
        for pattern in self.patterns.iter() {
            if text.starts_with(pattern) {
                return PatternMatch::Secret(pattern.len());
            }
            if !is_end && text.len() < pattern.len() && pattern.starts_with(text) {
                return PatternMatch::Partial;
            }
        }
        PatternMatch::None
    }
}
