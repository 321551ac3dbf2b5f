//! The HTTP handler of the scripted model.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::{Bytes, to_bytes};
use axum::extract::{Request as HttpRequest, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};

use super::dialect::{Dialect, ProviderApi};
use super::fault::{Fault, ReplyEnd, WirePiece};
use super::record::{Authorization, ModelReplyRecord, ModelRequestKind, ModelRequestLog, RecordedModelRequest};
use super::reply::ModelReply;
use super::request::{ConversationRole, ModelRequest, ToolDefinition};
use super::route::ModelRoute;
use super::rule_choice::{ChosenTurn, TurnSource};
use super::script::ModelScript;
use super::wire;

/// State that all requests share.
#[derive(Debug)]
pub(super) struct ModelServer {
    script: ModelScript,
    pub records: ModelRequestLog,
    /// How often each turn with a fault was requested.
    faults: Mutex<HashMap<TurnSource, u32>>,
}

/// A reply that is not sent yet.
struct PendingReply {
    request: ModelRequest,
    source: TurnSource,
    reply: ModelReply,
    undeclared: Vec<String>,
    fault: Option<Fault>,
}

pub(super) fn router(server: Arc<ModelServer>) -> Router {
    Router::new().fallback(answer).with_state(server)
}

async fn answer(State(server): State<Arc<ModelServer>>, request: HttpRequest) -> Response {
    let (parts, body) = request.into_parts();
    // A client that aborts its request does not read the response.
    let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
    server.respond(&parts, &body)
}

impl ModelServer {
    pub fn new(script: ModelScript) -> Self {
        Self { script, records: ModelRequestLog::default(), faults: Mutex::default() }
    }

    fn respond(&self, parts: &Parts, body: &Bytes) -> Response {
        let path = parts.uri.path();
        let record = |kind| self.records.add(|number| record_request(number, parts, kind));
        match ModelRoute::parse(&parts.method, path) {
            ModelRoute::Reply(dialect) => match serde_json::from_slice(body) {
                Ok(body) => self.reply(dialect, parts, &body),
                Err(error) => {
                    record(ModelRequestKind::Unknown);
                    wire::json(StatusCode::BAD_REQUEST, &json!({ "error": { "message": error.to_string() } }))
                }
            },
            ModelRoute::Count(dialect) => {
                record(ModelRequestKind::Count);
                wire::json(StatusCode::OK, &dialect.api().token_count(body.len() as u64 / 4))
            }
            ModelRoute::Models => {
                record(ModelRequestKind::Models);
                wire::json(StatusCode::OK, &self.models())
            }
            ModelRoute::HealthCheck => wire::json(StatusCode::OK, &json!({})),
            ModelRoute::Unknown => {
                record(ModelRequestKind::Unknown);
                let message = format!("{path} is not served here");
                wire::json(StatusCode::NOT_FOUND, &json!({ "error": { "message": message } }))
            }
        }
    }

    fn reply(&self, dialect: Dialect, parts: &Parts, body: &Value) -> Response {
        let mut answer = self.answer(dialect.api().request(parts.uri.path(), body));
        let replied = answer.reply_record(dialect);
        let number =
            self.records.add(|number| record_request(number, parts, ModelRequestKind::Reply(Box::new(replied))));
        answer.reply.number = number;
        answer.send(dialect.api())
    }

    fn answer(&self, request: ModelRequest) -> PendingReply {
        let ChosenTurn { source: by, turn, cwd } = self.script.choose(&request);
        let fault = turn.fault.clone().filter(|_| self.fault_happens(&by, turn.times));
        let (reply, undeclared) = match &request.schema {
            Some(schema) if by == TurnSource::Default => (ModelReply::from_schema(schema, &request), Vec::new()),
            _ => ModelReply::from_turn(&turn, &request, cwd.as_deref()),
        };
        PendingReply { request, source: by, reply, undeclared, fault }
    }

    /// Whether a turn's fault happens again.
    fn fault_happens(&self, by: &TurnSource, times: Option<u32>) -> bool {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let happened = faults.entry(by.clone()).or_default();
        *happened += 1;
        times.is_none_or(|times| *happened <= times)
    }

    /// A model list with the fields of every API.
    fn models(&self) -> Value {
        let names = self.script.models.iter();
        let data = names.clone().map(|name| {
            json!({ "id": name, "object": "model", "type": "model", "display_name": name, "created_at": "2026-01-01T00:00:00Z" })
        });
        let models = names.map(|name| json!({ "name": format!("models/{name}"), "slug": name }));
        json!({
            "object": "list",
            "has_more": false,
            "data": data.collect::<Value>(),
            "models": models.collect::<Value>(),
        })
    }
}

impl PendingReply {
    fn reply_record(&self, dialect: Dialect) -> ModelReplyRecord {
        let (rule, turn) = match &self.source {
            TurnSource::Rule { name, turn } => (Some(name.clone()), *turn),
            TurnSource::Default => (None, 0),
        };
        let end = match &self.fault {
            // Without a stream there is no error event.
            Some(Fault::InStream(_)) if !self.request.stream => ReplyEnd::Refused,
            Some(fault) => fault.end(),
            None => ReplyEnd::Whole,
        };
        let request = &self.request;
        ModelReplyRecord {
            dialect,
            model: request.model.clone(),
            stream: request.stream,
            side: rule.is_none() && request.tools.is_empty(),
            rule,
            turn,
            system: request.system.clone(),
            prompt: request.last(ConversationRole::User).to_owned(),
            result: request.last(ConversationRole::Tool).to_owned(),
            tools: request.tools.iter().map(full_name).collect(),
            calls: self.reply.calls.iter().map(|call| (full_name(&call.tool), call.json())).collect(),
            undeclared: self.undeclared.clone(),
            fault: self.fault.clone(),
            end,
            usage: self.reply.usage,
        }
    }

    fn send(&self, api: &dyn ProviderApi) -> Response {
        let error = match &self.fault {
            Some(Fault::Status(error)) => Some(error),
            Some(Fault::InStream(error)) if !self.request.stream => Some(error),
            _ => None,
        };
        if let Some(error) = error {
            return wire::error_response(error, &api.error_body(error));
        }
        let parts = if self.request.stream {
            api.frames(&self.reply).iter().map(|frame| frame.text()).collect()
        } else {
            wire::halves(&api.full_reply(&self.reply).to_string())
        };
        let mut pieces = match &self.fault {
            Some(fault) => fault.apply(parts),
            None => parts.into_iter().map(WirePiece::Send).collect(),
        };
        if let Some(Fault::InStream(error)) = &self.fault {
            pieces.push(WirePiece::Send(api.error_frame(error).text()));
        }
        wire::pieces_response(if self.request.stream { "text/event-stream" } else { "application/json" }, pieces)
    }
}

fn full_name(tool: &ToolDefinition) -> String {
    tool.namespace.as_ref().map_or(tool.name.clone(), |namespace| format!("{namespace}/{}", tool.name))
}

fn record_request(number: usize, parts: &Parts, kind: ModelRequestKind) -> RecordedModelRequest {
    RecordedModelRequest {
        number,
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        agent: header(&parts.headers, "user-agent").unwrap_or_default(),
        authorization: ["authorization", "x-api-key", "x-goog-api-key"]
            .into_iter()
            .find_map(|name| Some(Authorization { header: name.to_owned(), value: header(&parts.headers, name)? })),
        kind,
    }
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    Some(String::from_utf8_lossy(headers.get(name)?.as_bytes()).into_owned())
}
