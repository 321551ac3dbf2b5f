//! OpenAI's Chat Completions, and all that speak it too.

use serde_json::{Value, json};

use super::dialect::{Frame, Speaks};
use super::fault::Refusal;
use super::openai;
use super::reply::{Reply, halves};
use super::request::{Request, Role, Tool, list, text_of, word};

pub(super) struct Chat;

impl Speaks for Chat {
    fn request(&self, _path: &str, body: &Value) -> Request {
        let mut request = Request {
            model: word(&body["model"]).to_owned(),
            stream: body["stream"] == true,
            tools: list(&body["tools"]).iter().map(tool).filter(|tool| !tool.name.is_empty()).collect(),
            schema: Some(body["response_format"]["json_schema"]["schema"].clone()).filter(Value::is_object),
            ..Request::default()
        };
        for message in list(&body["messages"]) {
            let text = text_of(&message["content"]);
            match word(&message["role"]) {
                "system" | "developer" => request.add_to_system(&text),
                "assistant" => request.push(Role::Assistant, &text),
                "tool" | "function" => request.push(Role::Tool, &text),
                _ => request.push(Role::User, &text),
            }
        }
        request
    }

    fn whole(&self, reply: &Reply) -> Value {
        let mut message = json!({ "role": "assistant", "content": reply.text });
        if reply.text.is_empty() {
            message["content"] = Value::Null;
        }
        if !reply.calls.is_empty() {
            message["tool_calls"] = calls(reply).collect();
        }
        let choice = json!({ "index": 0, "message": message, "finish_reason": finish(reply) });
        let mut whole = envelope(reply, "chat.completion", json!([choice]));
        whole["usage"] = usage(reply);
        whole
    }

    fn frames(&self, reply: &Reply) -> Vec<Frame> {
        let chunk = |delta: Value, reason: Value| {
            let choice = json!({ "index": 0, "delta": delta, "finish_reason": reason });
            Frame::data(envelope(reply, "chat.completion.chunk", json!([choice])))
        };
        let mut frames = vec![chunk(json!({ "role": "assistant", "content": "" }), Value::Null)];
        let texts = reply.deltas().into_iter();
        frames.extend(texts.map(|text| chunk(json!({ "content": text }), Value::Null)));
        for (at, mut call) in calls(reply).enumerate() {
            let arguments = word(&call["function"]["arguments"]).to_owned();
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
        frames.push(Frame::data(last));
        frames.push(Frame::data("[DONE]"));
        frames
    }

    fn refusal(&self, refusal: &Refusal) -> Value {
        openai::refusal(refusal)
    }

    fn told(&self, refusal: &Refusal) -> Frame {
        Frame::data(openai::refusal(refusal))
    }

    fn count(&self, tokens: u64) -> Value {
        json!({ "input_tokens": tokens })
    }
}

fn tool(declared: &Value) -> Tool {
    let function = &declared["function"];
    Tool {
        name: word(&function["name"]).to_owned(),
        schema: function["parameters"].clone(),
        ..Tool::default()
    }
}

fn envelope(reply: &Reply, kind: &str, choices: Value) -> Value {
    json!({ "id": reply.id("chatcmpl"), "object": kind, "created": 0, "model": reply.model, "choices": choices })
}

fn calls(reply: &Reply) -> impl Iterator<Item = Value> {
    reply.calls.iter().enumerate().map(|(at, call)| {
        let function = json!({ "name": call.tool.name, "arguments": call.json().to_string() });
        json!({ "id": reply.call_id("call", at), "type": "function", "function": function })
    })
}

fn finish(reply: &Reply) -> &'static str {
    if reply.calls.is_empty() { "stop" } else { "tool_calls" }
}

fn usage(reply: &Reply) -> Value {
    json!({
        "prompt_tokens": reply.usage.input,
        "prompt_tokens_details": { "cached_tokens": reply.usage.cached_input },
        "completion_tokens": reply.usage.output,
        "completion_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": reply.usage.total(),
    })
}
