//! The program as people meet it: the built binary in a place of its own.

mod app;
mod bad_input;
mod config;
mod demo;
mod documentation;
mod house;
mod init;
mod interrupted;
mod killed;
mod merge_reviews;
mod misbehaving;
mod parse;
mod session;
mod tasks;
mod two_programs;
mod workflow;

use signoff_testkit::TestEnv;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_signoff");

fn test_env() -> TestEnv {
    TestEnv::new(PROGRAM)
}
