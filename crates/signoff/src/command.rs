//! The commands, one file each, under the name a person types.

pub mod config;
pub mod init;
pub mod merge_reviews;
pub mod parse;
pub mod tasks;
pub mod workflow;
