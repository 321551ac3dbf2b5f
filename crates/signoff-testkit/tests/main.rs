//! The tests of the scripted agent, the scripted model, the source parser and the pseudo-terminal.

mod fake_agent;
mod model;
mod source_code;
mod terminal;
