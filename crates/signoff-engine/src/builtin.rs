//! Programs that come with this one and are started by it like any agent: `signoff __acp`, `signoff __checks`,
//! `signoff __demo`.

pub mod acp;
pub mod checks;
pub mod demo;
