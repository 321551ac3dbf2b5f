//! `set_review_result`: the review of a run's tasks, of its groups, or of all it changed.

use serde_json::{Value, json};

pub const DESCRIPTION: &str = "Report review results for the run as a whole";

pub fn schema() -> Value {
    json!({ "type": "object", "properties": super::result_properties(), "required": ["passed"] })
}
