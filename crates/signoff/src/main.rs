//! `signoff` drives coding agents through implement, review, fix and re-review until the work is signed off.

mod app;
mod command;
mod console;
mod error;
mod history_cache;
mod host;
mod line_output;
mod preflight;
mod project;
mod queries;
mod run_loop;
mod screen;
mod settings;
mod web_backend;

use console::Console;
use error::{CliError, CommandExit, Result};
use project::{Project, ReadOnlyProject};

fn main() -> std::process::ExitCode {
    app::run(host::arguments())
}
