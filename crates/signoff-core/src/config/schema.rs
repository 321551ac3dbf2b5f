//! What a `signoff.toml` can hold, as JSON Schema.

use serde_json::{Value, json};

use super::tables::Written;
use crate::workflow::schema::phase;

/// The schema of a `signoff.toml`, for editors. Draft 7 is what they all know.
pub fn schema() -> Value {
    let mut file = Written::properties().closed();
    file["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    file["title"] = json!("signoff.toml");
    file["description"] = json!("How work is done and signed off in a repository");
    file["definitions"] = json!({ "phase": phase() });
    file
}
