//! Tests of the progress lines.

mod failures_and_waits;
mod groups;
mod phases;
mod runs;
mod task;
