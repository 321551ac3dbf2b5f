//! How the person has set an agent up: what of it is carried into the home that the agent is given.
//!
//! Some agents take variables out of `.env` files, also those of the repository they work in: whoever wrote the change
//! under review could send the person's key elsewhere. What is set is not taken from such a file, so every variable that
//! decides where an agent sends what it knows is set, if need be to nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;

use super::Order;

/// A variable that no file of the repository may set, and what it is set to where nobody else does.
pub type Guarded = (&'static str, &'static str);

/// Values for the guarded variables that the agent does not inherit: the person's, from their own file of variables, or
/// those that change nothing.
pub fn guard(
    order: &Order<'_>,
    guarded: &[Guarded],
    persons: &BTreeMap<String, String>,
) -> Vec<(String, Option<String>)> {
    let missing = guarded.iter().filter(|(name, _)| !order.finds(name));
    let value = |name: &str, otherwise: &str| persons.get(name).cloned().unwrap_or(otherwise.to_owned());
    missing.map(|(name, otherwise)| ((*name).to_owned(), Some(value(name, otherwise)))).collect()
}

/// The person's settings. Whoever has none, or some that cannot be read, has set nothing.
pub fn settings<T: DeserializeOwned + Default>(file: &Path) -> T {
    let text = fs::read_to_string(file).unwrap_or_default();
    let said: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    serde_json::from_str(&said.join("\n")).unwrap_or_default()
}

/// The variables in a person's own file: `NAME=value` in each line, in quotes or not.
pub fn variables(file: &Path) -> BTreeMap<String, String> {
    variables_in(&fs::read_to_string(file).unwrap_or_default())
}

/// The same of its text.
pub fn variables_in(text: &str) -> BTreeMap<String, String> {
    text.lines().filter_map(variable).collect()
}

fn variable(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let named =
        !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    named.then(|| (name.to_owned(), unquoted(value).to_owned()))
}

/// What stands in quotes, or all before a comment.
fn unquoted(value: &str) -> &str {
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
    fn a_persons_file_of_variables() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(".env");
        let text = "# mine\nexport A=1\nB = \"two # words\" # why\nC='3'\nD=four # why\nE=\nno variable\n=5\nF G=6\n";
        fs::write(&file, text).unwrap();
        let told: Vec<String> =
            variables(&file).iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(told, ["A=1", "B=two # words", "C=3", "D=four", "E="]);
        assert!(variables(&home.path().join("missing")).is_empty());
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Told {
        theme: Option<String>,
    }

    #[test]
    fn settings_may_have_comments() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("settings.json");
        fs::write(&file, "{\n  // as I like it\n  \"theme\": \"dark\",\n  \"other\": []\n}\n").unwrap();
        assert_eq!(settings::<Told>(&file), Told { theme: Some("dark".to_owned()) });
        fs::write(&file, "{").unwrap();
        assert_eq!(settings::<Told>(&file), Told::default());
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in ".*") {
            variable(&line);
        }
    }
}
