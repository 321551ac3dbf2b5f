//! Google's Gemini.

use serde_json::{Value, json};

use super::dialect::{Frame, Speaks};
use super::fault::Refusal;
use super::reply::Reply;
use super::request::{Form, Request, Role, Tool, list, text_of, word};

pub(super) struct Gemini;

impl Speaks for Gemini {
    fn request(&self, path: &str, body: &Value) -> Request {
        let (model, method) = model_and_method(path);
        let config = &body["generationConfig"];
        let mut request = Request {
            model: model.to_owned(),
            stream: method == "streamGenerateContent",
            system: text_of(&body["systemInstruction"]),
            tools: list(&body["tools"]).iter().flat_map(tools).collect(),
            schema: [&config["responseJsonSchema"], &config["responseSchema"]]
                .into_iter()
                .find(|schema| schema.is_object())
                .cloned(),
            ..Request::default()
        };
        for content in list(&body["contents"]) {
            take(&mut request, content);
        }
        request
    }

    fn whole(&self, reply: &Reply) -> Value {
        let text = (!reply.text.is_empty()).then(|| json!({ "text": reply.text }));
        let mut whole = chunk(reply, text.into_iter().chain(calls(reply)).collect());
        end(&mut whole, reply);
        whole
    }

    fn frames(&self, reply: &Reply) -> Vec<Frame> {
        let texts = reply.deltas().into_iter().map(|text| json!({ "text": text }));
        let mut chunks: Vec<_> = texts.chain(calls(reply)).map(|part| chunk(reply, json!([part]))).collect();
        let mut last = chunk(reply, json!([{ "text": "" }]));
        end(&mut last, reply);
        chunks.push(last);
        chunks.into_iter().map(Frame::data).collect()
    }

    fn refusal(&self, refusal: &Refusal) -> Value {
        let status = match refusal.status {
            400 => "INVALID_ARGUMENT",
            401 => "UNAUTHENTICATED",
            403 => "PERMISSION_DENIED",
            404 => "NOT_FOUND",
            429 => "RESOURCE_EXHAUSTED",
            503 => "UNAVAILABLE",
            _ => "INTERNAL",
        };
        let mut error = json!({ "code": refusal.status, "message": refusal.message(), "status": status });
        if let Some(seconds) = refusal.retry_after {
            let delay = format!("{seconds}s");
            error["details"] =
                json!([{ "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay }]);
        }
        json!({ "error": error })
    }

    fn told(&self, refusal: &Refusal) -> Frame {
        Frame::data(self.refusal(refusal))
    }

    fn count(&self, tokens: u64) -> Value {
        json!({ "totalTokens": tokens })
    }
}

/// Of a path like `/v1beta/models/MODEL:METHOD`.
pub(super) fn model_and_method(path: &str) -> (&str, &str) {
    let last = path.rsplit('/').next().unwrap_or("");
    last.split_once(':').unwrap_or((last, ""))
}

fn tools(declared: &Value) -> Vec<Tool> {
    let tool = |function: &Value| {
        let schemas = [&function["parametersJsonSchema"], &function["parameters"]];
        Tool {
            name: word(&function["name"]).to_owned(),
            namespace: None,
            schema: schemas.into_iter().find(|schema| schema.is_object()).cloned().unwrap_or_default(),
            form: Form::Json,
        }
    };
    list(&declared["functionDeclarations"]).iter().map(tool).collect()
}

fn take(request: &mut Request, content: &Value) {
    let parts = list(&content["parts"]);
    let texts: Vec<_> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
    if content["role"] == "model" {
        return request.push(Role::Assistant, &texts.join("\n"));
    }
    for result in parts.iter().filter_map(|part| part.get("functionResponse")) {
        let response = &result["response"];
        let text = text_of(response);
        request.push(Role::Tool, &if text.is_empty() { response.to_string() } else { text });
    }
    if !texts.is_empty() {
        request.push(Role::User, &texts.join("\n"));
    }
}

fn chunk(reply: &Reply, parts: Value) -> Value {
    json!({
        "candidates": [{ "content": { "role": "model", "parts": parts }, "index": 0 }],
        "modelVersion": reply.model,
        "responseId": reply.id("resp"),
    })
}

fn calls(reply: &Reply) -> impl Iterator<Item = Value> {
    reply.calls.iter().enumerate().map(|(at, call)| {
        json!({ "functionCall": { "id": reply.call_id("call", at), "name": call.tool.name, "args": call.json() } })
    })
}

/// Says that this was all, and what it took.
fn end(chunk: &mut Value, reply: &Reply) {
    chunk["candidates"][0]["finishReason"] = json!("STOP");
    let mut usage = json!({
        "promptTokenCount": reply.usage.input,
        "candidatesTokenCount": reply.usage.output,
        "totalTokenCount": reply.usage.total(),
    });
    if reply.usage.cached_input > 0 {
        usage["cachedContentTokenCount"] = json!(reply.usage.cached_input);
    }
    chunk["usageMetadata"] = usage;
}
