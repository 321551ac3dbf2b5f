//! What OpenAI's two languages have in common.

use serde_json::{Value, json};

use super::fault::Refusal;

/// An error.
pub(super) fn refusal(refusal: &Refusal) -> Value {
    let (kind, code) = match refusal.status {
        401 => ("invalid_request_error", json!("invalid_api_key")),
        404 => ("invalid_request_error", json!("model_not_found")),
        429 => ("requests", json!("rate_limit_exceeded")),
        400..500 => ("invalid_request_error", Value::Null),
        503 => ("server_error", json!("server_is_overloaded")),
        _ => ("server_error", Value::Null),
    };
    json!({ "error": { "message": refusal.message(), "type": kind, "param": null, "code": code } })
}
