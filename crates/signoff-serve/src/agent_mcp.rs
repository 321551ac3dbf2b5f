//! The MCP server for agents, over HTTP on the loopback interface: each token gives access to one reporting tool.
//!
//! Any page in a browser and any program on this machine can send requests here. So a request must have this server as
//! its host, must not come from a page of another origin, and must carry a token.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;
use signoff_core::contract;
use signoff_core::report_token::{ReportArguments, ReportRefusal, ReportTool};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::tool;
use crate::web::bearer;

/// Receives the reports of agents.
pub trait ReportSink: Send + Sync + 'static {
    /// Returns the tool that a token gives access to. Must not block.
    fn tool(&self, token: &str) -> Result<ReportTool, ReportRefusal>;

    /// Records that a request could not be parsed, which can retract an earlier report. May block on the disk.
    fn record_unreadable(&self, token: &str) {
        if let Ok(tool) = self.tool(token) {
            // The caller already answers the request with its own error.
            self.call(token, tool.into_str(), &ReportArguments::new()).ok();
        }
    }

    /// Calls a tool. Returns once the report is stored. May block on the disk.
    fn call(&self, token: &str, tool: &str, arguments: &ReportArguments) -> Result<String, ReportRefusal>;
}

/// The bearer token of an authenticated request.
#[derive(Debug, Clone)]
struct BearerToken(String);

/// The MCP handler for the requests of agents.
#[derive(Clone)]
struct AgentMcp {
    reports: Arc<dyn ReportSink>,
}

impl ServerHandler for AgentMcp {
    fn get_info(&self) -> ServerConfig {
        server_info(
            "Report the result of your work with the tool of this server. The report takes effect when your process ends.",
        )
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = self.reports.tool(&token(&context)?).map_err(invalid_request)?;
        Ok(ListToolsResult::with_all_items(vec![tool::report_tool(tool)]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (reports, token) = (self.reports.clone(), token(&context)?);
        let (name, arguments) = (request.name, request.arguments.unwrap_or_default());
        let result = tokio::task::spawn_blocking(move || reports.call(&token, &name, &arguments)).await;
        let result = result.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(match result {
            Ok(message) => CallToolResult::success(vec![ContentBlock::text(message)]).into(),
            Err(refusal) => CallToolResult::error(vec![ContentBlock::text(refusal.to_string())]).into(),
        })
    }
}

/// The server's description of itself in the MCP handshake.
pub fn server_info(instructions: &str) -> ServerConfig {
    ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
        .with_server_info(Implementation::new("signoff", env!("CARGO_PKG_VERSION")))
        .with_instructions(instructions)
}

/// The token that the HTTP middleware authenticated.
fn token(context: &RequestContext<RoleServer>) -> Result<String, ErrorData> {
    let parts = context.extensions.get::<Parts>();
    let token = parts.and_then(|parts| parts.extensions.get::<BearerToken>());
    token.map(|token| token.0.clone()).ok_or_else(|| invalid_request(ReportRefusal::UnknownToken))
}

fn invalid_request(refusal: ReportRefusal) -> ErrorData {
    ErrorData::invalid_request(refusal.to_string(), None)
}

/// Maximum size of a request body: larger than any review, small enough to hold in memory.
const MAX_REQUEST_BYTES: usize = 4 * 1024 * 1024;

const MCP_PATH: &str = "/mcp";

/// A running server. It stops when this value is dropped.
#[derive(Debug)]
pub struct McpServer {
    url: String,
    _end: oneshot::Sender<()>,
}

impl McpServer {
    /// Starts the server on a free port, on the current tokio runtime.
    pub async fn start(reports: Arc<dyn ReportSink>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let (end, ended) = oneshot::channel::<()>();
        let serving = axum::serve(listener, router(reports, port));
        tokio::spawn(async move {
            tokio::select! {
                // There is no recovery from a failed server; its clients see the closed connection.
                _ = async { serving.await } => {}
                _ = ended => {}
            }
        });
        Ok(Self { url: format!("http://127.0.0.1:{port}{MCP_PATH}"), _end: end })
    }

    /// The URL of the MCP endpoint.
    pub fn url(&self) -> &str {
        &self.url
    }
}

fn router(reports: Arc<dyn ReportSink>, port: u16) -> Router {
    let names = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
    let origins = names.clone().map(|name| format!("http://{name}"));
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(names)
        .with_allowed_origins(origins)
        .enforce_origin_validation()
        // A reviewer makes one call, so no session state is needed.
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(MAX_REQUEST_BYTES);
    let auth_reports = reports.clone();
    let service = StreamableHttpService::new(
        move || Ok(AgentMcp { reports: reports.clone() }),
        Arc::new(NeverSessionManager::default()),
        config,
    );
    Router::new().route_service(MCP_PATH, service).layer(middleware::from_fn_with_state(auth_reports, admit))
}

/// Accepts requests with a valid token and a body that parses unambiguously.
async fn admit(State(reports): State<Arc<dyn ReportSink>>, request: Request, next: Next) -> Response {
    let Some(token) = bearer(request.headers()).map(str::to_owned) else {
        return refusal_response(&ReportRefusal::UnknownToken);
    };
    if let Err(refusal) = reports.tool(&token) {
        return refusal_response(&refusal);
    }
    let (mut parts, body) = request.into_parts();
    let body = to_bytes(body, MAX_REQUEST_BYTES).await;
    // The MCP library would silently keep the last value of a duplicate key.
    let text = body.as_ref().ok().and_then(|body| std::str::from_utf8(body).ok());
    let key = text.and_then(contract::duplicate_key);
    if key.is_some() || !body.as_ref().is_ok_and(is_readable) {
        let (reports, token) = (reports.clone(), token.clone());
        tokio::task::spawn_blocking(move || reports.record_unreadable(&token)).await.ok();
    }
    let Ok(body) = body else {
        return (StatusCode::PAYLOAD_TOO_LARGE, "the request is too long\n").into_response();
    };
    if let Some(key) = key {
        return (StatusCode::BAD_REQUEST, format!("the key `{key}` appears twice in one object\n")).into_response();
    }
    parts.extensions.insert(BearerToken(token));
    next.run(Request::from_parts(parts, Body::from(body))).await
}

/// Whether a body is empty or a JSON-RPC message whose tool arguments, if any, are an object.
fn is_readable(body: &Bytes) -> bool {
    if body.is_empty() {
        return true;
    }
    let Ok(Value::Object(message)) = serde_json::from_slice(body) else { return false };
    let is_call = message.get("method").is_some_and(|method| method == "tools/call");
    let arguments = message.get("params").and_then(|params| params.get("arguments"));
    !is_call || arguments.is_none_or(|arguments| arguments.is_object() || arguments.is_null())
}

/// The response to an invalid or expired token.
fn refusal_response(refusal: &ReportRefusal) -> Response {
    let message = format!("{refusal}\n");
    match refusal {
        ReportRefusal::UnknownToken => {
            (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")], message).into_response()
        }
        ReportRefusal::Ended
        | ReportRefusal::AlreadyReported
        | ReportRefusal::Unreadable { .. }
        | ReportRefusal::WrongTool { .. }
        | ReportRefusal::WrongLoop { .. }
        | ReportRefusal::WrongTask { .. }
        | ReportRefusal::WrongCommit { .. }
        | ReportRefusal::Malformed { .. }
        | ReportRefusal::NotStored { .. } => (StatusCode::FORBIDDEN, message).into_response(),
    }
}
