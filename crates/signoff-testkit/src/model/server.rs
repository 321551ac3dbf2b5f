//! The script, spoken over HTTP.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::{Bytes, to_bytes};
use axum::extract::{Request as HttpRequest, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};

use super::choose::{By, Chosen};
use super::dialect::{Dialect, Speaks};
use super::fault::{End, Fault, Piece};
use super::record::{Authorization, Kind, Records, Replied, Seen};
use super::reply::Reply;
use super::request::{Request, Role, Tool};
use super::route::Route;
use super::script::Script;
use super::wire;

/// What all requests share.
#[derive(Debug)]
pub(super) struct Server {
    script: Script,
    pub records: Records,
    /// How often a rule's turn has been asked for while it had a fault.
    faults: Mutex<HashMap<By, u32>>,
}

/// A reply before it is sent.
struct Answer {
    request: Request,
    by: By,
    reply: Reply,
    undeclared: Vec<String>,
    fault: Option<Fault>,
}

pub(super) fn router(server: Arc<Server>) -> Router {
    Router::new().fallback(answer).with_state(server)
}

async fn answer(State(server): State<Arc<Server>>, request: HttpRequest) -> Response {
    let (parts, body) = request.into_parts();
    // A client that breaks off reads no answer either.
    let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
    server.respond(&parts, &body)
}

impl Server {
    pub fn new(script: Script) -> Self {
        Self { script, records: Records::default(), faults: Mutex::default() }
    }

    fn respond(&self, parts: &Parts, body: &Bytes) -> Response {
        let path = parts.uri.path();
        let record = |kind| self.records.add(|number| seen(number, parts, kind));
        match Route::of(&parts.method, path) {
            Route::Reply(dialect) => match serde_json::from_slice(body) {
                Ok(body) => self.reply(dialect, parts, &body),
                Err(error) => {
                    record(Kind::Unknown);
                    wire::json(StatusCode::BAD_REQUEST, &json!({ "error": { "message": error.to_string() } }))
                }
            },
            Route::Count(dialect) => {
                record(Kind::Count);
                wire::json(StatusCode::OK, &dialect.speaker().count(body.len() as u64 / 4))
            }
            Route::Models => {
                record(Kind::Models);
                wire::json(StatusCode::OK, &self.models())
            }
            Route::Alive => wire::json(StatusCode::OK, &json!({})),
            Route::Unknown => {
                record(Kind::Unknown);
                let message = format!("{path} is not served here");
                wire::json(StatusCode::NOT_FOUND, &json!({ "error": { "message": message } }))
            }
        }
    }

    fn reply(&self, dialect: Dialect, parts: &Parts, body: &Value) -> Response {
        let mut answer = self.answer(dialect.speaker().request(parts.uri.path(), body));
        let replied = answer.replied(dialect);
        let number = self.records.add(|number| seen(number, parts, Kind::Reply(Box::new(replied))));
        answer.reply.number = number;
        answer.send(dialect.speaker())
    }

    fn answer(&self, request: Request) -> Answer {
        let Chosen { by, turn, cwd } = self.script.choose(&request);
        let fault = turn.fault.clone().filter(|_| self.is_due(&by, turn.times));
        let (reply, undeclared) = match &request.schema {
            Some(schema) if by == By::Default => (Reply::of_schema(schema, &request), Vec::new()),
            _ => Reply::of_turn(&turn, &request, cwd.as_deref()),
        };
        Answer { request, by, reply, undeclared, fault }
    }

    /// Whether a turn's fault happens once more.
    fn is_due(&self, by: &By, times: Option<u32>) -> bool {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let happened = faults.entry(by.clone()).or_default();
        *happened += 1;
        times.is_none_or(|times| *happened <= times)
    }

    /// A list that every dialect finds its own in.
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

impl Answer {
    fn replied(&self, dialect: Dialect) -> Replied {
        let (rule, turn) = match &self.by {
            By::Rule { name, turn } => (Some(name.clone()), *turn),
            By::Default => (None, 0),
        };
        let end = match &self.fault {
            // Nothing is told within what is no stream.
            Some(Fault::Told(_)) if !self.request.stream => End::Refused,
            Some(fault) => fault.end(),
            None => End::Whole,
        };
        let request = &self.request;
        Replied {
            dialect,
            model: request.model.clone(),
            stream: request.stream,
            side: rule.is_none() && request.tools.is_empty(),
            rule,
            turn,
            system: request.system.clone(),
            prompt: request.last(Role::User).to_owned(),
            result: request.last(Role::Tool).to_owned(),
            tools: request.tools.iter().map(full_name).collect(),
            calls: self.reply.calls.iter().map(|call| (full_name(&call.tool), call.json())).collect(),
            undeclared: self.undeclared.clone(),
            fault: self.fault.clone(),
            end,
            usage: self.reply.usage,
        }
    }

    fn send(&self, speaker: &dyn Speaks) -> Response {
        let refusal = match &self.fault {
            Some(Fault::Status(refusal)) => Some(refusal),
            Some(Fault::Told(refusal)) if !self.request.stream => Some(refusal),
            _ => None,
        };
        if let Some(refusal) = refusal {
            return wire::refuse(refusal, &speaker.refusal(refusal));
        }
        let parts = if self.request.stream {
            speaker.frames(&self.reply).iter().map(|frame| frame.text()).collect()
        } else {
            wire::halves(&speaker.whole(&self.reply).to_string())
        };
        let mut pieces = match &self.fault {
            Some(fault) => fault.apply(parts),
            None => parts.into_iter().map(Piece::Send).collect(),
        };
        if let Some(Fault::Told(refusal)) = &self.fault {
            pieces.push(Piece::Send(speaker.told(refusal).text()));
        }
        wire::send(if self.request.stream { "text/event-stream" } else { "application/json" }, pieces)
    }
}

fn full_name(tool: &Tool) -> String {
    tool.namespace.as_ref().map_or(tool.name.clone(), |namespace| format!("{namespace}/{}", tool.name))
}

fn seen(number: usize, parts: &Parts, kind: Kind) -> Seen {
    Seen {
        number,
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        agent: header(&parts.headers, "user-agent").unwrap_or_default(),
        authorization: ["authorization", "x-api-key", "x-goog-api-key"].into_iter().find_map(|name| {
            Some(Authorization { header: name.to_owned(), value: header(&parts.headers, name)? })
        }),
        kind,
    }
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    Some(String::from_utf8_lossy(headers.get(name)?.as_bytes()).into_owned())
}
