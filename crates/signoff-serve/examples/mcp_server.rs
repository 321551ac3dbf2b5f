//! An MCP server with one token, to try clients: `cargo run -p signoff-serve --example mcp_server TOKEN`.
//!
//! It prints its URL, accepts one review of loop 7, and exits when its stdin closes.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use signoff_core::contract::ReviewRequest;
use signoff_core::report_token::{ReportArguments, ReportRefusal, ReportScope, ReportTool};
use signoff_core::review::{FailThreshold, ReviewerKind};
use signoff_serve::{McpServer, ReportSink};

struct SingleTokenReporting {
    token: String,
    grant: Mutex<ReportScope>,
}

impl ReportSink for SingleTokenReporting {
    fn tool(&self, token: &str) -> Result<ReportTool, ReportRefusal> {
        let grant = self.grant.lock().unwrap_or_else(PoisonError::into_inner);
        if token == self.token { Ok(grant.tool()) } else { Err(ReportRefusal::UnknownToken) }
    }

    fn call(&self, token: &str, tool: &str, arguments: &ReportArguments) -> Result<String, ReportRefusal> {
        self.tool(token)?;
        let mut grant = self.grant.lock().unwrap_or_else(PoisonError::into_inner);
        let accepted = grant.call(tool, arguments)?;
        *grant = accepted.scope;
        accepted.reply
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 1)]
async fn main() -> std::io::Result<()> {
    let token = arguments().into_iter().nth(1).ok_or_else(|| std::io::Error::other("usage: mcp_server TOKEN"))?;
    let request = ReviewRequest {
        reviewer: "general".into(),
        kind: ReviewerKind::General,
        nonce: None,
        require_nonce: false,
        fail_on: FailThreshold::Low,
        commit: None,
        loop_id: Some("7".into()),
        task: Some("7".to_owned()),
    };
    let server =
        McpServer::start(Arc::new(SingleTokenReporting { token, grant: Mutex::new(ReportScope::review(request)) }))
            .await?;
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{}", server.url())?;
    stdout.flush()?;
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
    Ok(())
}

fn arguments() -> Vec<String> {
    std::env::args().collect()
}
