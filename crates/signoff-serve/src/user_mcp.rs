//! The MCP server for users' own clients: read-only access to tasks and findings over stdin and stdout.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult, PaginatedRequestParams,
    ServerConfig,
};
use rmcp::service::{RequestContext, ServerInitializeError};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Map, Value};

use crate::agent_mcp::server_info;
use crate::tool::{self, UserTool};

/// Reads tasks and findings. Calls may block on the disk.
pub trait TaskReader: Send + Sync + 'static {
    /// All tasks, as in `signoff status --json`.
    fn tasks(&self) -> Result<Value, ReadError>;

    /// One task in detail, as in `signoff show --json`.
    fn task(&self, id: u64) -> Result<Value, ReadError>;

    /// The ledger of one task.
    fn findings(&self, id: u64) -> Result<Value, ReadError>;
}

/// The message of a failed read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadError(pub String);

/// Serves requests until stdin closes.
pub async fn serve_stdio(reader: Arc<dyn TaskReader>) -> Result<(), ReadError> {
    let read_error = |error: &dyn std::fmt::Display| ReadError(error.to_string());
    let service = match (UserMcp { reader }).serve(rmcp::transport::stdio()).await {
        // A client that disconnects before the handshake is not an error.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        service => service.map_err(|error| read_error(&error))?,
    };
    service.waiting().await.map(drop).map_err(|error| read_error(&error))
}

#[derive(Clone)]
struct UserMcp {
    reader: Arc<dyn TaskReader>,
}

impl ServerHandler for UserMcp {
    fn get_info(&self) -> ServerConfig {
        server_info("Reads the tasks of this repository, their reviews and findings. It changes nothing.")
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tool::user_tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (reader, name) = (self.reader.clone(), request.name);
        let arguments = request.arguments.unwrap_or_default();
        let result = tokio::task::spawn_blocking(move || call_tool_by_name(&*reader, &name, &arguments)).await;
        let result = result.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(match result {
            Ok(value) => CallToolResult::structured(value).into(),
            Err(ReadError(message)) => CallToolResult::error(vec![ContentBlock::text(message)]).into(),
        })
    }
}

fn call_tool_by_name(reader: &dyn TaskReader, name: &str, arguments: &Map<String, Value>) -> Result<Value, ReadError> {
    match name.parse() {
        Ok(UserTool::ListTasks) => reader.tasks(),
        Ok(UserTool::ShowTask) => reader.task(tool::task_id(arguments)?),
        Ok(UserTool::ReadFindings) => reader.findings(tool::task_id(arguments)?),
        Err(strum::ParseError::VariantNotFound) => {
            Err(ReadError(format!("there is no tool `{name}`: tools/list names the available ones")))
        }
    }
}
