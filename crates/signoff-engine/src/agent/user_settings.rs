//! Reads the user's own settings of an agent, to copy parts of them into the agent's home.
//!
//! Some agents read variables from `.env` files, including those of the repository. So the author of the change
//! under review could redirect the user's key. Agents do not read variables that are already set, so every
//! variable that decides where an agent sends data is set, if necessary to an empty value.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;

use super::AgentSpec;

/// A variable that no file of the repository may set, and its default value.
pub type GuardedVariable = (&'static str, &'static str);

/// Values for the guarded variables that the agent does not inherit: the user's own, or the defaults.
pub fn guarded_values(
    spec: &AgentSpec<'_>,
    guarded: &[GuardedVariable],
    user_variables: &BTreeMap<String, String>,
) -> Vec<(String, Option<String>)> {
    let missing = guarded.iter().filter(|(name, _)| !spec.has_variable(name));
    let value = |name: &str, otherwise: &str| user_variables.get(name).cloned().unwrap_or(otherwise.to_owned());
    missing.map(|(name, otherwise)| ((*name).to_owned(), Some(value(name, otherwise)))).collect()
}

/// The user's settings, or the defaults if the file is missing or invalid.
pub fn read_settings<T: DeserializeOwned + Default>(file: &Path) -> T {
    let text = fs::read_to_string(file).unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    serde_json::from_str(&lines.join("\n")).unwrap_or_default()
}

/// The variables in an env file: one `NAME=value` per line, quoted or not.
pub fn read_env_file(file: &Path) -> BTreeMap<String, String> {
    parse_env(&fs::read_to_string(file).unwrap_or_default())
}

/// Like `read_env_file`, from a text.
pub fn parse_env(text: &str) -> BTreeMap<String, String> {
    text.lines().filter_map(parse_variable).collect()
}

fn parse_variable(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let named = !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    named.then(|| (name.to_owned(), unquote(value).to_owned()))
}

/// The text in quotes, or everything before a comment.
fn unquote(value: &str) -> &str {
    let quoted = |quote: char| value.strip_prefix(quote).and_then(|rest| rest.split_once(quote));
    match quoted('"').or_else(|| quoted('\'')) {
        Some((inside, _)) => inside,
        None => value.split_once(" #").map_or(value, |(before, _)| before.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::Deserialize;

    #[test]
    fn env_files_are_parsed() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(".env");
        let text = "# mine\nexport A=1\nB = \"two # words\" # why\nC='3'\nD=four # why\nE=\nno variable\n=5\nF G=6\n";
        fs::write(&file, text).unwrap();
        let read: Vec<String> = read_env_file(&file).iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(read, ["A=1", "B=two # words", "C=3", "D=four", "E="]);
        assert!(read_env_file(&home.path().join("missing")).is_empty());
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct TestSettings {
        theme: Option<String>,
    }

    #[test]
    fn settings_may_have_comments() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("settings.json");
        fs::write(&file, "{\n  // as I like it\n  \"theme\": \"dark\",\n  \"other\": []\n}\n").unwrap();
        assert_eq!(read_settings::<TestSettings>(&file), TestSettings { theme: Some("dark".to_owned()) });
        fs::write(&file, "{").unwrap();
        assert_eq!(read_settings::<TestSettings>(&file), TestSettings::default());
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in ".*") {
            parse_variable(&line);
        }
    }
}
