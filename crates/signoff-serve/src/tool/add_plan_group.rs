//! `add_plan_group`: adds tasks that may run in parallel.

use serde_json::{Value, json};

pub const DESCRIPTION: &str =
    "Add a group of tasks that may be worked at once, after all groups added before. Every task is in one group";

pub fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "tasks": {
                "type": "array",
                "items": { "type": "string" },
                "minItems": 1,
                "description": "The ids of the tasks"
            }
        },
        "required": ["tasks"]
    })
}
