//! The scripted model says what its script says, in each language.

mod client;
mod dialects;
mod faults;
mod program;
mod tools;
mod turns;
