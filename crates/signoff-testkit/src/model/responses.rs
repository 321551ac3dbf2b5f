//! OpenAI's Responses API.

use serde_json::{Value, json};

use super::dialect::{ProviderApi, SseFrame};
use super::fault::ModelError;
use super::openai;
use super::reply::{ModelReply, ToolCall, halves};
use super::request::{ConversationRole, ModelRequest, ToolDefinition, ToolForm, list, str_or_empty, text_of};

pub(super) struct ResponsesApi;

impl ProviderApi for ResponsesApi {
    fn request(&self, _path: &str, body: &Value) -> ModelRequest {
        let mut request = ModelRequest {
            model: str_or_empty(&body["model"]).to_owned(),
            stream: body["stream"] == true,
            system: text_of(&body["instructions"]),
            tools: list(&body["tools"]).iter().flat_map(tools).collect(),
            schema: Some(body["text"]["format"]["schema"].clone()).filter(Value::is_object),
            ..ModelRequest::default()
        };
        if let Some(text) = body["input"].as_str() {
            request.push(ConversationRole::User, text);
        }
        for item in list(&body["input"]) {
            add_item(&mut request, item);
        }
        request
    }

    fn full_reply(&self, reply: &ModelReply) -> Value {
        let mut output = Vec::new();
        if !reply.text.is_empty() {
            output.push(message(reply, "completed", &reply.text));
        }
        output.extend(reply.calls.iter().enumerate().map(|(at, call)| call_item(reply, at, call)));
        let mut full = empty_response(reply);
        full["status"] = json!("completed");
        full["output"] = Value::Array(output);
        full["usage"] = json!({
            "input_tokens": reply.usage.input,
            "input_tokens_details": { "cached_tokens": reply.usage.cached_input },
            "output_tokens": reply.usage.output,
            "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": reply.usage.total(),
        });
        full
    }

    fn frames(&self, reply: &ModelReply) -> Vec<SseFrame> {
        let full = self.full_reply(reply);
        let mut frames = vec![
            SseFrame::named("response.created", json!({ "response": empty_response(reply) })),
            SseFrame::named("response.in_progress", json!({ "response": empty_response(reply) })),
        ];
        for (at, item) in list(&full["output"]).iter().enumerate() {
            frames.extend(match str_or_empty(&item["type"]) {
                "message" => text_frames(reply, at, item),
                kind => call_frames(kind, at, item),
            });
        }
        frames.push(SseFrame::named("response.completed", json!({ "response": full })));
        let numbered = frames.into_iter().enumerate();
        numbered.map(|(number, frame)| frame.with("sequence_number", number)).collect()
    }

    fn error_body(&self, error: &ModelError) -> Value {
        openai::error_body(error)
    }

    fn error_frame(&self, error: &ModelError) -> SseFrame {
        let error = &openai::error_body(error)["error"];
        let code = if error["code"].is_null() { &error["type"] } else { &error["code"] };
        let error = json!({ "code": code, "message": error["message"] });
        SseFrame::named("response.failed", json!({ "response": { "status": "failed", "error": error } }))
    }

    fn token_count(&self, tokens: u64) -> Value {
        json!({ "object": "response.input_tokens", "input_tokens": tokens })
    }
}

/// The tools of one declaration: the tool itself, the nested ones, or none if it cannot be called.
fn tools(declared: &Value) -> Vec<ToolDefinition> {
    let tool = |tool: &Value, namespace: Option<&str>| ToolDefinition {
        name: str_or_empty(&tool["name"]).to_owned(),
        namespace: namespace.map(str::to_owned),
        schema: tool["parameters"].clone(),
        form: if tool["type"] == "custom" { ToolForm::Freeform } else { ToolForm::Json },
    };
    match str_or_empty(&declared["type"]) {
        "namespace" => {
            let name = declared["name"].as_str();
            list(&declared["tools"]).iter().map(|nested| tool(nested, name)).collect()
        }
        "tool_search" => vec![ToolDefinition {
            name: "tool_search".to_owned(),
            schema: declared["parameters"].clone(),
            form: ToolForm::Search,
            ..ToolDefinition::default()
        }],
        _ if declared["name"].is_string() => vec![tool(declared, None)],
        _ => Vec::new(),
    }
}

fn add_item(request: &mut ModelRequest, item: &Value) {
    let text = text_of(&item["content"]);
    match (item["type"].as_str().unwrap_or("message"), str_or_empty(&item["role"])) {
        ("message", "system" | "developer") => request.add_to_system(&text),
        ("message", "assistant") => request.push(ConversationRole::Assistant, &text),
        ("message", _) => request.push(ConversationRole::User, &text),
        ("tool_search_call", _) => request.searched = true,
        // Tools that a search found can be called like declared ones.
        ("tool_search_output", _) => request.tools.extend(list(&item["tools"]).iter().flat_map(tools)),
        ("reasoning", _) => request.push(ConversationRole::Assistant, ""),
        (kind, _) if kind.ends_with("_output") => request.push(ConversationRole::Tool, &text_of(&item["output"])),
        (kind, _) if kind.ends_with("_call") => request.push(ConversationRole::Assistant, ""),
        _ => {}
    }
}

/// An empty response in progress.
fn empty_response(reply: &ModelReply) -> Value {
    json!({
        "id": reply.id("resp"),
        "object": "response",
        "created_at": 0,
        "status": "in_progress",
        "model": reply.model,
        "output": [],
        "error": null,
        "incomplete_details": null,
        "usage": null,
    })
}

fn message(reply: &ModelReply, status: &str, text: &str) -> Value {
    let content = json!([{ "type": "output_text", "text": text, "annotations": [] }]);
    let content = if text.is_empty() { json!([]) } else { content };
    json!({ "type": "message", "id": reply.id("msg"), "role": "assistant", "status": status, "content": content })
}

fn call_item(reply: &ModelReply, at: usize, call: &ToolCall) -> Value {
    let (id, call_id) = (reply.call_id("item", at), reply.call_id("call", at));
    let mut item = match call.tool.form {
        ToolForm::Json => {
            json!({ "type": "function_call", "name": call.tool.name, "arguments": call.text() })
        }
        ToolForm::Freeform => {
            json!({ "type": "custom_tool_call", "name": call.tool.name, "input": call.text() })
        }
        ToolForm::Search => {
            json!({ "type": "tool_search_call", "execution": "client", "arguments": call.json() })
        }
    };
    item["id"] = json!(id);
    item["call_id"] = json!(call_id);
    item["status"] = json!("completed");
    if let Some(namespace) = &call.tool.namespace {
        item["namespace"] = json!(namespace);
    }
    item
}

/// The frames of a text message.
fn text_frames(reply: &ModelReply, at: usize, item: &Value) -> Vec<SseFrame> {
    let place = |mut data: Value| {
        data["item_id"] = item["id"].clone();
        data["output_index"] = json!(at);
        data["content_index"] = json!(0);
        data
    };
    let part = |text: &str| json!({ "type": "output_text", "text": text, "annotations": [] });
    let mut frames = vec![
        SseFrame::named(
            "response.output_item.added",
            json!({ "output_index": at, "item": message(reply, "in_progress", "") }),
        ),
        SseFrame::named("response.content_part.added", place(json!({ "part": part("") }))),
    ];
    let deltas = reply.deltas().into_iter();
    frames.extend(deltas.map(|delta| SseFrame::named("response.output_text.delta", place(json!({ "delta": delta })))));
    frames.push(SseFrame::named("response.output_text.done", place(json!({ "text": reply.text }))));
    frames.push(SseFrame::named("response.content_part.done", place(json!({ "part": part(&reply.text) }))));
    frames.push(SseFrame::named("response.output_item.done", json!({ "output_index": at, "item": item })));
    frames
}

/// The frames of a tool call.
fn call_frames(kind: &str, at: usize, item: &Value) -> Vec<SseFrame> {
    let (field, delta, done) = match kind {
        "function_call" => {
            ("arguments", "response.function_call_arguments.delta", "response.function_call_arguments.done")
        }
        _ => ("input", "response.custom_tool_call_input.delta", "response.custom_tool_call_input.done"),
    };
    let place = |name: &str, value: &str| json!({ "item_id": item["id"], "output_index": at, name: value });
    let mut started = item.clone();
    started["status"] = json!("in_progress");
    let text = item[field].as_str();
    if text.is_some() {
        started[field] = json!("");
    }
    let mut frames =
        vec![SseFrame::named("response.output_item.added", json!({ "output_index": at, "item": started }))];
    if let Some(text) = text {
        frames.extend(halves(text).into_iter().map(|part| SseFrame::named(delta, place("delta", part))));
        frames.push(SseFrame::named(done, place(field, text)));
    }
    frames.push(SseFrame::named("response.output_item.done", json!({ "output_index": at, "item": item })));
    frames
}
