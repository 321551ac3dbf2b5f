//! Secrets in documents: logins and settings in JSON.

use serde_json::Value;

use super::{names, of_address};

/// The secrets of a document in JSON.
pub fn secrets(text: &str) -> Vec<String> {
    let said: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let mut found = Vec::new();
    if let Ok(document) = serde_json::from_str::<Value>(&said.join("\n")) {
        look(&document, ("", false), &mut found);
    }
    found
}

/// A document is no deeper than its reader allows.
fn look(value: &Value, (name, among): (&str, bool), found: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            let text = text.trim();
            if names::is_secret_text(name, text, among) {
                found.extend([Some(text), names::bare(text)].into_iter().flatten().map(str::to_owned));
            }
            found.extend(of_address(text).into_iter().map(str::to_owned));
        }
        Value::Array(values) => {
            for value in values {
                look(value, (name, among), found);
            }
        }
        Value::Object(members) => {
            let among = among || names::is_of_secrets(name);
            for (name, value) in members {
                look(value, (name, among), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
