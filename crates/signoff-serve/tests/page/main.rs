//! The pages, as people and browsers see them.

mod dom;
mod kept;
mod laws;
mod sample;
mod stories;
