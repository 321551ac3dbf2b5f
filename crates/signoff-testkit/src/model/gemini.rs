//! Google's Gemini API.

use serde_json::{Value, json};

use super::dialect::{ProviderApi, SseFrame};
use super::fault::ModelError;
use super::reply::ModelReply;
use super::request::{ConversationRole, ModelRequest, ToolDefinition, ToolForm, list, str_or_empty, text_of};

pub(super) struct GeminiApi;

impl ProviderApi for GeminiApi {
    fn request(&self, path: &str, body: &Value) -> ModelRequest {
        let (model, method) = model_and_method(path);
        let config = &body["generationConfig"];
        let mut request = ModelRequest {
            model: model.to_owned(),
            stream: method == "streamGenerateContent",
            system: text_of(&body["systemInstruction"]),
            tools: list(&body["tools"]).iter().flat_map(tools).collect(),
            schema: [&config["responseJsonSchema"], &config["responseSchema"]]
                .into_iter()
                .find(|schema| schema.is_object())
                .cloned(),
            ..ModelRequest::default()
        };
        for content in list(&body["contents"]) {
            add_content(&mut request, content);
        }
        request
    }

    fn full_reply(&self, reply: &ModelReply) -> Value {
        let text = (!reply.text.is_empty()).then(|| json!({ "text": reply.text }));
        let mut full = chunk(reply, text.into_iter().chain(calls(reply)).collect());
        end(&mut full, reply);
        full
    }

    fn frames(&self, reply: &ModelReply) -> Vec<SseFrame> {
        let texts = reply.deltas().into_iter().map(|text| json!({ "text": text }));
        let mut chunks: Vec<_> = texts.chain(calls(reply)).map(|part| chunk(reply, json!([part]))).collect();
        let mut last = chunk(reply, json!([{ "text": "" }]));
        end(&mut last, reply);
        chunks.push(last);
        chunks.into_iter().map(SseFrame::data).collect()
    }

    fn error_body(&self, error: &ModelError) -> Value {
        let status = match error.status {
            400 => "INVALID_ARGUMENT",
            401 => "UNAUTHENTICATED",
            403 => "PERMISSION_DENIED",
            404 => "NOT_FOUND",
            429 => "RESOURCE_EXHAUSTED",
            503 => "UNAVAILABLE",
            _ => "INTERNAL",
        };
        let mut body = json!({ "code": error.status, "message": error.message(), "status": status });
        if let Some(seconds) = error.retry_after {
            let delay = format!("{seconds}s");
            body["details"] = json!([{ "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay }]);
        }
        json!({ "error": body })
    }

    fn error_frame(&self, error: &ModelError) -> SseFrame {
        SseFrame::data(self.error_body(error))
    }

    fn token_count(&self, tokens: u64) -> Value {
        json!({ "totalTokens": tokens })
    }
}

/// Splits a path like `/v1beta/models/MODEL:METHOD`.
pub(super) fn model_and_method(path: &str) -> (&str, &str) {
    let last = path.rsplit('/').next().unwrap_or("");
    last.split_once(':').unwrap_or((last, ""))
}

fn tools(declared: &Value) -> Vec<ToolDefinition> {
    let tool = |function: &Value| {
        let schemas = [&function["parametersJsonSchema"], &function["parameters"]];
        ToolDefinition {
            name: str_or_empty(&function["name"]).to_owned(),
            namespace: None,
            schema: schemas.into_iter().find(|schema| schema.is_object()).cloned().unwrap_or_default(),
            form: ToolForm::Json,
        }
    };
    list(&declared["functionDeclarations"]).iter().map(tool).collect()
}

fn add_content(request: &mut ModelRequest, content: &Value) {
    let parts = list(&content["parts"]);
    let texts: Vec<_> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
    if content["role"] == "model" {
        return request.push(ConversationRole::Assistant, &texts.join("\n"));
    }
    for result in parts.iter().filter_map(|part| part.get("functionResponse")) {
        let response = &result["response"];
        let text = text_of(response);
        request.push(ConversationRole::Tool, &if text.is_empty() { response.to_string() } else { text });
    }
    if !texts.is_empty() {
        request.push(ConversationRole::User, &texts.join("\n"));
    }
}

fn chunk(reply: &ModelReply, parts: Value) -> Value {
    json!({
        "candidates": [{ "content": { "role": "model", "parts": parts }, "index": 0 }],
        "modelVersion": reply.model,
        "responseId": reply.id("resp"),
    })
}

fn calls(reply: &ModelReply) -> impl Iterator<Item = Value> {
    reply.calls.iter().enumerate().map(|(at, call)| {
        json!({ "functionCall": { "id": reply.call_id("call", at), "name": call.tool.name, "args": call.json() } })
    })
}

/// Adds the finish reason and the usage.
fn end(chunk: &mut Value, reply: &ModelReply) {
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
