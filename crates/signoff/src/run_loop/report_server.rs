//! The MCP server that agents report to, authorized by the engine's tokens.

use std::sync::Arc;

use signoff_core::report_token::{ReportArguments, ReportRefusal, ReportTool};
use signoff_engine::reports::ReportRegistry;
use signoff_serve::{McpServer, ReportSink};

use crate::{Console, host};

/// Starts the server. Without it agents answer in their final message, as most do anyway.
pub async fn start(reports: Arc<ReportRegistry>, console: &Console) -> Option<McpServer> {
    match McpServer::start(Arc::new(TokenReports(reports.clone()))).await {
        Ok(server) => {
            let elsewhere = host::test_string("SIGNOFF_TEST_REPORTS");
            reports.set_url(elsewhere.as_deref().unwrap_or(server.url()));
            Some(server)
        }
        Err(error) => {
            console.note(&format!("Agents cannot report over MCP: no port on 127.0.0.1 is available: {error}"));
            None
        }
    }
}

struct TokenReports(Arc<ReportRegistry>);

impl ReportSink for TokenReports {
    fn tool(&self, token: &str) -> Result<ReportTool, ReportRefusal> {
        self.0.tool(token)
    }

    fn call(&self, token: &str, tool: &str, arguments: &ReportArguments) -> Result<String, ReportRefusal> {
        self.0.call(token, tool, arguments)
    }
}
