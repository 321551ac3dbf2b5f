//! The HTML pages: snapshots of their text and properties of their markup.

mod always_shown;
mod dom;
mod laws;
mod sample;
mod stories;
