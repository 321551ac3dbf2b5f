//! The HTML pages: snapshots of their text and properties of their markup.

mod dom;
mod kept;
mod laws;
mod sample;
mod stories;
