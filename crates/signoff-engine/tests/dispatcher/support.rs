//! A project in memory whose agents follow a script.

pub mod agent_workspaces;
pub mod git_project;
pub mod memory_agents;
pub mod memory_repository;
pub mod memory_workspaces;
pub mod merge_files;
pub mod scripted_attempt;
pub mod scripted_call;
pub mod scripted_executor;
pub mod story;
