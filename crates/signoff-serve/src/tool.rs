//! The MCP tools: name, description and input schema of each.

use std::sync::Arc;

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};
use signoff_core::report_token::ReportTool;
use strum::VariantArray as _;

use crate::user_mcp::ReadError;

/// The definition of a reporting tool for agents.
pub fn report_tool(tool: ReportTool) -> Tool {
    let (description, properties, required): (&str, Value, &[&str]) = match tool {
        ReportTool::SetLoopReviewResult => {
            ("Report review results for a specific loop", loop_review_properties(), &["loopId", "passed"])
        }
        ReportTool::SetReviewResult => {
            ("Report review results for the run as a whole", result_properties(), &["passed"])
        }
        ReportTool::WriteTask => (
            "Write one task of the specification. Writing a task with the same id again replaces it",
            json!({
                "id": { "type": "string", "description": "A short name of its own" },
                "title": { "type": "string", "description": "One line" },
                "description": { "type": "string", "description": "What to build and how to tell that it is done" },
                "depends_on": {
                    "type": "array",
                    "items": { "type": "string" },
                    "description": "The ids of the tasks that must be done before"
                },
            }),
            &["id", "title"],
        ),
        ReportTool::AddPlanGroup => (
            "Add a group of tasks that may run in parallel, after all groups added before. Every task is in one group",
            json!({
                "tasks": {
                    "type": "array",
                    "items": { "type": "string" },
                    "minItems": 1,
                    "description": "The ids of the tasks"
                }
            }),
            &["tasks"],
        ),
    };
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    Tool::new(tool.into_str(), description, schema_object(schema))
}

/// A read-only tool for users' clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum UserTool {
    ListTasks,
    ShowTask,
    ReadFindings,
}

impl UserTool {
    fn definition(self) -> Tool {
        let (description, schema) = match self {
            Self::ListTasks => (
                "List all tasks with their status, verdict and cost, and the questions that wait for a person",
                json!({ "type": "object", "properties": {} }),
            ),
            Self::ShowTask => {
                ("Show one task: its reviews cycle by cycle, attempts, findings, costs and files", task_id_schema())
            }
            Self::ReadFindings => (
                "Read what reviewers found in one task over all cycles, each finding with its state and who decided it",
                task_id_schema(),
            ),
        };
        let read_only = ToolAnnotations::new().read_only(true).open_world(false);
        Tool::new(<&str>::from(self), description, schema_object(schema)).with_annotations(read_only)
    }
}

/// The definitions of the read-only tools.
pub fn user_tools() -> Vec<Tool> {
    UserTool::VARIANTS.iter().map(|tool| tool.definition()).collect()
}

/// Reads the `id` argument of a tool: the number of a task.
pub fn task_id(arguments: &Map<String, Value>) -> Result<u64, ReadError> {
    let id = match arguments.get("id") {
        // Models often write numbers as text.
        Some(Value::String(text)) => text.trim().trim_start_matches('#').parse().ok(),
        Some(value) => value.as_u64(),
        None => None,
    };
    id.ok_or_else(|| ReadError("`id` must be the number of a task: list_tasks names them".to_owned()))
}

fn task_id_schema() -> Value {
    let id = json!({ "type": "integer", "description": "The task's number" });
    json!({ "type": "object", "properties": { "id": id }, "required": ["id"] })
}

fn loop_review_properties() -> Value {
    let mut properties = result_properties();
    properties["loopId"] = json!({ "type": "string", "description": "The loop being reviewed" });
    properties["taskId"] = json!({
        "type": "string",
        "description": "The task that was reviewed (optional for checkpoint reviews)"
    });
    properties
}

/// The schema properties that all review results share.
fn result_properties() -> Value {
    json!({
        "passed": { "type": "boolean" },
        "interpretedIntent": { "type": "string" },
        "intentSatisfied": { "type": "boolean" },
        "issues": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "file": { "type": "string" },
                    "line": { "type": "number" },
                    "type": { "type": "string" },
                    "description": { "type": "string" },
                    "suggestion": { "type": "string" }
                }
            }
        }
    })
}

fn schema_object(schema: Value) -> Arc<Map<String, Value>> {
    Arc::new(match schema {
        Value::Object(object) => object,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_tool_definitions() {
        insta::assert_json_snapshot!(ReportTool::ALL.iter().copied().map(report_tool).collect::<Vec<_>>(), @r#"
        [
          {
            "name": "set_loop_review_result",
            "description": "Report review results for a specific loop",
            "inputSchema": {
              "type": "object",
              "properties": {
                "passed": {
                  "type": "boolean"
                },
                "interpretedIntent": {
                  "type": "string"
                },
                "intentSatisfied": {
                  "type": "boolean"
                },
                "issues": {
                  "type": "array",
                  "items": {
                    "type": "object",
                    "properties": {
                      "file": {
                        "type": "string"
                      },
                      "line": {
                        "type": "number"
                      },
                      "type": {
                        "type": "string"
                      },
                      "description": {
                        "type": "string"
                      },
                      "suggestion": {
                        "type": "string"
                      }
                    }
                  }
                },
                "loopId": {
                  "type": "string",
                  "description": "The loop being reviewed"
                },
                "taskId": {
                  "type": "string",
                  "description": "The task that was reviewed (optional for checkpoint reviews)"
                }
              },
              "required": [
                "loopId",
                "passed"
              ]
            }
          },
          {
            "name": "set_review_result",
            "description": "Report review results for the run as a whole",
            "inputSchema": {
              "type": "object",
              "properties": {
                "passed": {
                  "type": "boolean"
                },
                "interpretedIntent": {
                  "type": "string"
                },
                "intentSatisfied": {
                  "type": "boolean"
                },
                "issues": {
                  "type": "array",
                  "items": {
                    "type": "object",
                    "properties": {
                      "file": {
                        "type": "string"
                      },
                      "line": {
                        "type": "number"
                      },
                      "type": {
                        "type": "string"
                      },
                      "description": {
                        "type": "string"
                      },
                      "suggestion": {
                        "type": "string"
                      }
                    }
                  }
                }
              },
              "required": [
                "passed"
              ]
            }
          },
          {
            "name": "write_task",
            "description": "Write one task of the specification. Writing a task with the same id again replaces it",
            "inputSchema": {
              "type": "object",
              "properties": {
                "id": {
                  "type": "string",
                  "description": "A short name of its own"
                },
                "title": {
                  "type": "string",
                  "description": "One line"
                },
                "description": {
                  "type": "string",
                  "description": "What to build and how to tell that it is done"
                },
                "depends_on": {
                  "type": "array",
                  "items": {
                    "type": "string"
                  },
                  "description": "The ids of the tasks that must be done before"
                }
              },
              "required": [
                "id",
                "title"
              ]
            }
          },
          {
            "name": "add_plan_group",
            "description": "Add a group of tasks that may run in parallel, after all groups added before. Every task is in one group",
            "inputSchema": {
              "type": "object",
              "properties": {
                "tasks": {
                  "type": "array",
                  "items": {
                    "type": "string"
                  },
                  "minItems": 1,
                  "description": "The ids of the tasks"
                }
              },
              "required": [
                "tasks"
              ]
            }
          }
        ]
        "#);
    }

    #[test]
    fn user_tool_definitions() {
        insta::assert_json_snapshot!(user_tools(), @r#"
        [
          {
            "name": "list_tasks",
            "description": "List all tasks with their status, verdict and cost, and the questions that wait for a person",
            "inputSchema": {
              "type": "object",
              "properties": {}
            },
            "annotations": {
              "readOnlyHint": true,
              "openWorldHint": false
            }
          },
          {
            "name": "show_task",
            "description": "Show one task: its reviews cycle by cycle, attempts, findings, costs and files",
            "inputSchema": {
              "type": "object",
              "properties": {
                "id": {
                  "type": "integer",
                  "description": "The task's number"
                }
              },
              "required": [
                "id"
              ]
            },
            "annotations": {
              "readOnlyHint": true,
              "openWorldHint": false
            }
          },
          {
            "name": "read_findings",
            "description": "Read what reviewers found in one task over all cycles, each finding with its state and who decided it",
            "inputSchema": {
              "type": "object",
              "properties": {
                "id": {
                  "type": "integer",
                  "description": "The task's number"
                }
              },
              "required": [
                "id"
              ]
            },
            "annotations": {
              "readOnlyHint": true,
              "openWorldHint": false
            }
          }
        ]
        "#);
    }

    #[test]
    fn a_task_is_named_by_its_number() {
        let read = |value: Value| task_id(&Map::from_iter([("id".to_owned(), value)])).map_err(|error| error.0);
        assert_eq!(read(json!(7)), Ok(7));
        assert_eq!(read(json!("#7")), Ok(7));
        for wrong in [json!(-1), json!(1.5), json!("seven"), json!(null), json!([7])] {
            insta::allow_duplicates! {
                insta::assert_snapshot!(read(wrong).unwrap_err(), @"`id` must be the number of a task: list_tasks names them");
            }
        }
    }
}
