//! Real agents, real keepers, real signals.

mod crash;
mod ending;
#[cfg(test)]
mod place;
mod running;
