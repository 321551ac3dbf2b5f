//! Progress lines, whole.

mod mishaps;
mod runs;
mod task;
