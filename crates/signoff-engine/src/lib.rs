//! Carries out what the core wishes: processes, git, agents, and the dispatcher that records what happened.

pub mod agent;
pub mod artifact;
pub mod assignment;
pub mod attempt;
pub mod board;
pub mod brief;
pub mod builtin;
pub mod clock;
mod combine;
pub mod confine;
pub mod detect;
pub mod dispatcher;
mod draft;
pub mod error;
pub mod failpoint;
pub mod git;
pub mod landing;
pub mod layout;
pub mod occupied;
pub mod open;
pub mod opening;
pub mod place;
pub mod process;
pub mod reports;
mod tick;
pub mod tracker;
