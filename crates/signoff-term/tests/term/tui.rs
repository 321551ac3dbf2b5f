//! Tests of the terminal UI.

mod dialogs;
mod laws;
mod list;
mod panes;
mod pictures;
mod scene;
mod standings;
