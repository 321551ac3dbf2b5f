//! The programs of real agents, driven by signoff, with a scripted model in the place of theirs.
//!
//! They are installed by `scripts/agents prepare`, and these tests run with `scripts/agents`; what takes too long for every
//! day is in `slow`, for `scripts/soak`.

mod bad_input;
mod faults;
mod read_only;
mod slow;
mod team;
mod traps;
mod whole;

use team::{Cli, Team};
