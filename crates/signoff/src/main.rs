//! `signoff` drives coding agents through implement, review, fix and re-review until the work is signed off.

mod app;
mod command;
mod console;
mod desk;
mod door;
mod drive;
mod failure;
mod follow;
mod look;
mod preflight;
mod screen;
mod serving;
mod settings;
mod show;

fn main() -> std::process::ExitCode {
    app::run(door::arguments())
}
