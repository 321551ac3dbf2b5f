//! Decides by name and value whether a variable or a JSON member is a secret.

use super::MIN_SECRET_LEN;

/// Words in the names of variables that contain secrets.
const WORDS: [&str; 23] = [
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
    "SK",
];

/// Words for URLs that are secrets themselves, or contain one.
const ADDRESSES: [&str; 3] = ["WEBHOOK", "WEBHOOKS", "DSN"];

/// Suffixes of names that only describe a secret or its location.
const METADATA_SUFFIXES: [&str; 16] = [
    "FILE", "PATH", "DIR", "SOCK", "HELPER", "URL", "HOME", "MS", "TIMEOUT", "PROGRAM", "TYPE", "URI", "ENDPOINT",
    "NAME", "METHOD", "MODE",
];

/// Suffixes that clearly name a secret, so that shorter values count too.
const CLEAR_SUFFIXES: [&str; 6] = ["TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE"];

const MIN_CLEAR_LEN: usize = 6;

/// Values that are settings.
const SETTINGS: [&str; 8] = ["true", "false", "enabled", "disabled", "required", "optional", "default", "undefined"];

/// Prefixes of paths. A key can begin with a slash too, but not like this.
const PATH_PREFIXES: [&str; 18] = [
    "~/",
    "./",
    "../",
    "/home/",
    "/Users/",
    "/root/",
    "/etc/",
    "/usr/",
    "/var/",
    "/opt/",
    "/run/",
    "/tmp/",
    "/private/",
    "/mnt/",
    "/srv/",
    "/nix/",
    "/dev/",
    "/Library/",
];

/// Splits a name into words: `API_KEY` and `apiKey` alike.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for letter in name.chars() {
        let ends = !letter.is_ascii_alphanumeric() || was_small && letter.is_ascii_uppercase();
        if ends {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_ascii_alphanumeric()) {
            word.push(letter.to_ascii_uppercase());
        }
        was_small = letter.is_ascii_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether a variable with this name contains a secret.
pub fn is_secret_name(name: &str) -> bool {
    let words = words(name);
    names_secret(&words) || words.iter().any(|word| ADDRESSES.contains(&word.as_str()))
}

fn names_secret(words: &[String]) -> bool {
    // The current and the previous directory.
    let is_place = matches!(words, [word] if word == "PWD" || word == "OLDPWD");
    let ends_so = |word: &str| ["TOKEN", "APIKEY", "PASSWORD", "SECRET"].iter().any(|end| word.ends_with(end));
    let says_so = |word: &String| WORDS.contains(&word.as_str()) || ends_so(word);
    !is_place && !is_metadata(words) && words.iter().any(says_so)
}

fn is_metadata(words: &[String]) -> bool {
    words.last().is_some_and(|last| METADATA_SUFFIXES.contains(&last.as_str()))
}

/// Whether the value of a variable with this name is a secret.
pub fn holds_secret(name: &str, value: &str) -> bool {
    let words = words(name);
    let has = |wanted: &str| words.iter().any(|word| word.starts_with(wanted));
    let is_address = has("WEBHOOK") && value.contains("://") || has("DSN") && value.contains('@');
    let clear = words.last().is_some_and(|last| CLEAR_SUFFIXES.iter().any(|word| last.ends_with(word)));
    (is_address || names_secret(&words)) && !is_not_secret(value) && is_long_enough(value, clear)
}

/// Whether a value is long enough to be a secret. Short values and plain words occur in other text too.
pub fn is_long_enough(value: &str, clear: bool) -> bool {
    let is_word = value.chars().all(char::is_alphabetic);
    let is_number = value.chars().all(|letter| letter.is_ascii_digit() || ".,:-".contains(letter));
    value.len() >= MIN_SECRET_LEN || clear && value.len() >= MIN_CLEAR_LEN && !is_word && !is_number
}

/// Minimum length of a secret in a document, where most strings are not secrets.
const MIN_DOCUMENT_LEN: usize = 12;

/// Names of tokens in login files.
const LOGIN: [&str; 2] = ["ACCESS", "REFRESH"];

/// Whether a string with this name in a document is a secret. Inside a collection of secrets (`in_secrets`) the name
/// need not say so.
pub fn is_secret_text(name: &str, value: &str, among: bool) -> bool {
    let words = words(name);
    let last = words.last().map_or("", String::as_str);
    let made = value.contains(|letter: char| letter.is_ascii_digit()) && !value.contains("://");
    let is_login = LOGIN.contains(&last) || among && last != "ID" && !is_metadata(&words);
    let is_address = words.iter().any(|word| word.starts_with("WEBHOOK")) && value.contains("://");
    value.len() >= MIN_DOCUMENT_LEN && !is_not_secret(value) && (names_secret(&words) || is_address || is_login && made)
}

/// Whether all members below this name are secrets, whatever their names.
pub fn is_secret_container(name: &str) -> bool {
    let many = ["KEYS", "TOKENS", "SECRETS", "PASSWORDS", "CREDENTIALS", "COOKIES"];
    words(name).last().is_some_and(|last| many.contains(&last.as_str()))
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
    SETTINGS.contains(&value)
        || refers
        || is_variable
        || strip_auth_scheme(value).is_some_and(is_not_secret)
        || PATH_PREFIXES.iter().any(|place| value.starts_with(place))
}

/// The key after its authentication scheme, as in HTTP headers.
pub fn strip_auth_scheme(value: &str) -> Option<&str> {
    let (kind, rest) = value.split_once(' ')?;
    let known = ["bearer", "basic", "token"].iter().any(|known| kind.eq_ignore_ascii_case(known));
    Some(rest.trim()).filter(|rest| known && rest.len() >= MIN_SECRET_LEN)
}
