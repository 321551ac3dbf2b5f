//! The MCP server for agents: each token gives access to one reporting tool.

use std::sync::Arc;

use axum::http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use signoff_core::report_token::{ReportArguments, ReportRefusal, ReportTool};

use crate::tool;

/// Receives the reports of agents.
pub trait ReportSink: Send + Sync + 'static {
    /// Returns the tool that a token gives access to. Must not block.
    fn tool(&self, token: &str) -> Result<ReportTool, ReportRefusal>;

    /// Records that a request could not be parsed, which can retract an earlier report. May block on the disk.
    fn record_unreadable(&self, token: &str) {
        if let Ok(tool) = self.tool(token) {
            // The caller already answers the request with its own error.
            self.call(token, tool.as_str(), &ReportArguments::new()).ok();
        }
    }

    /// Calls a tool. Returns once the report is stored. May block on the disk.
    fn call(&self, token: &str, tool: &str, arguments: &ReportArguments) -> Result<String, ReportRefusal>;
}

/// The bearer token of an authenticated request.
#[derive(Debug, Clone)]
pub struct BearerToken(pub String);

/// The MCP handler for the requests of agents.
#[derive(Clone)]
pub struct AgentMcp {
    pub reports: Arc<dyn ReportSink>,
}

impl ServerHandler for AgentMcp {
    fn get_info(&self) -> ServerConfig {
        server_info("Report the result of your work with the one tool there is. It takes effect when you have ended.")
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
