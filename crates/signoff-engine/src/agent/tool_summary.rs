//! Summarizes the arguments of a tool call.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::first_line;

/// The most informative arguments, under the names that different tools use.
#[derive(Deserialize, Default)]
#[serde(default)]
struct ToolArguments<'a> {
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

/// The most informative argument, shortened. Empty if the arguments have another form.
pub fn summarize_arguments(arguments: Option<&RawValue>) -> String {
    let parsed: ToolArguments = arguments.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let named = parsed.command.or(parsed.file_path).or(parsed.dir_path).or(parsed.pattern).or(parsed.path);
    first_line(&named.or(parsed.query).or(parsed.url).or(parsed.description).or(parsed.title).unwrap_or_default())
}
