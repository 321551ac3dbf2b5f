//! The schema of `signoff.toml` accepts what the reader accepts, and describes every key.

use std::fs;
use std::path::Path;

use serde_json::Value;
use signoff_core::settings::{Layer, read, schema};
use signoff_core::workflow;

use crate::config::{TABLES, known_keys};

/// README.md and the chapters of the guide.
fn documents() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let chapters = ["docs/guide/src", "docs/guide/src/reference"].map(|directory| root.join(directory));
    let entries = chapters.iter().flat_map(|directory| fs::read_dir(directory).expect("a directory"));
    let chapters = entries.map(|entry| entry.expect("a readable directory").path());
    let documents = chapters.filter(|path| path.extension().is_some_and(|end| end == "md"));
    let documents = documents.chain([root.join("README.md")]);
    documents.map(|path| fs::read_to_string(path).expect("a readable file")).collect()
}

/// Every TOML example of the documentation that is a configuration.
fn examples() -> Vec<String> {
    let documents = documents();
    let fences = documents.iter().flat_map(|text| text.split("```toml").skip(1));
    let bodies = fences.filter_map(|fence| fence.split_once('\n')?.1.split("```").next());
    let taken = |text: &&str| read(&[Layer::repository("signoff.toml", *text)], &[], &[]).is_ok();
    bodies.filter(taken).map(str::to_owned).collect()
}

fn check(text: &str) {
    let validator = jsonschema::validator_for(&schema()).expect("a schema");
    let value = toml::from_str::<toml::Value>(text).expect("TOML");
    let json = serde_json::to_value(value).expect("plain data");
    let problems: Vec<_> =
        validator.iter_errors(&json).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(problems.is_empty(), "{problems:#?}\n{text}");
}

#[test]
fn documented_examples_match_the_schema() {
    let examples = examples();
    assert!(examples.len() >= 20, "{} examples", examples.len());
    examples.iter().for_each(|text| check(text));
}

/// Presets use the format of custom workflows.
#[test]
fn presets_match_the_workflow_schema() {
    for name in workflow::PRESETS {
        let file = format!("{}/src/workflow/presets/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&file).expect("a preset");
        let whole: toml::Table = toml::from_str(&text).expect("TOML");
        let mine = toml::Table::from_iter([("mine".to_owned(), toml::Value::Table(whole))]);
        let file = toml::Table::from_iter([("workflows".to_owned(), toml::Value::Table(mine))]);
        check(&toml::to_string(&file).expect("TOML"));
    }
}

#[test]
fn roles_may_be_names_or_tables() {
    check(
        "[roles]\nimplement = \"claude\"\nfix = { agent = \"claude\", model = \"haiku\" }\nreview = { model = \"opus\" }\n",
    );
}

/// Calls `visit` with every property of the schema and the path to it.
fn walk(schema: &Value, path: &str, visit: &mut impl FnMut(&str, &Value)) {
    match schema {
        Value::Object(words) => {
            for (word, inside) in words {
                if let (true, Some(properties)) = (word == "properties", inside.as_object()) {
                    for (key, property) in properties {
                        visit(&format!("{path}.{key}"), property);
                        walk(property, &format!("{path}.{key}"), visit);
                    }
                } else {
                    walk(inside, path, visit);
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|inside| walk(inside, path, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_key_has_a_description_and_a_valid_default() {
    let mut known = Vec::new();
    walk(&schema(), "", &mut |path, property| {
        let about = property["description"].as_str().unwrap_or_default();
        assert!(about.len() > 5 && !about.ends_with(' '), "{path}: {about:?}");
        let mut alone = property.clone();
        if let Some(default) = alone.as_object_mut().and_then(|words| words.remove("default")) {
            assert!(jsonschema::is_valid(&alone, &default), "{path}: {default}");
            known.push(path.to_owned());
        }
    });
    assert!(known.contains(&".jobs".to_owned()) && known.contains(&".limits.silence".to_owned()), "{known:?}");
}

/// The sources of the settings and workflows, without their tests and comments.
fn sources() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let directories =
        ["settings", "settings/edit", "settings/foreign", "workflow"].map(|directory| root.join(directory));
    let entries = directories.iter().flat_map(|directory| fs::read_dir(directory).expect("a directory"));
    let files = entries.map(|entry| entry.expect("a readable directory").path());
    let files = files.chain(["settings.rs", "workflow.rs"].map(|file| root.join(file)));
    let files = files.filter(|path| path.extension().is_some_and(|end| end == "rs"));
    let read = |path| fs::read_to_string(path).expect("a readable file");
    let code = |text: String| -> String {
        let lines = text.split("#[cfg(test)]").next().unwrap_or_default().lines();
        lines.filter(|line| !line.trim_start().starts_with("//")).collect()
    };
    files.map(read).map(code).collect()
}

/// Keys that are also the name of a preset, a role, or a word of JSON Schema or serde attributes.
const OTHER_WORDS: [&str; 6] = ["description", "format", "kind", "number", "phases", "plan"];

/// A key is the name of a field. Where its text is needed it comes from the field, so that both stay equal.
#[test]
fn a_key_is_written_at_most_once_as_a_literal() {
    let sources = sources();
    assert!(sources.len() > 20, "{} files", sources.len());
    walk(&schema(), "", &mut |path, _| {
        let key = path.rsplit('.').next().unwrap_or_default();
        if !OTHER_WORDS.contains(&key) {
            let count: usize = sources.iter().map(|text| text.matches(&format!("\"{key}\"")).count()).sum();
            assert!(count <= 1, "`{key}` is a literal {count} times: use `key_name!`");
        }
    });
}

/// The schema covers every table of the reader.
#[test]
fn the_schema_has_every_key() {
    let mut paths = Vec::new();
    walk(&schema(), "", &mut |path, _| paths.push(path.to_owned()));
    let phase = |kind: &str| format!("[[workflows.w.phases]]\nname = \"p\"\nkind = \"{kind}\"");
    let of_workflows = ["[workflows.w]".to_owned(), "[workflows.w.reviewers.r]".to_owned()];
    let of_workflows = of_workflows.into_iter().chain(["agent", "gate", "check"].map(phase));
    let above = TABLES.iter().map(|(_, above)| (*above).to_owned()).chain(of_workflows);
    for key in above.flat_map(|above| known_keys(&above)) {
        assert!(paths.iter().any(|path| path.ends_with(&format!(".{key}"))), "{key}");
    }
}
