//! Built-in programs that signoff starts like agents: `signoff __acp`, `signoff __checks`, `signoff __demo`.

pub mod acp;
pub mod checks;
pub mod demo;
