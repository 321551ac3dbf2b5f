//! The tests of the scripted agent, the scripted model, the source parser and the pseudo-terminal, and the source rules.

mod fake_agent;
mod model;
mod source_code;
mod source_rules;
mod terminal;
