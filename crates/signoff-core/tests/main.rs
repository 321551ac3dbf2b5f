//! The integration tests of signoff-core, one module per subject.

mod answer_properties;
mod checks;
mod config;
mod contract_properties;
mod contract_stories;
mod corpus;
mod fast_hash;
mod group;
mod inbox;
mod ledger;
mod machine;
mod merge;
mod prompt;
mod rate_limit;
mod redact;
mod report_token;
mod similarity;
mod source_corpus;
mod source_properties;
mod state_v4_corpus;
mod wire;
mod workflow;
