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
pub mod progress;
mod round;
mod runs;
pub mod show;
pub mod slots;
pub mod status;
pub mod tui;
mod words;
