//! The screen, as it is drawn.

mod dialogs;
mod laws;
mod list;
mod panes;
mod pictures;
mod scene;
mod standings;
