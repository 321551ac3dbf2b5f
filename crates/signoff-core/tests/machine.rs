//! The loop machine: stories of single loops, and laws over all reachable states.

mod actions;
mod chain;
mod explore;
mod laws;
mod mini_loop;
mod say;
mod state_key;
mod state_v4;
mod stories;
mod story;
