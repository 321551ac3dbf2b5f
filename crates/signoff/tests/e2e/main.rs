//! The program as people meet it: the built binary in a place of its own.

mod actors;
mod app;
mod asking;
mod config;
mod documentation;
mod house;
mod init;
mod looking;
mod manual;
mod merge_reviews;
mod parse;
mod plan;
mod queue;
mod session;
mod tasks;
mod verdicts;
mod workflow;

use signoff_testkit::TestEnv;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_signoff");

fn test_env() -> TestEnv {
    TestEnv::new(PROGRAM)
}
