//! OpenAI's Chat Completions API.

use serde_json::{Value, json};

use super::dialect::{ProviderApi, SseFrame};
use super::fault::ModelError;
use super::openai;
use super::reply::{ModelReply, halves};
use super::request::{ConversationRole, ModelRequest, ToolDefinition, list, str_or_empty, text_of};

pub(super) struct ChatApi;

impl ProviderApi for ChatApi {
    fn request(&self, _path: &str, body: &Value) -> ModelRequest {
        let mut request = ModelRequest {
            model: str_or_empty(&body["model"]).to_owned(),
            stream: body["stream"] == true,
            tools: list(&body["tools"]).iter().map(tool).filter(|tool| !tool.name.is_empty()).collect(),
            schema: Some(body["response_format"]["json_schema"]["schema"].clone()).filter(Value::is_object),
            ..ModelRequest::default()
        };
        for message in list(&body["messages"]) {
            let text = text_of(&message["content"]);
            match str_or_empty(&message["role"]) {
                "system" | "developer" => request.add_to_system(&text),
                "assistant" => request.push(ConversationRole::Assistant, &text),
                "tool" | "function" => request.push(ConversationRole::Tool, &text),
                _ => request.push(ConversationRole::User, &text),
            }
        }
        request
    }

    fn full_reply(&self, reply: &ModelReply) -> Value {
        let mut message = json!({ "role": "assistant", "content": reply.text });
        if reply.text.is_empty() {
            message["content"] = Value::Null;
        }
        if !reply.calls.is_empty() {
            message["tool_calls"] = calls(reply).collect();
        }
        let choice = json!({ "index": 0, "message": message, "finish_reason": finish(reply) });
        let mut full = envelope(reply, "chat.completion", json!([choice]));
        full["usage"] = usage(reply);
        full
    }

    fn frames(&self, reply: &ModelReply) -> Vec<SseFrame> {
        let chunk = |delta: Value, reason: Value| {
            let choice = json!({ "index": 0, "delta": delta, "finish_reason": reason });
            SseFrame::data(envelope(reply, "chat.completion.chunk", json!([choice])))
        };
        let mut frames = vec![chunk(json!({ "role": "assistant", "content": "" }), Value::Null)];
        let texts = reply.deltas().into_iter();
        frames.extend(texts.map(|text| chunk(json!({ "content": text }), Value::Null)));
        for (at, mut call) in calls(reply).enumerate() {
            let arguments = str_or_empty(&call["function"]["arguments"]).to_owned();
            call["index"] = json!(at);
            call["function"]["arguments"] = json!("");
            frames.push(chunk(json!({ "tool_calls": [call] }), Value::Null));
            frames.extend(halves(&arguments).into_iter().map(|part| {
                let delta = json!({ "index": at, "function": { "arguments": part } });
                chunk(json!({ "tool_calls": [delta] }), Value::Null)
            }));
        }
        frames.push(chunk(json!({}), json!(finish(reply))));
        let mut last = envelope(reply, "chat.completion.chunk", json!([]));
        last["usage"] = usage(reply);
        frames.push(SseFrame::data(last));
        frames.push(SseFrame::data("[DONE]"));
        frames
    }

    fn error_body(&self, error: &ModelError) -> Value {
        openai::error_body(error)
    }

    fn error_frame(&self, error: &ModelError) -> SseFrame {
        SseFrame::data(openai::error_body(error))
    }

    fn token_count(&self, tokens: u64) -> Value {
        json!({ "input_tokens": tokens })
    }
}

fn tool(declared: &Value) -> ToolDefinition {
    let function = &declared["function"];
    ToolDefinition {
        name: str_or_empty(&function["name"]).to_owned(),
        schema: function["parameters"].clone(),
        ..ToolDefinition::default()
    }
}

fn envelope(reply: &ModelReply, kind: &str, choices: Value) -> Value {
    json!({ "id": reply.id("chatcmpl"), "object": kind, "created": 0, "model": reply.model, "choices": choices })
}

fn calls(reply: &ModelReply) -> impl Iterator<Item = Value> {
    reply.calls.iter().enumerate().map(|(at, call)| {
        let function = json!({ "name": call.tool.name, "arguments": call.json().to_string() });
        json!({ "id": reply.call_id("call", at), "type": "function", "function": function })
    })
}

fn finish(reply: &ModelReply) -> &'static str {
    if reply.calls.is_empty() { "stop" } else { "tool_calls" }
}

fn usage(reply: &ModelReply) -> Value {
    json!({
        "prompt_tokens": reply.usage.input,
        "prompt_tokens_details": { "cached_tokens": reply.usage.cached_input },
        "completion_tokens": reply.usage.output,
        "completion_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": reply.usage.total(),
    })
}
