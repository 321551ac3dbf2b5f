//! The scripted model follows its script, in each API dialect.

mod client;
mod dialects;
mod faults;
mod program;
mod tools;
mod turns;
