//! A server with one token, for clients to be tried out on: `cargo run -p signoff-serve --example mcp_server TOKEN`.
//!
//! It prints its URL, takes one review of loop 7, and ends when its stdin does.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use signoff_core::contract::Ask;
use signoff_core::grant::{Arguments, Grant, Refusal, ReportTool};
use signoff_core::review::{Bar, ReviewerKind};
use signoff_serve::{Reporting, Server};

struct One {
    token: String,
    grant: Mutex<Grant>,
}

impl Reporting for One {
    fn tool(&self, token: &str) -> Result<ReportTool, Refusal> {
        let grant = self.grant.lock().unwrap_or_else(PoisonError::into_inner);
        if token == self.token { Ok(grant.tool()) } else { Err(Refusal::UnknownToken) }
    }

    fn call(&self, token: &str, tool: &str, arguments: &Arguments) -> Result<String, Refusal> {
        self.tool(token)?;
        let mut grant = self.grant.lock().unwrap_or_else(PoisonError::into_inner);
        let accepted = grant.call(tool, arguments)?;
        *grant = accepted.grant;
        accepted.told
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 1)]
async fn main() -> std::io::Result<()> {
    let token =
        arguments().into_iter().nth(1).ok_or_else(|| std::io::Error::other("usage: mcp_server TOKEN"))?;
    let ask = Ask {
        reviewer: "general".into(),
        kind: ReviewerKind::General,
        nonce: None,
        require_nonce: false,
        fail_on: Bar::Low,
        commit: None,
        loop_id: Some("7".into()),
        task: Some("7".to_owned()),
    };
    let server = Server::start(Arc::new(One { token, grant: Mutex::new(Grant::review(ask)) })).await?;
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{}", server.url())?;
    stdout.flush()?;
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
    Ok(())
}

fn arguments() -> Vec<String> {
    std::env::args().collect()
}
