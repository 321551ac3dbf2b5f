//! `write_task`: writes one task of a specification.

use serde_json::{Value, json};

pub const DESCRIPTION: &str = "Write one task of the specification. Writing a task with the same id again replaces it";

pub fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "id": { "type": "string", "description": "A short name of its own" },
            "title": { "type": "string", "description": "One line" },
            "description": {
                "type": "string",
                "description": "What to build and how to tell that it is done"
            },
            "depends_on": {
                "type": "array",
                "items": { "type": "string" },
                "description": "The ids of the tasks that must be done before"
            }
        },
        "required": ["id", "title"]
    })
}
