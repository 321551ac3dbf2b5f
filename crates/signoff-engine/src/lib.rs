//! Carries out what the core wishes: processes, git, agents, and the dispatcher that records what happened.

pub mod builtin;
