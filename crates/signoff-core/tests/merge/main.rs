//! What several reviewers say together, told as stories and as laws.

mod conflicts;
mod formats;
mod laws;
mod order;
mod panel;
mod same;
mod verdict;
