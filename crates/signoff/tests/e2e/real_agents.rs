//! The programs of real agents, run by signoff with a scripted model instead of their own.
//!
//! `scripts/agents prepare` installs them, and `scripts/agents` runs these tests; the long ones are in `slow`,
//! for `scripts/soak`.

mod bad_input;
mod faults;
mod full_loop;
mod read_only;
mod slow;
mod team;
mod traps;

use team::{Cli, Team};
