//! `iterate-config.json`: nine phases and the policies of their reviews.
//!
//! Version 2 has `reviewDefaults` and policies in its phases; version 1 has only agents.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::super::formats::{self, JsonProblem, PositionedText};
use super::super::layer::ConfigNode;
use super::super::questions::title;
use super::super::reader::{Expected, ProblemKind, ReadProblem, checked, either, keys_of};
use super::super::rules::key_name;
use super::super::{ConfigError, Layer};
use super::{ForeignFile, TranslatedFile};
use crate::policy::{Count, OnExhausted, OnFailure};
use crate::review::FailThreshold;
use crate::source::json::{JsonErrorKind, PositionedJson};
use crate::workflow::{GateKeys, PHASES_PRESET};

/// The key of the table of phases.
const PHASES_KEY: &str = key_name!(IterateFile, phases);

/// The current version.
const VERSION: u32 = 2;

const AN_OBJECT: &str = "{ \"version\": 2, \"phases\": { … } }";

/// A file. Its tables are deserialized with the keys of the file and serialized with the keys of `signoff.toml`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct IterateFile {
    version: FileVersion,
    review_defaults: Option<IterateDefaults>,
    phases: IteratePhases,
}

/// The version of a file. Files of version 1 may lack the key.
struct FileVersion(u32);

impl Default for FileVersion {
    fn default() -> Self {
        Self(1)
    }
}

/// The phases by their numbers. The fields are the names of the phases in the preset `phases`.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct IteratePhases {
    #[serde(rename(deserialize = "1"))]
    brainstorm: Option<IterateWork>,
    #[serde(rename(deserialize = "2"))]
    plan: Option<IterateWork>,
    #[serde(rename(deserialize = "3"))]
    plan_review: Option<IterateReview>,
    #[serde(rename(deserialize = "4"))]
    implement: Option<IterateWork>,
    #[serde(rename(deserialize = "5"))]
    code_review: Option<IterateReview>,
    #[serde(rename(deserialize = "6"))]
    test: Option<IterateTest>,
    #[serde(rename(deserialize = "7"))]
    simplify: Option<IterateWork>,
    #[serde(rename(deserialize = "8"))]
    final_review: Option<IterateReview>,
    #[serde(rename(deserialize = "9"))]
    codex_final: Option<IterateReview>,
}

/// A phase in which agents work.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, rename_all(deserialize = "camelCase"))]
struct IterateWork {
    model: Option<ModelOfPhase>,
    parallel: Option<bool>,
    parallel_model: Option<ModelOfPhase>,
}

/// A phase in which reviewers judge.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, rename_all(deserialize = "camelCase"))]
struct IterateReview {
    model: Option<ModelOfPhase>,
    tool: Option<ToolOfPhase>,
    on_failure: Option<OnFailure>,
    #[serde(rename(deserialize = "failOnSeverity"))]
    fail_on: Option<FailThreshold>,
    #[serde(rename(deserialize = "maxRetries"))]
    max_fixes: Option<MaxRetries>,
    #[serde(rename(deserialize = "onMaxRetries"))]
    on_exhausted: Option<OnExhausted>,
    parallel_fixes: Option<bool>,
}

/// The phase in which a command runs the tests.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, rename_all(deserialize = "camelCase"))]
struct IterateTest {
    model: Option<NoModel>,
    on_failure: Option<OnFailure>,
    #[serde(rename(deserialize = "maxRetries"))]
    max_fixes: Option<MaxRetries>,
    #[serde(rename(deserialize = "onMaxRetries"))]
    on_exhausted: Option<OnExhausted>,
    parallel_fixes: Option<bool>,
}

/// The defaults for phases that do not set these keys.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, rename_all(deserialize = "camelCase"))]
struct IterateDefaults {
    #[serde(rename(deserialize = "failOnSeverity"))]
    fail_on: Option<FailThreshold>,
    #[serde(rename(deserialize = "maxRetries"))]
    max_fixes: Option<MaxRetries>,
    #[serde(rename(deserialize = "onMaxRetries"))]
    on_exhausted: Option<OnExhausted>,
    parallel_fixes: Option<bool>,
}

#[derive(Serialize)]
struct ModelOfPhase(String);

#[derive(Serialize)]
struct ToolOfPhase(String);

/// Maximum number of fixes; null is no limit.
#[derive(Serialize)]
struct MaxRetries(Count);

/// The test phase has no model because a command does the work.
#[derive(Serialize)]
enum NoModel {
    #[serde(rename = "none")]
    None,
}

macro_rules! read_as {
    ($name:ty, $expected:expr, $convert:expr) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                checked(deserializer, $expected, $convert)
            }
        }
    };
}

read_as!(FileVersion, "2", |version: u32| (1..=VERSION).contains(&version).then_some(Self(version)));
read_as!(ModelOfPhase, "the name of a model or \"inherit\"", |text: String| one_line(text).map(Self));
read_as!(ToolOfPhase, "the name of a tool such as \"mcp__codex__codex\"", |text: String| one_line(text).map(Self));
read_as!(NoModel, "null: tests are run by a command, no model", |(): ()| Some(Self::None));
read_as!(MaxRetries, "a whole number from 0 to 4294967295, or null for no limit", |number: NumberOrNull| {
    Some(Self(match number {
        NumberOrNull::Number(number) => Count::Number(number),
        NumberOrNull::Null => Count::Unlimited,
    }))
});

#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrNull {
    Number(u32),
    Null,
}

/// A text of one line that is not blank.
fn one_line(text: String) -> Option<String> {
    Some(text).filter(|text| !text.trim().is_empty() && !text.contains(char::is_control))
}

pub(super) fn translate(files: &[ForeignFile<'_>]) -> Result<TranslatedFile, ConfigError> {
    let mut merged = ConfigNode::empty();
    let (mut notes, mut migrated) = (Vec::new(), None);
    for file in files {
        let node = json(*file)?;
        let version = read(&node)?.version.0;
        remove_overridden_tools(&mut merged, &node);
        merged.merge(&node)?;
        migrated = None;
        if version < VERSION {
            migrated = Some(with_version(*file)?);
            notes.push(format!("{} is of version {version}: it is read as version {VERSION}", file.name));
        }
    }
    let last = files.last().map_or("", |file| file.name);
    Ok(TranslatedFile { layer: layer(last, &merged)?, notes, migrated })
}

fn read(node: &ConfigNode) -> Result<IterateFile, ConfigError> {
    node.read_or_problem().map_err(|problem| {
        misplaced(&problem).unwrap_or_else(|| {
            problem.foreign_error(|expected| match (expected, problem.path.as_str()) {
                (Expected::Table(_), "") => AN_OBJECT.to_owned(),
                (Expected::Table(_), PHASES_KEY) => "{ \"1\": { … }, … }, the phases by number".to_owned(),
                (Expected::Table(keys), _) => format!("{{ … }} with {}", either(keys)),
                (Expected::List | Expected::Text | Expected::OneOf(_) | Expected::Other(_), _) => expected.to_string(),
            })
        })
    })
}

/// Removes the tool of a phase if a later file names a model for it, and the other way round.
fn remove_overridden_tools(merged: &mut ConfigNode, later: &ConfigNode) {
    for (number, phase) in later.get(&[PHASES_KEY]).map(ConfigNode::entries).unwrap_or_default() {
        let Some(known) = merged.get_mut(&[PHASES_KEY, number]).and_then(ConfigNode::table_mut) else { continue };
        let [model, tool] = key_name!(IterateReview, [model, tool]);
        let sets = |key: &str| phase.get(&[key]).is_some();
        known.retain(|key, _| !(key == model && sets(tool) || key == tool && sets(model)));
    }
}

/// The keys of a table in `iterate-config.json`, each with its key in `signoff.toml`.
fn names<T: Default + Serialize + DeserializeOwned>() -> Vec<(&'static str, String)> {
    let ours = serde_json::to_value(T::default()).unwrap_or_default();
    let ours = ours.as_object().into_iter().flatten().map(|(key, _)| key.clone());
    keys_of::<T>().into_iter().zip(ours).collect()
}

/// The key of a review phase in `iterate-config.json` for a key of `signoff.toml`.
pub(in crate::settings) fn phase_key(ours: &str) -> &'static str {
    let names = names::<IterateReview>();
    names.into_iter().find(|(_, known)| known == ours).map_or("", |(theirs, _)| theirs)
}

/// The error about an unknown phase or about a key in the wrong table.
fn misplaced(problem: &ReadProblem) -> Option<ConfigError> {
    let ProblemKind::UnknownKey { known, .. } = &problem.kind else { return None };
    let path: Vec<_> = problem.path.split('.').collect();
    let key = path.last()?;
    let is_of_a_phase = keys_of::<IterateWork>().contains(key) || keys_of::<IterateReview>().contains(key);
    let phases = names::<IteratePhases>().into_iter().map(|(number, name)| (number, title(&name)));
    let message = match path.as_slice() {
        [PHASES_KEY, _] => {
            let phases: Vec<_> = phases.map(|(number, title)| format!("{number} {title}")).collect();
            format!("is not a phase: the phases are {}", phases.join(", "))
        }
        [PHASES_KEY, "6", "failOnSeverity"] => "does not apply: tests pass or fail; leave it out".to_owned(),
        [PHASES_KEY, phase, _] if is_of_a_phase => {
            let (number, title) = phases.into_iter().find(|(number, _)| number == phase)?;
            format!("does not apply to phase {number}, {title}: expected {}", either(known))
        }
        ["reviewDefaults", _] if is_of_a_phase => {
            format!("does not apply to all phases: write it in a phase; expected {}", either(known))
        }
        _ => return None,
    };
    Some(problem.origin.error(format!("{} {message}", problem.name())))
}

/// Translates the merged files into a layer.
fn layer(file: &str, merged: &ConfigNode) -> Result<Layer, ConfigError> {
    let IterateFile { review_defaults, phases, .. } = read(merged)?;
    let mut layer = Layer::translated(file);
    let own = [names::<IterateWork>(), names::<IterateReview>()].concat();
    let mut write = |name: String, path: &[&str], table: &Value, is_written: &dyn Fn(&str) -> bool| {
        let Some(node) = merged.get(path) else { return };
        let values = table.as_object().into_iter().flatten().filter(|(key, value)| !value.is_null() && is_written(key));
        for (index, (key, value)) in values.enumerate() {
            if index == 0 {
                layer.table(&name, &node.origin);
            }
            let theirs = own.iter().find(|(_, ours)| ours == key).map_or(key.as_str(), |(theirs, _)| theirs);
            layer.set(key, value, &node.get(&[theirs]).unwrap_or(node).origin);
        }
    };
    let is_of_gate = |key: &str| GateKeys::keys().contains(&key);
    let defaults = serde_json::to_value(review_defaults).unwrap_or_default();
    write(format!("presets.{PHASES_PRESET}"), &["reviewDefaults"], &defaults, &|_| true);
    let phases = serde_json::to_value(phases).unwrap_or_default();
    for (number, name) in names::<IteratePhases>() {
        let path = [PHASES_KEY, number];
        write(format!("presets.{PHASES_PRESET}.gates.{name}"), &path, &phases[&name], &is_of_gate);
        write(format!("presets.{PHASES_PRESET}.phase.{number}"), &path, &phases[&name], &|key| !is_of_gate(key));
    }
    Ok(layer)
}

fn json(file: ForeignFile<'_>) -> Result<ConfigNode, ConfigError> {
    if file.text.trim().is_empty() {
        return Err(file.error(1, format!("the file is empty: expected {AN_OBJECT}")));
    }
    let node = formats::json(PositionedText { text: file.text, origin: &|line| file.origin(line) });
    node.map_err(|JsonProblem { error, .. }| {
        let line = error.line as usize;
        let text = file.text.lines().nth(line - 1).unwrap_or_default().trim_start();
        let is_comment = ["//", "/*", "#"].iter().any(|mark| text.starts_with(mark));
        let message = match error.kind {
            JsonErrorKind::DuplicateKey => format!("{}: write it once", error.message),
            JsonErrorKind::Truncated => "this is not JSON: unexpected end of file".to_owned(),
            JsonErrorKind::Malformed if is_comment => "this is not JSON: JSON allows no comments".to_owned(),
            JsonErrorKind::Malformed => format!("this is not JSON: {}", error.message),
        };
        file.error(line, message)
    })
}

/// The file with the current version; everything else stays as it is.
fn with_version(file: ForeignFile<'_>) -> Result<String, ConfigError> {
    let members = PositionedJson::new(file.text).members(file.text);
    let members = members.map_err(|error| file.error(error.line as usize, error.message))?;
    let begin = file.text.find('{').map_or(0, |brace| brace + 1);
    let indent = &file.text[begin..file.text.len() - file.text[begin..].trim_start().len()];
    let (start, end, text) = match members.get("version") {
        Some(old) => {
            let start = (old.get().as_ptr() as usize).saturating_sub(file.text.as_ptr() as usize);
            (start, start + old.get().len(), VERSION.to_string())
        }
        None if members.0.is_empty() => (begin, begin, format!(" \"version\": {VERSION} ")),
        None => (begin, begin, format!("{indent}\"version\": {VERSION},")),
    };
    Ok([&file.text[..start], &text, &file.text[end..]].concat())
}
