//! Merging the reviews of several reviewers, as examples and as properties.

mod conflicts;
mod duplicates;
mod json;
mod laws;
mod markdown;
mod order;
mod panel;
mod sarif;
mod text;
mod verdict;
mod xml;
