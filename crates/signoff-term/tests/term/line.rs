//! Tests of the progress lines.

mod groups;
mod mishaps;
mod phases;
mod runs;
mod task;
