//! Anthropic's Messages.

use serde_json::{Value, json};

use super::dialect::{Frame, Speaks};
use super::fault::Refusal;
use super::reply::{Reply, halves};
use super::request::{Form, Request, Role, Tool, list, text_of, word};

pub(super) struct Anthropic;

/// The client's own tool to find deferred ones with.
const SEARCH: &str = "ToolSearch";

impl Speaks for Anthropic {
    fn request(&self, _path: &str, body: &Value) -> Request {
        let format = [&body["output_config"]["format"]["schema"], &body["output_format"]["schema"]];
        let mut request = Request {
            model: word(&body["model"]).to_owned(),
            stream: body["stream"] == true,
            system: text_of(&body["system"]),
            tools: list(&body["tools"])
                .iter()
                .filter(|tool| tool["defer_loading"] != true)
                .map(tool)
                .collect(),
            schema: format.into_iter().find(|schema| schema.is_object()).cloned(),
            ..Request::default()
        };
        for message in list(&body["messages"]) {
            take(&mut request, message);
        }
        request.tools.extend(found(body));
        request
    }

    fn whole(&self, reply: &Reply) -> Value {
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

    fn frames(&self, reply: &Reply) -> Vec<Frame> {
        let whole = self.whole(reply);
        let mut begun = whole.clone();
        begun["content"] = json!([]);
        begun["stop_reason"] = Value::Null;
        begun["usage"] = usage(reply, 1);
        let mut frames =
            vec![Frame::named("message_start", json!({ "message": begun })), Frame::named("ping", json!({}))];
        for (at, content) in list(&whole["content"]).iter().enumerate() {
            frames.extend(block(at, content));
        }
        let end = json!({ "stop_reason": whole["stop_reason"], "stop_sequence": null });
        frames.push(Frame::named("message_delta", json!({ "delta": end, "usage": whole["usage"] })));
        frames.push(Frame::named("message_stop", json!({})));
        frames
    }

    fn refusal(&self, refusal: &Refusal) -> Value {
        let kind = match refusal.status {
            400 => "invalid_request_error",
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            _ => "api_error",
        };
        json!({ "type": "error", "error": { "type": kind, "message": refusal.message() } })
    }

    fn told(&self, refusal: &Refusal) -> Frame {
        Frame::named("error", self.refusal(refusal))
    }

    fn count(&self, tokens: u64) -> Value {
        json!({ "input_tokens": tokens })
    }
}

fn tool(declared: &Value) -> Tool {
    let name = word(&declared["name"]).to_owned();
    let form = if name == SEARCH { Form::Search } else { Form::Json };
    Tool { name, namespace: None, schema: declared["input_schema"].clone(), form }
}

/// Adds what a message says. A message of results can go on with the user's own words.
fn take(request: &mut Request, message: &Value) {
    let words = [json!({ "type": "text", "text": message["content"] })];
    let parts = message["content"].as_array().map_or(&words[..], Vec::as_slice);
    let of = |kind: &str| parts.iter().filter(|part| part["type"] == kind).collect::<Vec<_>>();
    let text = of("text").into_iter().map(text_of).collect::<Vec<_>>().join("\n");
    match word(&message["role"]) {
        "assistant" => {
            let calls = of("tool_use");
            let is_search = !calls.is_empty() && calls.iter().all(|call| call["name"] == SEARCH);
            request.searched |= is_search;
            if !is_search {
                request.push(Role::Assistant, &text);
            }
        }
        "system" => request.add_to_system(&text),
        _ => {
            for result in of("tool_result") {
                request.push(Role::Tool, &text_of(&result["content"]));
            }
            if !of("text").is_empty() {
                request.push(Role::User, &text);
            }
        }
    }
}

/// The deferred tools that a search has found: from then on they can be called.
fn found(body: &Value) -> impl Iterator<Item = Tool> + use<'_> {
    let parts = list(&body["messages"]).iter().flat_map(|message| list(&message["content"]));
    let references: Vec<_> = parts
        .flat_map(|part| list(&part["content"]))
        .filter(|part| part["type"] == "tool_reference")
        .map(|part| word(&part["tool_name"]))
        .collect();
    let deferred = list(&body["tools"]).iter().filter(|tool| tool["defer_loading"] == true);
    deferred.filter(move |tool| references.contains(&word(&tool["name"]))).map(tool)
}

/// The frames of one block of content.
fn block(index: usize, whole: &Value) -> Vec<Frame> {
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
    let mut frames =
        vec![Frame::named("content_block_start", json!({ "index": index, "content_block": empty }))];
    frames.extend(halves(&text).into_iter().map(|half| {
        let delta = json!({ "type": kind, field: half });
        Frame::named("content_block_delta", json!({ "index": index, "delta": delta }))
    }));
    frames.push(Frame::named("content_block_stop", json!({ "index": index })));
    frames
}

/// Here the input is told without what the cache has to do with.
fn usage(reply: &Reply, output: u64) -> Value {
    json!({
        "input_tokens": reply.usage.fresh_input(),
        "cache_creation_input_tokens": reply.usage.written_input,
        "cache_read_input_tokens": reply.usage.cached_input,
        "output_tokens": output,
    })
}
