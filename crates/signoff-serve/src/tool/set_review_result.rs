//! `set_review_result`: reports the review of a run: its tasks, its groups, or all its changes.

use serde_json::{Value, json};

pub const DESCRIPTION: &str = "Report review results for the run as a whole";

pub fn schema() -> Value {
    json!({ "type": "object", "properties": super::result_properties(), "required": ["passed"] })
}
