//! What people and programs see of real logs.

mod dialogue;
mod exit;
mod fits;
mod laws;
mod line;
mod progress;
mod rows;
mod schema;
mod show;
mod status;
mod story;
mod tui;
mod world;
