//! Everything `signoff` decides, as values in and values out.
//!
//! Nothing here reads a file, a clock, the environment or a random number: the crates around this one
//! do, and hand over what they saw as values. See `ARCHITECTURE.md` for the way through the modules.

pub mod command;
pub mod contract;
pub mod group;
pub mod ids;
pub mod ledger;
pub mod machine;
pub mod merge;
pub mod policy;
pub mod prompt;
pub mod review;
pub mod similarity;
pub mod source;
pub mod view;
pub mod wire;
pub mod workflow;
