//! OpenAI's Responses.

use serde_json::{Value, json};

use super::dialect::{Frame, Speaks};
use super::fault::Refusal;
use super::openai;
use super::reply::{Call, Reply, halves};
use super::request::{Form, Request, Role, Tool, list, text_of, word};

pub(super) struct Responses;

impl Speaks for Responses {
    fn request(&self, _path: &str, body: &Value) -> Request {
        let mut request = Request {
            model: word(&body["model"]).to_owned(),
            stream: body["stream"] == true,
            system: text_of(&body["instructions"]),
            tools: list(&body["tools"]).iter().flat_map(tools).collect(),
            schema: Some(body["text"]["format"]["schema"].clone()).filter(Value::is_object),
            ..Request::default()
        };
        if let Some(text) = body["input"].as_str() {
            request.push(Role::User, text);
        }
        for item in list(&body["input"]) {
            take(&mut request, item);
        }
        request
    }

    fn whole(&self, reply: &Reply) -> Value {
        let mut output = Vec::new();
        if !reply.text.is_empty() {
            output.push(message(reply, "completed", &reply.text));
        }
        output.extend(reply.calls.iter().enumerate().map(|(at, call)| called(reply, at, call)));
        let mut whole = begun(reply);
        whole["status"] = json!("completed");
        whole["output"] = Value::Array(output);
        whole["usage"] = json!({
            "input_tokens": reply.usage.input,
            "input_tokens_details": { "cached_tokens": reply.usage.cached_input },
            "output_tokens": reply.usage.output,
            "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": reply.usage.total(),
        });
        whole
    }

    fn frames(&self, reply: &Reply) -> Vec<Frame> {
        let whole = self.whole(reply);
        let mut frames = vec![
            Frame::named("response.created", json!({ "response": begun(reply) })),
            Frame::named("response.in_progress", json!({ "response": begun(reply) })),
        ];
        for (at, item) in list(&whole["output"]).iter().enumerate() {
            frames.extend(match word(&item["type"]) {
                "message" => said(reply, at, item),
                kind => call_frames(kind, at, item),
            });
        }
        frames.push(Frame::named("response.completed", json!({ "response": whole })));
        let numbered = frames.into_iter().enumerate();
        numbered.map(|(number, frame)| frame.with("sequence_number", number)).collect()
    }

    fn refusal(&self, refusal: &Refusal) -> Value {
        openai::refusal(refusal)
    }

    fn told(&self, refusal: &Refusal) -> Frame {
        let error = &openai::refusal(refusal)["error"];
        let code = if error["code"].is_null() { &error["type"] } else { &error["code"] };
        let error = json!({ "code": code, "message": error["message"] });
        Frame::named("response.failed", json!({ "response": { "status": "failed", "error": error } }))
    }

    fn count(&self, tokens: u64) -> Value {
        json!({ "object": "response.input_tokens", "input_tokens": tokens })
    }
}

/// The tools of one declaration: itself, those nested in it, or none that could be called.
fn tools(declared: &Value) -> Vec<Tool> {
    let tool = |tool: &Value, namespace: Option<&str>| Tool {
        name: word(&tool["name"]).to_owned(),
        namespace: namespace.map(str::to_owned),
        schema: tool["parameters"].clone(),
        form: if tool["type"] == "custom" { Form::Freeform } else { Form::Json },
    };
    match word(&declared["type"]) {
        "namespace" => {
            let name = declared["name"].as_str();
            list(&declared["tools"]).iter().map(|nested| tool(nested, name)).collect()
        }
        "tool_search" => vec![Tool {
            name: "tool_search".to_owned(),
            schema: declared["parameters"].clone(),
            form: Form::Search,
            ..Tool::default()
        }],
        _ if declared["name"].is_string() => vec![tool(declared, None)],
        _ => Vec::new(),
    }
}

fn take(request: &mut Request, item: &Value) {
    let text = text_of(&item["content"]);
    match (item["type"].as_str().unwrap_or("message"), word(&item["role"])) {
        ("message", "system" | "developer") => request.add_to_system(&text),
        ("message", "assistant") => request.push(Role::Assistant, &text),
        ("message", _) => request.push(Role::User, &text),
        ("tool_search_call", _) => request.searched = true,
        // What was found can be called as if it had been declared.
        ("tool_search_output", _) => request.tools.extend(list(&item["tools"]).iter().flat_map(tools)),
        ("reasoning", _) => request.push(Role::Assistant, ""),
        (kind, _) if kind.ends_with("_output") => request.push(Role::Tool, &text_of(&item["output"])),
        (kind, _) if kind.ends_with("_call") => request.push(Role::Assistant, ""),
        _ => {}
    }
}

/// A response before anything is said.
fn begun(reply: &Reply) -> Value {
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

fn message(reply: &Reply, status: &str, text: &str) -> Value {
    let content = json!([{ "type": "output_text", "text": text, "annotations": [] }]);
    let content = if text.is_empty() { json!([]) } else { content };
    json!({ "type": "message", "id": reply.id("msg"), "role": "assistant", "status": status, "content": content })
}

fn called(reply: &Reply, at: usize, call: &Call) -> Value {
    let (id, call_id) = (reply.call_id("item", at), reply.call_id("call", at));
    let mut item = match call.tool.form {
        Form::Json => json!({ "type": "function_call", "name": call.tool.name, "arguments": call.text() }),
        Form::Freeform => json!({ "type": "custom_tool_call", "name": call.tool.name, "input": call.text() }),
        Form::Search => {
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

/// The frames of the text.
fn said(reply: &Reply, at: usize, item: &Value) -> Vec<Frame> {
    let place = |mut data: Value| {
        data["item_id"] = item["id"].clone();
        data["output_index"] = json!(at);
        data["content_index"] = json!(0);
        data
    };
    let part = |text: &str| json!({ "type": "output_text", "text": text, "annotations": [] });
    let mut frames = vec![
        Frame::named(
            "response.output_item.added",
            json!({ "output_index": at, "item": message(reply, "in_progress", "") }),
        ),
        Frame::named("response.content_part.added", place(json!({ "part": part("") }))),
    ];
    let deltas = reply.deltas().into_iter();
    frames.extend(
        deltas.map(|delta| Frame::named("response.output_text.delta", place(json!({ "delta": delta })))),
    );
    frames.push(Frame::named("response.output_text.done", place(json!({ "text": reply.text }))));
    frames.push(Frame::named("response.content_part.done", place(json!({ "part": part(&reply.text) }))));
    frames.push(Frame::named("response.output_item.done", json!({ "output_index": at, "item": item })));
    frames
}

/// The frames of a call.
fn call_frames(kind: &str, at: usize, item: &Value) -> Vec<Frame> {
    let (field, delta, done) = match kind {
        "function_call" => {
            ("arguments", "response.function_call_arguments.delta", "response.function_call_arguments.done")
        }
        _ => ("input", "response.custom_tool_call_input.delta", "response.custom_tool_call_input.done"),
    };
    let place = |name: &str, value: &str| json!({ "item_id": item["id"], "output_index": at, name: value });
    let mut begun = item.clone();
    begun["status"] = json!("in_progress");
    let text = item[field].as_str();
    if text.is_some() {
        begun[field] = json!("");
    }
    let mut frames =
        vec![Frame::named("response.output_item.added", json!({ "output_index": at, "item": begun }))];
    if let Some(text) = text {
        frames.extend(halves(text).into_iter().map(|part| Frame::named(delta, place("delta", part))));
        frames.push(Frame::named(done, place(field, text)));
    }
    frames.push(Frame::named("response.output_item.done", json!({ "output_index": at, "item": item })));
    frames
}
