//! Shared test support: an isolated environment for the program, a scripted agent, a scripted model, test clients and
//! servers, and a runner for documentation examples. Behind features: a
//! store in memory, and the story of a project in memory.

pub mod agent_script;
#[cfg(unix)]
pub mod browser;
pub mod calls;
pub mod console_example;
pub mod fake_agent;
pub mod git_template;
pub mod mcp;
#[cfg(feature = "store")]
mod memory_store;
pub mod model;
mod output;
pub mod processes;
mod project;
pub mod serve;
pub mod server;
pub mod source_code;
#[cfg(feature = "engine")]
pub mod story;
#[cfg(unix)]
pub mod terminal;
mod test_env;
pub mod web_client;

#[cfg(feature = "store")]
pub use memory_store::MemoryStore;
pub use output::ProgramOutput;
pub use project::{CheckoutSnapshot, TestProject};
pub use test_env::TestEnv;
