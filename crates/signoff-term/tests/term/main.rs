//! Tests of the rendered output of real logs.

mod dialogue;
mod exit;
mod fits;
mod laws;
mod line;
mod notification;
mod report;
mod rows;
mod schema;
mod show;
mod stats;
mod status;
mod story;
mod tui;
mod world;
