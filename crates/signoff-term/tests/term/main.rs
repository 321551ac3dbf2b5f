//! Tests of the rendered output of real logs.

mod exit;
mod fits;
mod laws;
mod line;
mod next_events;
mod notification;
mod question_queue;
mod report;
mod rows;
mod schema;
mod show;
mod stats;
mod status;
mod story;
mod tui;
