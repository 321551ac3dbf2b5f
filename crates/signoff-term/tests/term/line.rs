//! Progress lines, whole.

mod groups;
mod mishaps;
mod phases;
mod runs;
mod task;
