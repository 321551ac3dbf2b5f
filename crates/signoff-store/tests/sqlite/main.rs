//! What is SQLite's own: files, full disks, damaged rows, killed programs, and the tables people query.

mod child;
mod faults;
mod place;
#[path = "../conformance/say.rs"]
mod say;
mod tables;
