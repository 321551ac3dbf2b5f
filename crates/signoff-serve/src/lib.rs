//! What others reach over a connection: the Model Context Protocol server, and the pages people look at.
//!
//! Agents speak to it over HTTP on the loopback interface, each with a token of its own; what may be said with a
//! token is decided elsewhere ([`Reporting`]). People's clients start `signoff mcp` and speak over its stdin and stdout.
//! [`page`] makes the pages; [`web`] serves them, over a [`web::Desk`] that the program fulfils.

mod agents;
mod http;
pub mod page;
mod people;
mod tool;
pub mod web;

pub use agents::Reporting;
pub use http::Server;
pub use people::{Reading, Unread, serve_stdio};
