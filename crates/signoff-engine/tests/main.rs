//! The tests of the engine, one module per subject, with real processes, git and sockets.

mod agents;
mod builtin_checks;
mod demo;
mod dispatcher;
mod git;
mod notify;
mod process;
mod reports;
