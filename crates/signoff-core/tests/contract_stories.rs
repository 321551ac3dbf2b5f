//! How each contract parses the answers of reviewers: valid, untidy and hostile ones.

mod auto;
mod bodies;
mod instructions;
mod json;
mod markdown;
mod prefix;
mod render;
mod report;
mod severity;
mod tool;
mod xml;
