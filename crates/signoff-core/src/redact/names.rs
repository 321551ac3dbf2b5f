//! Which names say that a secret is behind them, and which values are none all the same.

use super::SHORTEST;

/// The words that names of variables with secrets have.
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

/// Addresses that are secrets themselves, or hold one.
const ADDRESSES: [&str; 3] = ["WEBHOOK", "WEBHOOKS", "DSN"];

/// Names that end so tell where a secret is, or something about it.
const ABOUT: [&str; 16] = [
    "FILE", "PATH", "DIR", "SOCK", "HELPER", "URL", "HOME", "MS", "TIMEOUT", "PROGRAM", "TYPE", "URI",
    "ENDPOINT", "NAME", "METHOD", "MODE",
];

/// Where names that end so say clearly what they hold, also less is a secret.
const CLEAR: [&str; 6] = ["TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE"];

const SHORTEST_CLEAR: usize = 6;

/// Settings, not secrets.
const SETTINGS: [&str; 8] =
    ["true", "false", "enabled", "disabled", "required", "optional", "default", "undefined"];

/// How paths begin. A key can begin with a stroke as well, but not so.
const PLACES: [&str; 18] = [
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

/// The words of a name, `API_KEY` and `apiKey` alike.
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

/// Whether a variable of this name holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    let words = words(name);
    says_so(&words) || words.iter().any(|word| ADDRESSES.contains(&word.as_str()))
}

fn says_so(words: &[String]) -> bool {
    // The directory one is in, now and before.
    let is_place = matches!(words, [word] if word == "PWD" || word == "OLDPWD");
    let ends_so =
        |word: &str| ["TOKEN", "APIKEY", "PASSWORD", "SECRET"].iter().any(|end| word.ends_with(end));
    let says_so = |word: &String| WORDS.contains(&word.as_str()) || ends_so(word);
    !is_place && !is_about(words) && words.iter().any(says_so)
}

fn is_about(words: &[String]) -> bool {
    words.last().is_some_and(|last| ABOUT.contains(&last.as_str()))
}

/// Whether what a variable of this name holds is a secret.
pub fn holds_secret(name: &str, value: &str) -> bool {
    let words = words(name);
    let has = |wanted: &str| words.iter().any(|word| word.starts_with(wanted));
    let is_address = has("WEBHOOK") && value.contains("://") || has("DSN") && value.contains('@');
    let clear = words.last().is_some_and(|last| CLEAR.iter().any(|word| last.ends_with(word)));
    (is_address || says_so(&words)) && !is_ordinary(value) && is_long_enough(value, clear)
}

/// Shorter ones are in other texts as well, and words are in all of them.
pub fn is_long_enough(value: &str, clear: bool) -> bool {
    let is_word = value.chars().all(char::is_alphabetic);
    let is_number = value.chars().all(|letter| letter.is_ascii_digit() || ".,:-".contains(letter));
    value.len() >= SHORTEST || clear && value.len() >= SHORTEST_CLEAR && !is_word && !is_number
}

/// What is shorter in a document is no secret: most of what stands there is none.
const SHORTEST_NAMED: usize = 12;

/// What somebody is let in with has names of its own in logins.
const LOGIN: [&str; 2] = ["ACCESS", "REFRESH"];

/// Whether a text of this name in a document is a secret. What stands `among` secrets need not have a name that says so.
pub fn is_secret_text(name: &str, value: &str, among: bool) -> bool {
    let words = words(name);
    let last = words.last().map_or("", String::as_str);
    let made = value.contains(|letter: char| letter.is_ascii_digit()) && !value.contains("://");
    let is_login = LOGIN.contains(&last) || among && last != "ID" && !is_about(&words);
    let is_address = words.iter().any(|word| word.starts_with("WEBHOOK")) && value.contains("://");
    value.len() >= SHORTEST_NAMED
        && !is_ordinary(value)
        && (says_so(&words) || is_address || is_login && made)
}

/// Whether all below this name are secrets, whatever each is called.
pub fn is_of_secrets(name: &str) -> bool {
    let many = ["KEYS", "TOKENS", "SECRETS", "PASSWORDS", "CREDENTIALS", "COOKIES"];
    words(name).last().is_some_and(|last| many.contains(&last.as_str()))
}

/// Places, settings, and what only says where a secret is.
fn is_ordinary(value: &str) -> bool {
    // A key may begin with a dollar sign as well; the name of a variable is all in capital letters.
    let named = value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).or(value.strip_prefix('$'));
    let refers = value.starts_with("{env:") || value.starts_with("{file:");
    let name = named.unwrap_or(value);
    let is_variable = name.contains('_')
        && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        && is_secret_name(name);
    SETTINGS.contains(&value)
        || refers
        || is_variable
        || bare(value).is_some_and(is_ordinary)
        || PLACES.iter().any(|place| value.starts_with(place))
}

/// What is behind the kind of a key, as in headers.
pub fn bare(value: &str) -> Option<&str> {
    let (kind, rest) = value.split_once(' ')?;
    let known = ["bearer", "basic", "token"].iter().any(|known| kind.eq_ignore_ascii_case(known));
    Some(rest.trim()).filter(|rest| known && rest.len() >= SHORTEST)
}
