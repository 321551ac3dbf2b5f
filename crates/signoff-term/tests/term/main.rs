//! What people and programs see of real logs.

mod line;
mod story;
