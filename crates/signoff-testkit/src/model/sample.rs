//! Generates a minimal value for a JSON Schema.

use serde_json::{Map, Value, json};

/// Sufficient for the side requests of clients: titles, classifications, yes or no.
pub(super) fn sample(schema: &Value) -> Value {
    if let Some(fixed) = schema.get("const") {
        return fixed.clone();
    }
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    if let Some(first) = ["anyOf", "oneOf", "allOf"].iter().find_map(|key| schema[*key].get(0)) {
        return sample(first);
    }
    let kind = schema["type"].as_str().or_else(|| schema["type"][0].as_str());
    let kind = kind.unwrap_or(if schema["properties"].is_object() { "object" } else { "string" });
    match kind.to_ascii_lowercase().as_str() {
        "object" => object(schema),
        "array" => json!([]),
        "boolean" => json!(false),
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or(json!(1)),
        "null" => Value::Null,
        _ => json!("scripted"),
    }
}

fn object(schema: &Value) -> Value {
    let names = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let members = names.map(|name| (name.to_owned(), sample(&schema["properties"][name])));
    Value::Object(members.collect::<Map<_, _>>())
}
