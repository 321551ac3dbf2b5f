//! Finds secrets in JSON documents: logins and settings.

use serde_json::Value;

use super::{names, url_credentials};

/// The secrets of a JSON document.
pub fn secrets(text: &str) -> Vec<String> {
    let said: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let mut found = Vec::new();
    if let Ok(document) = serde_json::from_str::<Value>(&said.join("\n")) {
        collect(&document, ("", false), &mut found);
    }
    found
}

/// The JSON parser limits the depth of the recursion.
fn collect(value: &Value, (name, in_secrets): (&str, bool), found: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            let text = text.trim();
            if names::is_secret_text(name, text, in_secrets) {
                found.extend([Some(text), names::strip_auth_scheme(text)].into_iter().flatten().map(str::to_owned));
            }
            found.extend(url_credentials(text).into_iter().map(str::to_owned));
        }
        Value::Array(values) => {
            for value in values {
                collect(value, (name, in_secrets), found);
            }
        }
        Value::Object(members) => {
            let among = in_secrets || names::is_secret_container(name);
            for (name, value) in members {
                collect(value, (name, among), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
