//! The pages, as people and browsers see them.

mod dom;
mod laws;
mod sample;
mod stories;
