//! Anthropic's Messages API.

use serde_json::{Value, json};

use super::dialect::{ProviderApi, SseFrame};
use super::fault::ModelError;
use super::reply::{ModelReply, halves};
use super::request::{ConversationRole, ModelRequest, ToolDefinition, ToolForm, list, str_or_empty, text_of};

pub(super) struct AnthropicApi;

/// The client's tool that searches deferred tools.
const SEARCH: &str = "ToolSearch";

impl ProviderApi for AnthropicApi {
    fn request(&self, _path: &str, body: &Value) -> ModelRequest {
        let format = [&body["output_config"]["format"]["schema"], &body["output_format"]["schema"]];
        let mut request = ModelRequest {
            model: str_or_empty(&body["model"]).to_owned(),
            stream: body["stream"] == true,
            system: text_of(&body["system"]),
            tools: list(&body["tools"]).iter().filter(|tool| tool["defer_loading"] != true).map(tool).collect(),
            schema: format.into_iter().find(|schema| schema.is_object()).cloned(),
            ..ModelRequest::default()
        };
        for message in list(&body["messages"]) {
            add_message(&mut request, message);
        }
        request.tools.extend(found_tools(body));
        request
    }

    fn full_reply(&self, reply: &ModelReply) -> Value {
        let mut blocks = Vec::new();
        if !reply.text.is_empty() {
            blocks.push(json!({ "type": "text", "text": reply.text }));
        }
        blocks.extend(reply.calls.iter().enumerate().map(|(at, call)| {
            json!({ "type": "tool_use", "id": reply.call_id("toolu", at), "name": call.tool.name, "input": call.json() })
        }));
        json!({
            "id": reply.id("msg"),
            "type": "message",
            "role": "assistant",
            "model": reply.model,
            "content": blocks,
            "stop_reason": if reply.calls.is_empty() { "end_turn" } else { "tool_use" },
            "stop_sequence": null,
            "usage": usage(reply, reply.usage.output),
        })
    }

    fn frames(&self, reply: &ModelReply) -> Vec<SseFrame> {
        let full = self.full_reply(reply);
        let mut started = full.clone();
        started["content"] = json!([]);
        started["stop_reason"] = Value::Null;
        started["usage"] = usage(reply, 1);
        let mut frames =
            vec![SseFrame::named("message_start", json!({ "message": started })), SseFrame::named("ping", json!({}))];
        for (at, content) in list(&full["content"]).iter().enumerate() {
            frames.extend(block_frames(at, content));
        }
        let end = json!({ "stop_reason": full["stop_reason"], "stop_sequence": null });
        frames.push(SseFrame::named("message_delta", json!({ "delta": end, "usage": full["usage"] })));
        frames.push(SseFrame::named("message_stop", json!({})));
        frames
    }

    fn error_body(&self, model_error: &ModelError) -> Value {
        let kind = match model_error.status {
            400 => "invalid_request_error",
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            _ => "api_error",
        };
        json!({ "type": "error", "error": { "type": kind, "message": model_error.message() } })
    }

    fn error_frame(&self, model_error: &ModelError) -> SseFrame {
        SseFrame::named("error", self.error_body(model_error))
    }

    fn token_count(&self, tokens: u64) -> Value {
        json!({ "input_tokens": tokens })
    }
}

fn tool(declared: &Value) -> ToolDefinition {
    let name = str_or_empty(&declared["name"]).to_owned();
    let form = if name == SEARCH { ToolForm::Search } else { ToolForm::Json };
    ToolDefinition { name, namespace: None, schema: declared["input_schema"].clone(), form }
}

/// Adds a message to the request. A message with tool results can also contain user text.
fn add_message(request: &mut ModelRequest, message: &Value) {
    let words = [json!({ "type": "text", "text": message["content"] })];
    let parts = message["content"].as_array().map_or(&words[..], Vec::as_slice);
    let of = |kind: &str| parts.iter().filter(|part| part["type"] == kind).collect::<Vec<_>>();
    let text = of("text").into_iter().map(text_of).collect::<Vec<_>>().join("\n");
    match str_or_empty(&message["role"]) {
        "assistant" => {
            let calls = of("tool_use");
            let is_search = !calls.is_empty() && calls.iter().all(|call| call["name"] == SEARCH);
            request.searched |= is_search;
            if !is_search {
                request.push(ConversationRole::Assistant, &text);
            }
        }
        "system" => request.add_to_system(&text),
        _ => {
            for result in of("tool_result") {
                request.push(ConversationRole::Tool, &text_of(&result["content"]));
            }
            if !of("text").is_empty() {
                request.push(ConversationRole::User, &text);
            }
        }
    }
}

/// The deferred tools that a search found, which can be called from then on.
fn found_tools(body: &Value) -> impl Iterator<Item = ToolDefinition> + use<'_> {
    let parts = list(&body["messages"]).iter().flat_map(|message| list(&message["content"]));
    let references: Vec<_> = parts
        .flat_map(|part| list(&part["content"]))
        .filter(|part| part["type"] == "tool_reference")
        .map(|part| str_or_empty(&part["tool_name"]))
        .collect();
    let deferred = list(&body["tools"]).iter().filter(|tool| tool["defer_loading"] == true);
    deferred.filter(move |tool| references.contains(&str_or_empty(&tool["name"]))).map(tool)
}

/// The frames of one content block.
fn block_frames(index: usize, whole: &Value) -> Vec<SseFrame> {
    let mut empty = whole.clone();
    let (text, kind, field) = match whole["text"].as_str() {
        Some(text) => {
            empty["text"] = json!("");
            (text.to_owned(), "text_delta", "text")
        }
        None => {
            empty["input"] = json!({});
            (whole["input"].to_string(), "input_json_delta", "partial_json")
        }
    };
    let mut frames = vec![SseFrame::named("content_block_start", json!({ "index": index, "content_block": empty }))];
    frames.extend(halves(&text).into_iter().map(|half| {
        let delta = json!({ "type": kind, field: half });
        SseFrame::named("content_block_delta", json!({ "index": index, "delta": delta }))
    }));
    frames.push(SseFrame::named("content_block_stop", json!({ "index": index })));
    frames
}

/// The usage. Here `input_tokens` excludes tokens read from or written to the cache.
fn usage(reply: &ModelReply, output: u64) -> Value {
    json!({
        "input_tokens": reply.usage.fresh_input(),
        "cache_creation_input_tokens": reply.usage.written_input,
        "cache_read_input_tokens": reply.usage.cached_input,
        "output_tokens": output,
    })
}
