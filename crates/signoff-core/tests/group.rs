//! The state machine of runs, alone and together with loops, and commands of people.

mod builders;
mod decide;
mod drive;
mod effort;
mod explore;
mod invariants;
mod loop_events;
mod queue;
mod refusals;
mod run_with_loops;
