//! What people and programs see: renderers over the view and the recorded facts.
//!
//! Values go in, text and values come out. Nothing here reads or writes anything, or asks for the time.

pub mod agents;
pub mod attention;
pub mod dialogue;
pub mod exit;
pub mod fit;
pub mod json;
pub mod line;
pub mod notification;
pub mod progress;
pub mod report;
mod round;
pub mod runs;
pub mod show;
pub mod slots;
pub mod stats;
pub mod status;
pub mod tui;
pub mod words;
