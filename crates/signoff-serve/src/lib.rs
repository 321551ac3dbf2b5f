//! The servers of signoff: the Model Context Protocol servers and the web UI.
//!
//! Agents connect over HTTP on the loopback interface, each with its own token; a `ReportSink` decides what a token
//! may report. Users' MCP clients start `signoff mcp` and talk to it over stdin and stdout. [`page`] renders the pages
//! of the web UI; [`web`] serves them from a `web::Backend`, which the program implements.

mod agent_mcp;
pub mod page;
mod tool;
mod user_mcp;
pub mod web;

pub use agent_mcp::{McpServer, ReportSink};
pub use user_mcp::{ReadError, TaskReader, serve_stdio};
