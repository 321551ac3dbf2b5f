//! What an agent wants with a tool, in a few words.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::glance;

/// The words of a tool's arguments that tell most, under the names that tools have for them.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Arguments<'a> {
    #[serde(borrow)]
    command: Option<Cow<'a, str>>,
    #[serde(borrow)]
    file_path: Option<Cow<'a, str>>,
    #[serde(borrow)]
    dir_path: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pattern: Option<Cow<'a, str>>,
    #[serde(borrow)]
    path: Option<Cow<'a, str>>,
    #[serde(borrow)]
    query: Option<Cow<'a, str>>,
    #[serde(borrow)]
    url: Option<Cow<'a, str>>,
    #[serde(borrow)]
    description: Option<Cow<'a, str>>,
    #[serde(borrow)]
    title: Option<Cow<'a, str>>,
}

/// The beginning of what tells most; nothing where the arguments are of another make.
pub fn about(arguments: Option<&RawValue>) -> String {
    let said: Arguments = arguments.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let named = said.command.or(said.file_path).or(said.dir_path).or(said.pattern).or(said.path);
    glance(&named.or(said.query).or(said.url).or(said.description).or(said.title).unwrap_or_default())
}
