//! The recorded log: its stable JSON form, and the view built from it.

mod broken;
mod examples;
mod forms;
mod stories;
