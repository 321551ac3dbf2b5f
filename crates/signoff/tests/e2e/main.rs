//! End-to-end tests: the built program in a temporary directory with its own home.

mod actors;
#[cfg(test)]
mod agents;
mod app;
mod applied_once;
#[cfg(all(test, unix))]
mod asked_on_terminal;
mod asking;
#[cfg(test)]
mod bad_input;
mod checkpoints;
mod config;
#[cfg(test)]
mod configure;
mod cost;
mod demo;
mod documentation;
#[cfg(test)]
mod documented_commands;
mod documented_scripts;
mod foreign;
mod groups;
mod house;
#[cfg(all(test, unix))]
mod in_a_browser;
mod init;
#[cfg(test)]
mod integrity;
#[cfg(test)]
mod interrupted;
mod invalid_config;
mod iterate;
#[cfg(test)]
mod iterate_killed;
#[cfg(test)]
mod killed;
#[cfg(test)]
mod landing;
#[cfg(test)]
mod left_behind;
#[cfg(test)]
mod limits;
mod manual;
#[cfg(test)]
mod many_runs;
#[cfg(test)]
mod mcp;
mod merge_reviews;
#[cfg(test)]
mod mini_loops;
#[cfg(test)]
mod misbehaving;
mod nothing_to_review;
#[cfg(test)]
mod notify;
#[cfg(test)]
mod older_database;
mod older_project;
mod own_workflow;
mod parse;
mod phases_engine;
mod plan;
#[cfg(test)]
mod pushes;
mod queue;
mod read_only_commands;
#[cfg(test)]
mod real_agents;
#[cfg(test)]
mod replaced;
mod report;
#[cfg(test)]
mod resuming;
#[cfg(test)]
mod sandbox;
mod sandbox_git;
#[cfg(test)]
mod secrets;
#[cfg(all(test, unix))]
mod serve;
mod session;
#[cfg(test)]
mod signing_off;
#[cfg(test)]
mod slots;
mod state;
mod stats;
mod tables;
mod task_environment;
mod tasks;
#[cfg(all(test, unix))]
mod tui;
#[cfg(test)]
mod two_programs;
mod verdicts;
#[cfg(all(test, unix))]
mod watched;
mod workflow;

use signoff_testkit::TestEnv;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_signoff");

fn test_env() -> TestEnv {
    TestEnv::new(PROGRAM)
}
