//! SQLite specifics: files, full disks, damaged rows, killed processes, and the tables that users query.

mod child;
mod faults;
mod fixture;
mod once;
mod tables;
