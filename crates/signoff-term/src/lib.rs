//! Renders runs and tasks as text, JSON and terminal frames.
//!
//! This crate is pure: it takes values and returns text or values. It does no I/O and does not read the clock.

pub mod agents;
pub mod exit;
pub mod fit;
pub mod inbox;
pub mod json;
pub mod labels;
pub mod line;
pub mod notification;
pub mod progress;
pub mod question_queue;
pub mod report;
mod review_round;
pub mod runs;
pub mod show;
pub mod slots;
pub mod stats;
pub mod status;
pub mod tui;
