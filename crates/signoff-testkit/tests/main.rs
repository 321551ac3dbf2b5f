//! The tests of the scripted agent, the scripted model and the pseudo-terminal.

mod fake_agent;
mod model;
mod terminal;
