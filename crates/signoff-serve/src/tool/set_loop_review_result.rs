//! `set_loop_review_result`: reports the review of one loop.

use serde_json::{Value, json};

pub const DESCRIPTION: &str = "Report review results for a specific loop";

pub fn schema() -> Value {
    let mut properties = super::result_properties();
    properties["loopId"] = json!({ "type": "string", "description": "The loop being reviewed" });
    properties["taskId"] = json!({
        "type": "string",
        "description": "The task that was reviewed (optional for checkpoint reviews)"
    });
    json!({ "type": "object", "properties": properties, "required": ["loopId", "passed"] })
}
