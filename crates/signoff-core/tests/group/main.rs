//! The group machine alone and above real loops, and what commands amount to.

mod both;
mod decide;
mod drive;
mod effort;
mod explore;
mod laws;
mod queue;
mod refusals;
mod say;
mod world;
