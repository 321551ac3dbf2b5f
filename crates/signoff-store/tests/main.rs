//! The tests of the store: what every backend does, and what is special about SQLite.

mod conformance;
mod sqlite;
