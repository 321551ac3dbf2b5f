//! The side for agents: each token sees its own tool and nothing else.

use std::sync::Arc;

use axum::http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use signoff_core::grant::{Arguments, Refusal, ReportTool};

use crate::tool;

/// Where reports go.
pub trait Reporting: Send + Sync + 'static {
    /// The tool that a token is good for. Must not wait for anything.
    fn tool(&self, token: &str) -> Result<ReportTool, Refusal>;

    /// Records that a request could not be read: it may take back what was reported before. May wait for the disk.
    fn unreadable(&self, token: &str) {
        if let Ok(tool) = self.tool(token) {
            // The request itself is answered with what is wrong with it.
            self.call(token, tool.word(), &Arguments::new()).ok();
        }
    }

    /// Makes a call; the answer comes when the report is safe. May wait for the disk.
    fn call(&self, token: &str, tool: &str, arguments: &Arguments) -> Result<String, Refusal>;
}

/// The token of a request that was let in.
#[derive(Debug, Clone)]
pub struct Token(pub String);

/// One request of an agent.
#[derive(Clone)]
pub struct Agents {
    pub reports: Arc<dyn Reporting>,
}

impl ServerHandler for Agents {
    fn get_info(&self) -> ServerConfig {
        about(
            "Report the result of your work with the one tool there is. It takes effect when you have ended.",
        )
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = self.reports.tool(&token(&context)?).map_err(unwelcome)?;
        Ok(ListToolsResult::with_all_items(vec![tool::of_agents(tool)]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (reports, token) = (self.reports.clone(), token(&context)?);
        let (name, arguments) = (request.name, request.arguments.unwrap_or_default());
        let called = tokio::task::spawn_blocking(move || reports.call(&token, &name, &arguments)).await;
        let called = called.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(match called {
            Ok(told) => CallToolResult::success(vec![ContentBlock::text(told)]).into(),
            Err(refusal) => CallToolResult::error(vec![ContentBlock::text(refusal.to_string())]).into(),
        })
    }
}

/// What the server says about itself.
pub fn about(instructions: &str) -> ServerConfig {
    ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
        .with_server_info(Implementation::new("signoff", env!("CARGO_PKG_VERSION")))
        .with_instructions(instructions)
}

/// The token that the door let in.
fn token(context: &RequestContext<RoleServer>) -> Result<String, ErrorData> {
    let parts = context.extensions.get::<Parts>();
    let token = parts.and_then(|parts| parts.extensions.get::<Token>());
    token.map(|token| token.0.clone()).ok_or_else(|| unwelcome(Refusal::UnknownToken))
}

fn unwelcome(refusal: Refusal) -> ErrorData {
    ErrorData::invalid_request(refusal.to_string(), None)
}
