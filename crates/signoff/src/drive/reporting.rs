//! The server that agents report to, over the engine's tokens.

use std::sync::Arc;

use signoff_core::grant::{Arguments, Refusal, ReportTool};
use signoff_engine::reports::Reports;
use signoff_serve::{Reporting, Server};

use crate::console::Console;
use crate::door;

/// Starts the server. Without one agents answer in their final message, as most do anyway.
pub async fn start(reports: Arc<Reports>, console: &Console) -> Option<Server> {
    match Server::start(Arc::new(Tokens(reports.clone()))).await {
        Ok(server) => {
            let elsewhere = door::test_word("SIGNOFF_TEST_REPORTS");
            reports.listen_at(elsewhere.as_deref().unwrap_or(server.url()));
            Some(server)
        }
        Err(error) => {
            console
                .note(&format!("Agents cannot report over MCP: no port of 127.0.0.1 is to be had: {error}"));
            None
        }
    }
}

struct Tokens(Arc<Reports>);

impl Reporting for Tokens {
    fn tool(&self, token: &str) -> Result<ReportTool, Refusal> {
        self.0.tool(token)
    }

    fn call(&self, token: &str, tool: &str, arguments: &Arguments) -> Result<String, Refusal> {
        self.0.call(token, tool, arguments)
    }
}
