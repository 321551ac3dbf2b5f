//! Shared code of OpenAI's two APIs.

use serde_json::{Value, json};

use super::fault::ModelError;

/// The body of an error response.
pub(super) fn error_body(error: &ModelError) -> Value {
    let (kind, code) = match error.status {
        401 => ("invalid_request_error", json!("invalid_api_key")),
        404 => ("invalid_request_error", json!("model_not_found")),
        429 => ("requests", json!("rate_limit_exceeded")),
        400..500 => ("invalid_request_error", Value::Null),
        503 => ("server_error", json!("server_is_overloaded")),
        _ => ("server_error", Value::Null),
    };
    json!({ "error": { "message": error.message(), "type": kind, "param": null, "code": code } })
}
