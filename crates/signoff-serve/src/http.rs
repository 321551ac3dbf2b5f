//! The server on the loopback interface, and its door.
//!
//! Any page that a browser shows, and any program of this machine, can send requests here. So a request must name us as
//! its host, come from no page of another origin, and carry a token.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;
use signoff_core::contract;
use signoff_core::grant::Refusal;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::agents::{Agents, Reporting, Token};

/// The longest request: far more than any review, and little enough to be held in memory.
const LONGEST: usize = 4 * 1024 * 1024;

const PATH: &str = "/mcp";

/// A server at work. It ends when this is dropped.
#[derive(Debug)]
pub struct Server {
    url: String,
    _end: oneshot::Sender<()>,
}

impl Server {
    /// Starts to serve on a free port, within the runtime at hand.
    pub async fn start(reports: Arc<dyn Reporting>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let (end, ended) = oneshot::channel::<()>();
        let serving = axum::serve(listener, router(reports, port));
        tokio::spawn(async move {
            tokio::select! {
                // Nothing is left to do for one that cannot go on: its callers notice.
                _ = async { serving.await } => {}
                _ = ended => {}
            }
        });
        Ok(Self { url: format!("http://127.0.0.1:{port}{PATH}"), _end: end })
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        &self.url
    }
}

fn router(reports: Arc<dyn Reporting>, port: u16) -> Router {
    let names = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    let origins = names.clone().map(|name| format!("http://{name}"));
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(names)
        .with_allowed_origins(origins)
        .enforce_origin_validation()
        // A reviewer makes one call, so nothing needs to be remembered between two requests.
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(LONGEST);
    let door = reports.clone();
    let service = StreamableHttpService::new(
        move || Ok(Agents { reports: reports.clone() }),
        Arc::new(NeverSessionManager::default()),
        config,
    );
    Router::new().route_service(PATH, service).layer(middleware::from_fn_with_state(door, admit))
}

/// Lets in who has a token, with a body that can be read in one way only.
async fn admit(State(reports): State<Arc<dyn Reporting>>, request: Request, next: Next) -> Response {
    let Some(token) = bearer(request.headers()) else { return refused(&Refusal::UnknownToken) };
    if let Err(refusal) = reports.tool(&token) {
        return refused(&refusal);
    }
    let (mut parts, body) = request.into_parts();
    let body = to_bytes(body, LONGEST).await;
    let key = body.as_ref().ok().and_then(twice);
    if key.is_some() || !body.as_ref().is_ok_and(is_readable) {
        let (reports, token) = (reports.clone(), token.clone());
        tokio::task::spawn_blocking(move || reports.unreadable(&token)).await.ok();
    }
    let Ok(body) = body else {
        return (StatusCode::PAYLOAD_TOO_LARGE, "the request is too long\n").into_response();
    };
    if let Some(key) = key {
        return (StatusCode::BAD_REQUEST, format!("the key `{key}` appears twice in one object\n"))
            .into_response();
    }
    parts.extensions.insert(Token(token));
    next.run(Request::from_parts(parts, Body::from(body))).await
}

/// Whether a body is empty or a message whose call, if it is one, has arguments as an object.
fn is_readable(body: &Bytes) -> bool {
    if body.is_empty() {
        return true;
    }
    let Ok(Value::Object(message)) = serde_json::from_slice(body) else { return false };
    let is_call = message.get("method").is_some_and(|method| method == "tools/call");
    let arguments = message.get("params").and_then(|params| params.get("arguments"));
    !is_call || arguments.is_none_or(|arguments| arguments.is_object() || arguments.is_null())
}

/// The token of an `Authorization: Bearer` header.
fn bearer(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
}

/// A key that stands twice: the protocol's library would keep the last value and forget the other.
fn twice(body: &Bytes) -> Option<String> {
    contract::duplicate_key(std::str::from_utf8(body).ok()?)
}

/// The answer to a token that is not, or no longer, good for anything.
fn refused(refusal: &Refusal) -> Response {
    let message = format!("{refusal}\n");
    match refusal {
        Refusal::UnknownToken => {
            (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")], message).into_response()
        }
        Refusal::Ended
        | Refusal::Reported
        | Refusal::Unreadable { .. }
        | Refusal::WrongTool { .. }
        | Refusal::WrongLoop { .. }
        | Refusal::WrongTask { .. }
        | Refusal::WrongCommit { .. }
        | Refusal::Malformed { .. }
        | Refusal::NotKept { .. } => (StatusCode::FORBIDDEN, message).into_response(),
    }
}
