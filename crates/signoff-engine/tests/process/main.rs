//! Real agents, real keepers, real signals.

mod crash;
mod ending;
mod place;
mod running;
