//! `signoff mcp`: serves tasks and findings to the user's own MCP client.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use signoff_core::ids::TaskId;
use signoff_serve::{ReadError, TaskReader, serve_stdio};

use crate::{CliError, CommandExit, ReadOnlyProject, Result, run_loop};

/// Serve tasks and findings to your own MCP client, on stdin and stdout
///
/// The server is read-only and serves the repository that it is started in. Tools: list_tasks, show_task,
/// read_findings. Reviewers started by signoff do not use it; they report to a server with a token.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct Args {}

const EXAMPLE: &str = "Example:
  signoff mcp

In the configuration of a client that starts its servers elsewhere:
  {
    \"mcpServers\": {
      \"signoff\": {
        \"command\": \"sh\",
        \"args\": [\"-c\", \"cd ~/src/project && exec signoff mcp\"]
      }
    }
  }";

/// Runs the command.
pub fn run(_args: &Args) -> Result<CommandExit> {
    // Fail at startup if this is not a repository, not at the first request.
    ReadOnlyProject::find()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(run_loop::cannot_start)?;
    let served = runtime.block_on(serve_stdio(Arc::new(McpBackend)));
    // A thread may still be blocked on stdin.
    runtime.shutdown_background();
    served.map(|()| CommandExit::Done).map_err(|ReadError(message)| CliError::failed(message))
}

/// Serves the repository around the working directory. The store is opened for each request.
struct McpBackend;

impl TaskReader for McpBackend {
    fn tasks(&self) -> Result<Value, ReadError> {
        as_json(&super::status::report().map_err(read_error)?)
    }

    fn task(&self, id: u64) -> Result<Value, ReadError> {
        as_json(&super::show::load(TaskId(id)).map_err(read_error)?.report)
    }

    fn findings(&self, id: u64) -> Result<Value, ReadError> {
        let report = super::show::load(TaskId(id)).map_err(read_error)?.report;
        Ok(json!({ "version": 1, "task_id": id, "findings": as_json(&report.ledger)? }))
    }
}

fn as_json(value: &impl Serialize) -> Result<Value, ReadError> {
    serde_json::to_value(value).map_err(|error| ReadError(format!("cannot write JSON: {error}")))
}

/// Formats an error in one line.
fn read_error(error: impl Into<CliError>) -> ReadError {
    ReadError(error.into().to_string().trim_end().replace('\n', "; "))
}
