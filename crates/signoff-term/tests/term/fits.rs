//! A JSON schema validator for the features that our schemas use.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema")
}

/// Reads a stored schema.
pub fn schema(name: &str) -> Value {
    let path = directory().join(format!("{name}.schema.json"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

/// Validates a value; keys that are not in the schema are errors.
pub fn fits(value: &Value, root: &Value) -> Result<(), String> {
    SchemaChecker { root }.check(value, root)
}

struct SchemaChecker<'a> {
    root: &'a Value,
}

impl SchemaChecker<'_> {
    fn check(&self, value: &Value, schema: &Value) -> Result<(), String> {
        if let Some(reference) = schema["$ref"].as_str() {
            return self.check_reference(value, reference);
        }
        if let Some(any) = schema.get("anyOf").or(schema.get("oneOf")).and_then(Value::as_array) {
            return any.iter().map(|choice| self.check(value, choice)).reduce(Result::or).expect("a choice");
        }
        check_value(value, schema)?;
        for (index, item) in value.as_array().into_iter().flatten().enumerate() {
            self.check(item, &schema["items"]).map_err(|problem| format!("[{index}]{problem}"))?;
        }
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for key in required {
            value.get(key).ok_or(format!(": `{key}` is missing"))?;
        }
        for (key, item) in value.as_object().into_iter().flatten().filter(|_| schema["properties"].is_object()) {
            let property = schema["properties"].get(key).ok_or(format!(": `{key}` is not in the schema"))?;
            self.check(item, property).map_err(|problem| format!(".{key}{problem}"))?;
        }
        Ok(())
    }

    fn check_reference(&self, value: &Value, reference: &str) -> Result<(), String> {
        if let Some(name) = reference.strip_suffix(".schema.json") {
            return fits(value, &schema(name));
        }
        let pointer = reference.strip_prefix('#').expect("a reference of ours");
        self.check(value, self.root.pointer(pointer).expect("a definition"))
    }
}

fn check_value(value: &Value, schema: &Value) -> Result<(), String> {
    let none = schema["enum"].as_array().is_some_and(|words| !words.contains(value));
    if none || schema.get("const").is_some_and(|constant| constant != value) {
        return Err(format!(": {value} is none of the words"));
    }
    let kinds = &schema["type"];
    let fits = match kinds.as_array() {
        Some(kinds) => kinds.iter().any(|kind| has_type(value, kind)),
        None => kinds.is_null() || has_type(value, kinds),
    };
    if fits { Ok(()) } else { Err(format!(": {value} is no {kinds}")) }
}

fn has_type(value: &Value, kind: &Value) -> bool {
    match kind.as_str().expect("a word") {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("unknown type {other}"),
    }
}
