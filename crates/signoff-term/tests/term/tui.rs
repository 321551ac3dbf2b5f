//! Tests of the terminal UI.

mod dialogs;
mod inbox_hints;
mod laws;
mod list;
mod panes;
mod pictures;
mod scene;
