//! What signoff's tests share: a hermetic place to run the program in, output a person can read, an agent and a
//! model that follow scripts, and the examples of the documentation.

#[cfg(unix)]
pub mod browser;
pub mod calls;
pub mod console_example;
pub mod fake_agent;
pub mod mcp;
pub mod model;
mod output;
pub mod processes;
mod project;
pub mod script;
pub mod serve;
pub mod server;
#[cfg(unix)]
pub mod terminal;
mod test_env;
pub mod visitor;

pub use output::Output;
pub use project::{Checkout, Project};
pub use test_env::TestEnv;
