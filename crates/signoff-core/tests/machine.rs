//! The state machine of loops: stories of single loops, and invariants over all reachable states.

mod actions;
mod builders;
mod chain;
mod explore;
mod invariants;
mod mini_loop;
mod state_key;
mod state_v4;
mod stories;
mod story;
