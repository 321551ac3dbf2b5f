//! Progress lines, whole.

mod groups;
mod mishaps;
mod runs;
mod task;
