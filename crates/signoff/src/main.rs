//! `signoff` drives coding agents through implement, review, fix and re-review until the work is signed off.

mod app;
mod command;
mod console;
mod door;
mod failure;
mod settings;
mod words;

fn main() -> std::process::ExitCode {
    app::run(door::arguments()).into()
}
