//! The Model Context Protocol server: what agents report to, and what people's own clients ask.
//!
//! Agents speak to it over HTTP on the loopback interface, each with a token of its own; what may be said with a
//! token is decided elsewhere ([`Reporting`]). People's clients start `signoff mcp` and speak over its stdin and stdout.

mod agents;
mod http;
mod people;
mod tool;

pub use agents::Reporting;
pub use http::Server;
pub use people::{Reading, Unread, serve_stdio};
