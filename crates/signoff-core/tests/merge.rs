//! Merging the reviews of several reviewers, as examples and as properties.

mod conflicts;
mod duplicates;
mod json;
mod markdown;
mod order;
mod panel;
mod properties;
mod sarif;
mod text;
mod verdict;
mod xml;
