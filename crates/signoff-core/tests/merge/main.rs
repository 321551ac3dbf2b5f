//! What several reviewers say together, told as stories and as laws.

mod conflicts;
mod json;
mod laws;
mod markdown;
mod order;
mod panel;
mod same;
mod sarif;
mod text;
mod verdict;
mod xml;
