//! The side for people: their own clients look at tasks and findings, over stdin and stdout.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
    PaginatedRequestParams, ServerConfig,
};
use rmcp::service::{RequestContext, ServerInitializeError};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Map, Value};

use crate::agents::about;
use crate::tool;

/// What can be looked at. Calls may wait for the disk.
pub trait Reading: Send + Sync + 'static {
    /// All tasks, as `signoff status --json` tells them.
    fn tasks(&self) -> Result<Value, Unread>;

    /// All about one task, as `signoff show --json` tells it.
    fn task(&self, id: u64) -> Result<Value, Unread>;

    /// The ledger of one task.
    fn findings(&self, id: u64) -> Result<Value, Unread>;
}

/// Why something cannot be looked at, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread(pub String);

/// Serves until stdin ends.
pub async fn serve_stdio(reading: Arc<dyn Reading>) -> Result<(), Unread> {
    let broken = |error: &dyn std::fmt::Display| Unread(error.to_string());
    let service = match (People { reading }).serve(rmcp::transport::stdio()).await {
        // A client that went away without a word is no failure.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        service => service.map_err(|error| broken(&error))?,
    };
    service.waiting().await.map(drop).map_err(|error| broken(&error))
}

#[derive(Clone)]
struct People {
    reading: Arc<dyn Reading>,
}

impl ServerHandler for People {
    fn get_info(&self) -> ServerConfig {
        about(
            "Looks at the tasks of this repository, at their reviews and at what was found. It changes nothing.",
        )
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tool::of_people()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (reading, name) = (self.reading.clone(), request.name);
        let arguments = request.arguments.unwrap_or_default();
        let looked = tokio::task::spawn_blocking(move || look(&*reading, &name, &arguments)).await;
        let looked = looked.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(match looked {
            Ok(value) => CallToolResult::structured(value).into(),
            Err(Unread(message)) => CallToolResult::error(vec![ContentBlock::text(message)]).into(),
        })
    }
}

fn look(reading: &dyn Reading, name: &str, arguments: &Map<String, Value>) -> Result<Value, Unread> {
    match name {
        tool::list_tasks::NAME => reading.tasks(),
        tool::show_task::NAME => reading.task(tool::task_id(arguments)?),
        tool::read_findings::NAME => reading.findings(tool::task_id(arguments)?),
        _ => Err(Unread(format!("there is no tool `{name}`: tools/list names those there are"))),
    }
}
