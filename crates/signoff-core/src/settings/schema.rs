//! The JSON Schema of a settings file, for editors.
//!
//! A schema sees one file alone: rules between tables and files are checked only by the reader, so the schema accepts
//! some files that the reader refuses, and never the other way round.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::file::SettingsFile;
use crate::workflow::keys::phase_schema;

/// The schema of a `signoff.toml`, in draft 7, which all editors know.
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true).into_generator();
    let mut file = SettingsFile::json_schema(&mut generator).to_value();
    file["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    file["title"] = json!("signoff.toml");
    file["description"] = json!("How work is done and signed off in a repository");
    file["definitions"] = json!({ "phase": phase_schema(&mut generator).to_value() });
    tidy(&mut file);
    file
}

/// Closes every table and removes what TOML does not have: null values, and defaults of whole tables.
fn tidy(schema: &mut Value) {
    if let Value::Object(object) = schema {
        tidy_object(object);
    }
    match schema {
        Value::Object(object) => object.values_mut().for_each(tidy),
        Value::Array(list) => list.iter_mut().for_each(tidy),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn tidy_object(object: &mut Map<String, Value>) {
    if let Some(Value::String(about)) = object.get_mut("description") {
        *about = about.replace('\n', " ");
    }
    if object.get("default").is_some_and(|default| default.is_null() || default.is_object()) {
        object.remove("default");
    }
    if object.get("properties").is_some_and(Value::is_object) && !object.contains_key("additionalProperties") {
        object.insert("additionalProperties".to_owned(), json!(false));
    }
    if object.get("format") == Some(&json!("uint32")) {
        object.remove("format");
        object.insert("maximum".to_owned(), json!(u32::MAX));
    }
    for word in ["type", "enum"] {
        if let Some(Value::Array(kinds)) = object.get_mut(word) {
            kinds.retain(|kind| *kind != json!("null") && !kind.is_null());
            if let ("type", [kind]) = (word, kinds.as_slice()) {
                let kind = kind.clone();
                object.insert("type".to_owned(), kind);
            }
        }
    }
    if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
        choices.retain(|choice| *choice != json!({ "type": "null" }));
        if let [Value::Object(choice)] = choices.as_slice() {
            let choice = choice.clone();
            object.remove("anyOf");
            for (word, value) in choice {
                object.entry(word).or_insert(value);
            }
        }
    }
}
