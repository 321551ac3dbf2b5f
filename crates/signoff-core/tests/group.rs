//! The group machine, alone and together with loops, and the commands of people.

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
