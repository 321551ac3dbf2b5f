//! `signoff mcp`: a person's own client looks at tasks and findings.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use signoff_core::ids::TaskId;
use signoff_serve::{Reading, Unread, serve_stdio};

use crate::desk::Desk;
use crate::failure::{Exit, Failure};

/// Serve tasks and findings to your own MCP client, on stdin and stdout
///
/// The client starts it and asks; nothing is changed. Tools: list_tasks, show_task, read_findings. It looks at the
/// repository that it is started in. Reviewers that signoff starts report elsewhere, with a token of their own.
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
pub fn run(_args: &Args) -> Result<Exit, Failure> {
    // A client learns of a wrong place now, and not with its first question.
    Desk::find()?;
    let broken = |error: std::io::Error| Failure::failed(format!("cannot start: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(broken)?;
    let served = runtime.block_on(serve_stdio(Arc::new(Repository)));
    // A thread may still wait for a line that will never come.
    runtime.shutdown_background();
    served.map(|()| Exit::Done).map_err(|Unread(message)| Failure::failed(message))
}

/// The repository around the working directory, looked at anew for each question.
struct Repository;

impl Reading for Repository {
    fn tasks(&self) -> Result<Value, Unread> {
        as_json(&super::status::report().map_err(unread)?)
    }

    fn task(&self, id: u64) -> Result<Value, Unread> {
        as_json(&super::show::seen(TaskId(id)).map_err(unread)?.report)
    }

    fn findings(&self, id: u64) -> Result<Value, Unread> {
        let report = super::show::seen(TaskId(id)).map_err(unread)?.report;
        Ok(json!({ "version": 1, "task_id": id, "findings": as_json(&report.ledger)? }))
    }
}

fn as_json(value: &impl Serialize) -> Result<Value, Unread> {
    serde_json::to_value(value).map_err(|error| Unread(format!("cannot write JSON: {error}")))
}

/// What the command line would say, in one line.
fn unread(error: impl Into<Failure>) -> Unread {
    Unread(error.into().to_string().trim_end().replace('\n', "; "))
}
